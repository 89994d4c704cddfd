"""Queue, LifoQueue and PriorityQueue between threads and tasks: room, waiting, join, shutdown, resize.

A task is cancelled at the worst moments here. Whatever happens, no object is lost, doubled or reordered.
"""

from __future__ import annotations

import asyncio
import math
import pickle
import queue
import sys
from collections.abc import Coroutine
from typing import Any

import pytest
from lines import drained, getting, putting, start
from waiting import Thread, run, until

from fairlead import errors
from fairlead.sync import LifoQueue, PriorityQueue, Queue

pytestmark = pytest.mark.ends_and_free

kinds = pytest.mark.parametrize("kind", [Queue, LifoQueue, PriorityQueue])
fairness = pytest.mark.parametrize("fair", [False, True], ids=["barging", "fair"])


@pytest.mark.parametrize(("kind", "order"), [(Queue, "213"), (LifoQueue, "312"), (PriorityQueue, "123")])
def test_objects_come_out_in_the_order_of_the_kind(kind: Any, order: str) -> None:
    line = kind()
    for one in "213":
        line.put(one)
    assert line.peek_nowait() == order[0]
    assert "".join(drained(line)) == order


@kinds
def test_what_is_full_or_empty_is_the_error_of_queue(kind: Any) -> None:
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


@pytest.mark.parametrize("timeout", [-1, -0.5, math.nan])
def test_impossible_timeouts_are_refused(timeout: float) -> None:
    line = Queue(1)
    line.put(1)
    assert line.unfinished_tasks == 1
    for call in (lambda: line.put(2, True, timeout), lambda: Queue().get(True, timeout)):
        with pytest.raises(ValueError, match="non-negative"):
            call()
    with pytest.raises(ValueError, match="non-negative"):
        line.join(timeout)
    with pytest.raises(OverflowError):
        Queue().get(timeout=math.inf)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="maxsize"):
        Queue(2**31)
    with pytest.raises(TypeError):
        Queue("many")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="item"):
        Queue().put()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Queue().resize("more")  # type: ignore[arg-type]
    line = Queue(3)
    with pytest.raises(AttributeError):
        del line.maxsize
    assert Queue(-4).maxsize == 0
    line.put(1)
    with pytest.raises(errors.UsageError, match="before something is put into it"):
        pickle.dumps(line)


@kinds
def test_what_is_wrong_with_the_arguments_names_the_class(kind: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\(\) "):
        kind(1, True)


@kinds
@fairness
def test_thread_waits_for_room_and_for_an_object(kind: Any, fair: bool) -> None:
    line = kind(1, fair=fair)
    getter = Thread(line.get)
    until(lambda: line.statistics().getting == 1)
    line.put(1)
    assert getter.result() == 1
    line.put(2)
    putter = Thread(line.put, 3)
    until(lambda: line.statistics().putting == 1)
    assert line.get() == 2
    putter.result()
    assert line.get(timeout=30) == 3
    assert line.statistics() == (0, 1, 0, 0, 0, 3, False, fair)


@fairness
def test_threads_and_tasks_share_a_queue_and_each_object_is_got_once(fair: bool) -> None:
    line, got = Queue(3, fair=fair), []

    def producer(me: int) -> None:
        for number in range(200):
            line.put((me, number))

    async def producing_task(me: int) -> None:
        for number in range(200):
            await line.put_async((me, number))

    def consumer() -> None:
        mine: list[Any] = []
        got.append(mine)
        try:
            while True:
                mine.append(line.get())
                line.task_done()
        except errors.QueueShutDown:
            pass

    async def consuming_task() -> None:
        mine: list[Any] = []
        got.append(mine)
        try:
            while True:
                mine.append(await line.get_async())
                line.task_done()
        except errors.QueueShutDown:
            pass

    async def both(*tasks: Coroutine[Any, Any, Any]) -> None:
        await asyncio.gather(*tasks)

    ends = [Thread(consumer), Thread(consumer), Thread(lambda: run(both(consuming_task(), consuming_task())))]
    sources = [Thread(producer, 0), Thread(producer, 1)]
    sources += [Thread(lambda: run(both(producing_task(2), producing_task(3))))]
    for thread in sources:
        thread.result()
    assert line.join(30) is True
    line.shutdown()
    for end in ends:
        end.result()
    assert sorted(one for mine in got for one in mine) == [(me, n) for me in range(4) for n in range(200)]
    for mine in got:
        for me in range(4):
            numbers = [number for who, number in mine if who == me]
            assert numbers == sorted(numbers)


@fairness
def test_get_cancelled_after_an_object_came_loses_nothing_and_keeps_the_order(fair: bool) -> None:
    async def main() -> None:
        line = Queue(fair=fair)
        getters = [await start(line.get_async(), getting(line)) for _ in range(3)]
        for number in range(3):
            line.put(number)
        getters[0].cancel()
        getters[1].cancel()
        got = await asyncio.gather(*getters, return_exceptions=True)
        assert [type(one) for one in got[:2]] == [asyncio.CancelledError] * 2
        assert got[2] == 0
        assert drained(line) == [1, 2]
        assert line.statistics()[:4] == (0, 0, 0, 0)

    run(main())


@fairness
def test_put_cancelled_after_room_came_puts_nothing_and_the_next_gets_the_room(fair: bool) -> None:
    async def main() -> None:
        line = Queue(1, fair=fair)
        line.put(0)
        putters = [await start(line.put_async(me), putting(line)) for me in (1, 2, 3)]
        assert line.get_nowait() == 0
        putters[0].cancel()
        putters[2].cancel()
        outcome = await asyncio.gather(*putters, return_exceptions=True)
        assert [type(one) for one in outcome] == [asyncio.CancelledError, type(None), asyncio.CancelledError]
        assert drained(line) == [2]
        assert line.statistics()[:4] == (0, 1, 0, 0)

    run(main())


def test_putters_come_in_the_order_in_which_they_began_to_wait() -> None:
    async def main() -> None:
        line = Queue(1)
        line.put(0)
        putters = [await start(line.put_async(me), putting(line)) for me in range(1, 9)]
        putters[3].cancel()
        got = [await line.get_async() for _ in range(8)]
        await asyncio.gather(*putters, return_exceptions=True)
        assert got == [0, 1, 2, 3, 5, 6, 7, 8]

    run(main())


def test_put_while_every_getter_is_cancelled_and_none_has_resumed_stays_for_a_newcomer() -> None:
    async def main() -> None:
        line = Queue()
        getters = [await start(line.get_async(), getting(line)) for _ in range(3)]
        for one in getters:
            one.cancel()
        line.put("thing")
        newcomer = asyncio.ensure_future(asyncio.wait_for(line.get_async(), 30))
        await asyncio.gather(*getters, return_exceptions=True)
        assert await newcomer == "thing"
        assert line.statistics().getting == 0

    run(main())


@kinds
def test_timeouts_of_asyncio_and_of_threads_leave_nothing_behind(kind: Any) -> None:
    async def main() -> None:
        line = kind(1)
        for _ in range(300):
            try:
                async with asyncio.timeout(0):
                    await line.get_async()
            except TimeoutError:
                pass
            with pytest.raises(errors.QueueEmpty):
                line.get(timeout=1e-7)
        line.put(1)
        for _ in range(300):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(line.put_async(2), 1e-5)
            with pytest.raises(errors.QueueFull):
                line.put(2, timeout=1e-7)
        assert line.statistics()[:6] == (1, 1, 0, 0, 0, 1)
        assert line.get_nowait() == 1

    run(main())


def test_timeouts_race_with_what_comes_and_lose_nothing() -> None:
    async def main() -> None:
        line, got = Queue(1), []
        producer = Thread(lambda: [line.put(number) for number in range(300)])
        while len(got) < 300:
            try:
                async with asyncio.timeout(0.00005):
                    got.append(await line.get_async())
            except TimeoutError:
                pass
        producer.result()
        assert got == list(range(300))

    run(main())


def test_an_awaitable_does_nothing_until_it_is_awaited_and_is_for_once() -> None:
    async def main() -> None:
        line = Queue()
        put, get = line.put_async("thing"), line.get_async()
        assert line.empty()
        del get
        await put
        with pytest.raises(RuntimeError, match="reuse"):
            await put
        assert drained(line) == ["thing"]

    run(main())


def test_peek_waits_and_takes_nothing() -> None:
    async def main() -> None:
        line = Queue()
        in_a_thread = Thread(line.peek)
        until(lambda: line.statistics().getting == 1)
        in_a_task = await start(line.peek_async(), getting(line))
        line.put("thing")
        assert in_a_thread.result() == "thing"
        assert await in_a_task == "thing"
        assert await line.peek_async() == line.peek() == line.peek_nowait() == line.get() == "thing"
        with pytest.raises(errors.QueueEmpty):
            line.peek_nowait()
        line.shutdown()
        with pytest.raises(errors.QueueShutDown):
            line.peek()
        with pytest.raises(errors.QueueShutDown):
            await line.peek_async()

    run(main())


def test_resize_makes_room_for_waiting_putters_and_shrinks_without_losing_items() -> None:
    async def main() -> None:
        line = Queue(1)
        line.put(0)
        putters = [await start(line.put_async(me), putting(line)) for me in range(1, 6)]
        putters[1].cancel()
        putters[2].cancel()
        line.resize(4)
        await asyncio.gather(*putters, return_exceptions=True)
        assert line.qsize() == 4
        assert line.full()
        line.maxsize = 2
        assert line.maxsize == 2
        waiting = await start(line.put_async(6), putting(line))
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


def test_put_and_get_between_grant_and_resume_take_nothing_that_was_promised() -> None:
    async def main() -> None:
        line = Queue(1, fair=True)
        getter = await start(line.get_async(), getting(line))
        line.put("promised")
        with pytest.raises(errors.QueueEmpty):
            line.get_nowait()
        assert await getter == "promised"
        line.put(1)
        putter = await start(line.put_async(2), putting(line))
        line.get()
        with pytest.raises(errors.QueueFull):
            line.put_nowait(3)
        await putter
        assert drained(line) == [2]

    run(main())


def test_queue_shows_its_state() -> None:
    line = Queue(7)
    line.put(1)
    assert repr(line).startswith("<fairlead.sync.Queue of 1, maxsize=7, 0 getting, 0 putting, at 0x")
    line.shutdown()
    assert "shut down" in repr(line)
    assert sys.getsizeof(line) < 450
    assert Queue[int]


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
