"""SimpleQueue between threads and tasks: nothing is lost, doubled or put out of order."""

from __future__ import annotations

import asyncio
import gc
import queue
import struct
import sys
import weakref
from typing import Any

import pytest
from waiting import Thread, run, until, until_async

from fairlead import errors
from fairlead.sync import Queue, SimpleQueue

pytestmark = [pytest.mark.ends_and_free, pytest.mark.pypy]


def test_objects_come_out_as_they_went_in() -> None:
    line = SimpleQueue()
    for number in range(100):
        line.put(number)
        line.put_nowait(-number)
    assert line.qsize() == 200
    assert [line.get() for _ in range(4)] == [0, 0, 1, -1]
    line.put("a", False)
    line.put(item="b", block=True, timeout=3)
    assert [line.get_nowait() for _ in range(198)][-2:] == ["a", "b"]
    assert line.empty()
    assert line.statistics() == (0, 0)


@pytest.mark.parametrize("block", [{"block": False}, {"block": False, "timeout": 1}, {"timeout": 0.001}])
def test_nothing_to_get_is_the_error_of_queue(block: Any) -> None:
    with pytest.raises(errors.QueueEmpty):
        SimpleQueue().get(**block)
    with pytest.raises(queue.Empty):
        SimpleQueue().get_nowait()


def test_thread_waits_for_an_object() -> None:
    line = SimpleQueue()
    getter = Thread(line.get)
    until(lambda: line.statistics().waiting == 1)
    thing = object()
    line.put(thing)
    assert getter.result() is thing


async def _get(line: SimpleQueue) -> Any:
    return await line.get_async()


def test_threads_and_tasks_share_a_queue_and_each_object_is_got_once() -> None:
    line, got = SimpleQueue(), []

    def producer(me: int) -> None:
        for number in range(300):
            line.put((me, number))

    def consumer() -> None:
        mine = []
        while (one := line.get()) is not None:
            mine.append(one)
        got.append(mine)

    async def consumers() -> None:
        async def task() -> None:
            mine = []
            while (one := await line.get_async()) is not None:
                mine.append(one)
            got.append(mine)

        await asyncio.gather(task(), task())

    ends = [Thread(consumer), Thread(consumer), Thread(run, consumers())]
    for thread in [Thread(producer, me) for me in range(3)]:
        thread.result()
    for _ in range(4):
        line.put(None)
    for end in ends:
        end.result()
    assert sorted(one for mine in got for one in mine) == [(me, n) for me in range(3) for n in range(300)]
    for mine in got:
        for me in range(3):
            assert [n for who, n in mine if who == me] == sorted(n for who, n in mine if who == me)


def test_get_cancelled_after_an_object_came_loses_nothing_and_keeps_the_order() -> None:
    async def main() -> None:
        line = SimpleQueue()
        getters = []
        for me in range(3):
            getters.append(asyncio.ensure_future(_get(line)))
            await until_async(lambda me=me: line.statistics().waiting == me + 1)
        for number in range(3):
            line.put(number)
        getters[0].cancel()
        getters[1].cancel()
        got = await asyncio.gather(*getters, return_exceptions=True)
        left = [line.get_nowait() for _ in range(line.qsize())]
        assert [type(one) for one in got[:2]] == [asyncio.CancelledError] * 2
        assert got[2] == 0
        assert left == [1, 2]

    run(main())


def test_get_with_a_timeout_loses_nothing() -> None:
    async def main() -> None:
        line, got = SimpleQueue(), []
        producer = Thread(lambda: [line.put(number) for number in range(200)])
        while len(got) < 200:
            try:
                async with asyncio.timeout(0.0001):
                    got.append(await line.get_async())
            except TimeoutError:
                pass
        producer.result()
        assert got == list(range(200))
        assert line.statistics() == (0, 0)

    run(main())


def test_put_async_is_done_at_once() -> None:
    async def main() -> None:
        line = SimpleQueue()
        assert await line.put_async("thing") is None
        assert await line.get_async() == "thing"

    run(main())


def test_tuples_and_exceptions_come_out_of_get_async_as_they_are() -> None:
    async def main() -> None:
        line = SimpleQueue()
        for thing in [(1, 2), (), ValueError("a value"), StopIteration(3)]:
            line.put(thing)
            ticket = line.get_async()
            with pytest.raises(StopIteration) as stop:
                ticket.send(None)
            assert stop.value.value is thing

    run(main())


def test_destructor_may_put_and_get() -> None:
    line = SimpleQueue()

    class Thing:
        def __del__(self) -> None:
            line.put("from a destructor")

    line.put(Thing())
    del Thing
    assert line.get() is not None
    gc.collect()
    assert line.get(timeout=30) == "from a destructor"


@pytest.mark.skipif(
    sys.implementation.name == "pypy", reason="PyPy collects no circle through an extension's object"
)
def test_queue_in_a_cycle_is_collected_with_what_it_holds() -> None:
    class Thing:
        pass

    line, thing = SimpleQueue(), Thing()
    line.put(line)
    line.put(thing)
    dead = weakref.ref(thing)
    del line, thing
    gc.collect()
    assert dead() is None


def test_queue_shows_its_state() -> None:
    line = SimpleQueue()
    line.put(1)
    assert repr(line).startswith("<fairlead.sync.SimpleQueue of 1, 0 waiting, at 0x")
    assert line.statistics() == (1, 0)
    with pytest.raises(TypeError):
        line.put()  # type: ignore[call-arg]


@pytest.mark.skipif(sys.implementation.name == "pypy", reason="PyPy's sys.getsizeof knows no sizes")
def test_size_counts_the_memory_of_the_queue() -> None:
    line = SimpleQueue()
    empty = sys.getsizeof(line)
    for number in range(1000):
        line.put(number)
    assert empty < sys.getsizeof(Queue()) < 450
    assert sys.getsizeof(line) - empty >= 1000 * struct.calcsize("P")
