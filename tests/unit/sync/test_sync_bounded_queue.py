"""Queue, LifoQueue and PriorityQueue between threads and tasks: room, waiting, join, shutdown, resize.

A task is cancelled at the worst moments here. Whatever happens, no object is lost, doubled or reordered.
"""

from __future__ import annotations

import asyncio
import pickle
import queue
import sys
from typing import Any

import pytest
from lines import drained, putting, start
from waiting import run

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
