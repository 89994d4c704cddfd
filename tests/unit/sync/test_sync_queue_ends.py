"""Queue, LifoQueue and PriorityQueue: join and shutdown, loops that end, and the collector."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from lines import drained, getting, start
from waiting import Thread, run, until

from fairlead import errors
from fairlead.sync import LifoQueue, PriorityQueue, Queue

pytestmark = pytest.mark.ends_and_free

kinds = pytest.mark.parametrize("kind", [Queue, LifoQueue, PriorityQueue])


@kinds
@pytest.mark.parametrize("immediate", [False, True])
def test_shutdown_wakes_every_kind_of_waiter_in_every_loop(kind: Any, immediate: bool) -> None:
    empty, full = kind(), kind(1)
    full.put(1)

    async def task(awaitable: Awaitable[Any]) -> str:
        with pytest.raises(errors.QueueShutDown):
            await awaitable
        return "told"

    async def several() -> list[str]:
        return list(
            await asyncio.gather(
                task(empty.get_async()),
                task(full.put_async(2)),
                task(empty.get_async()),
                task(empty.peek_async()),
            )
        )

    def thread(call: Callable[..., Any], *args: Any) -> list[str]:
        with pytest.raises(errors.QueueShutDown):
            call(*args)
        return ["told"]

    waiters = [Thread(run, several()) for _ in range(2)]
    waiters += [
        Thread(thread, empty.get),
        Thread(thread, full.put, 2),
        Thread(thread, full.put, 3, True, 100),
    ]
    until(lambda: empty.statistics().getting == 7 and full.statistics().putting == 4)
    empty.shutdown(immediate)
    full.shutdown(immediate=immediate)
    assert [word for one in waiters for word in one.result()] == ["told"] * 11
    assert empty.is_shutdown
    if not immediate:
        assert full.get() == 1
        full.task_done()
    for line in (empty, full):
        assert line.statistics() == (0, line.maxsize, 0, 0, 0, 0, True, False)
        for call in (
            line.get,
            line.get_nowait,
            lambda line=line: line.put(5),
            lambda line=line: line.put_nowait(5),
        ):
            with pytest.raises(errors.QueueShutDown):
                call()


def test_immediate_shutdown_throws_away_what_was_promised_and_ends_joins() -> None:
    async def main() -> None:
        line = Queue(fair=True)
        getter = await start(line.get_async(), getting(line))
        cancelled = await start(line.get_async(), getting(line))
        thing = weakref.ref(one := type("Thing", (), {})())
        line.put(one)
        line.put("another")
        del one
        joiner = Thread(line.join)
        until(lambda: line.statistics().joining == 1)
        line.shutdown(immediate=True)
        line.shutdown(immediate=True)
        line.shutdown()
        cancelled.cancel()
        with pytest.raises(errors.QueueShutDown):
            await getter
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert joiner.result() is True
        assert thing() is None
        assert line.qsize() == 0
        with pytest.raises(errors.QueueShutDown):
            line.get_nowait()
        with pytest.raises(ValueError, match="too many"):
            line.task_done()

    run(main())


@kinds
def test_destructor_may_put_and_get(kind: Any) -> None:
    line = kind()

    class Thing:
        def __del__(self) -> None:
            line.put_nowait("from a destructor")

        def __lt__(self, other: object) -> bool:
            return True

    line.put(Thing())
    del Thing
    assert line.get() is not None
    gc.collect()
    assert line.get(timeout=30) == "from a destructor"
    line.put(1)
    weak = weakref.ref(type("Other", (), {})(), lambda _: line.put_nowait(2))
    gc.collect()
    assert weak() is None
    assert sorted(drained(line)) == [1, 2]


@kinds
def test_queue_in_a_cycle_is_collected_with_what_it_holds(kind: Any) -> None:
    class Thing:
        def __lt__(self, other: object) -> bool:
            return True

    line, thing = kind(), Thing()
    thing.line = line
    line.put(thing)
    dead = weakref.ref(thing)
    alone = kind()
    alone.put(thing)
    del line, thing, alone
    gc.collect()
    assert dead() is None
