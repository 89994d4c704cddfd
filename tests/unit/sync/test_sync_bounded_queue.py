"""Queue, LifoQueue and PriorityQueue: errors, order, room, shutdown, and the collector."""

from __future__ import annotations

import asyncio
import gc
import pickle
import queue
import sys
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from waiting import Thread, run, until, waiting_task, waiting_thread

from fairlead import errors
from fairlead.sync import LifoQueue, PriorityQueue, Queue, SimpleQueue

pytestmark = pytest.mark.ends_and_free

all_kinds = pytest.mark.parametrize("kind", [SimpleQueue, Queue, LifoQueue, PriorityQueue])
kinds = pytest.mark.parametrize("kind", [Queue, LifoQueue, PriorityQueue])


def drained(line: Any) -> list[Any]:
    return [line.get_nowait() for _ in range(line.qsize())]


@pytest.mark.parametrize(("kind", "order"), [(Queue, "213"), (LifoQueue, "312"), (PriorityQueue, "123")])
def test_objects_come_out_in_the_order_of_the_kind(kind: Any, order: str) -> None:
    line = kind()
    for one in "213":
        line.put(one)
    assert line.peek_nowait() == order[0]
    assert "".join(drained(line)) == order


@kinds
def test_what_is_full_or_empty_is_the_error_of_queue(kind: Any) -> None:
    assert kind(-4).maxsize == 0
    line = kind(2)
    assert (line.maxsize, line.empty(), line.full(), line.qsize()) == (2, True, False, 0)
    for attempt in [{"block": False}, {"block": False, "timeout": -5}, {"timeout": 0}, {"timeout": 0.001}]:
        with pytest.raises(queue.Empty):
            line.get(**attempt)
        with pytest.raises(errors.QueueEmpty, match="empty"):
            line.peek(**attempt)
    line.put_nowait(1)
    line.put(item=2, block=True, timeout=1)
    assert (line.empty(), line.full(), line.qsize()) == (False, True, 2)
    for attempt in [{"block": False}, {"block": False, "timeout": -5}, {"timeout": 0}, {"timeout": 0.001}]:
        with pytest.raises(queue.Full):
            line.put(3, **attempt)
    with pytest.raises(errors.QueueFull, match="full"):
        line.put_nowait(3)
    assert sorted(drained(line)) == [1, 2]


def test_errors_are_also_those_of_asyncio_and_can_be_pickled() -> None:
    line = Queue(1)
    with pytest.raises(asyncio.QueueEmpty) as empty:
        line.get_nowait()
    line.put(1)
    with pytest.raises(asyncio.QueueFull) as full:
        line.put_nowait(2)
    line.shutdown()
    with pytest.raises(errors.QueueShutDown) as shut:
        line.put(1)
    if sys.version_info >= (3, 13):
        assert isinstance(shut.value, queue.ShutDown)
        assert isinstance(shut.value, asyncio.QueueShutDown)
    for raised, name in [(empty, "QueueEmpty"), (full, "QueueFull"), (shut, "QueueShutDown")]:
        again = pickle.loads(pickle.dumps(raised.value))
        assert type(again) is getattr(errors, name)
        assert again.args == raised.value.args


@kinds
def test_peek_takes_nothing_and_says_that_a_queue_was_shut_down(kind: Any) -> None:
    async def main() -> None:
        line = kind()
        looking = [waiting_thread(line, line.peek), await waiting_task(line, line.peek_async())]
        line.put("thing")
        assert looking[0].result() == await looking[1] == "thing"
        assert await line.peek_async() == line.peek() == line.peek_nowait() == line.get() == "thing"
        with pytest.raises(errors.QueueEmpty):
            line.peek_nowait()
        line.shutdown()
        with pytest.raises(errors.QueueShutDown):
            line.peek()

    run(main())


def test_resize_makes_room_for_waiting_putters_and_shrinks_without_losing_items() -> None:
    async def main() -> None:
        line = Queue(1)
        line.put(0)
        putters = [await waiting_task(line, line.put_async(me)) for me in range(1, 6)]
        putters[1].cancel()
        putters[2].cancel()
        line.resize(4)
        await asyncio.gather(*putters, return_exceptions=True)
        assert line.qsize() == 4
        assert line.full()
        line.maxsize = 2
        assert line.maxsize == 2
        waiting = await waiting_task(line, line.put_async(6))
        assert [line.get(), line.get()] == [0, 1]
        await asyncio.sleep(0)
        assert not waiting.done()
        assert line.get() == 4
        await waiting
        assert line.full()
        with pytest.raises(errors.QueueFull):
            line.put_nowait(7)
        line.resize(0)
        for number in range(10):
            line.put_nowait(number)
        line.resize(3)
        assert drained(line) == [5, 6, *range(10)]
        for number in range(3):
            line.put_nowait(number)
        with pytest.raises(errors.QueueFull):
            line.put_nowait(7)

    run(main())


def test_tuples_and_exceptions_come_out_as_they_are() -> None:
    async def main() -> None:
        line = Queue()
        for thing in [(1, 2), (), ValueError("a value"), StopIteration(3), None]:
            await line.put_async(thing)
            ticket = line.get_async()
            with pytest.raises(StopIteration) as stop:
                ticket.send(None)
            assert stop.value.value is thing

    run(main())


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
        getter = await waiting_task(line, line.get_async())
        cancelled = await waiting_task(line, line.get_async())
        thing = weakref.ref(one := type("Thing", (), {})())
        line.put(one)
        line.put("another")
        del one
        joiner = waiting_thread(line, line.join)
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


@all_kinds
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


@all_kinds
def test_queue_in_a_cycle_is_collected_with_what_it_holds(kind: Any) -> None:
    class Thing:
        def __lt__(self, other: object) -> bool:
            return True

        __gt__ = __lt__

    line, thing = kind(), Thing()
    thing.line = line
    line.put(thing)
    dead = weakref.ref(thing)
    alone = kind()
    alone.put(thing)
    line.put(line)
    del line, thing, alone
    gc.collect()
    assert dead() is None
