"""Queue, LifoQueue and PriorityQueue in several interpreters, and the smaller primitives besides."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest
from waiting import Thread, waiting_thread

from fairlead._native import attach, handle
from fairlead.errors import (
    BrokenBarrierError,
    ChannelClosedError,
    QueueEmpty,
    QueueFull,
    QueueShutDown,
    UsageError,
)
from fairlead.sync import (
    Barrier,
    LifoQueue,
    Lock,
    PriorityQueue,
    Queue,
    RateLimiter,
    SimpleQueue,
    broadcast,
    channel,
    share,
)
from fairlead.sync.extra import ManualClock

QUEUES = (Queue, LifoQueue, PriorityQueue)

EVERYTHING = (
    None,
    True,
    (False, -1, 2**63 - 1, -(2**63), 2**100, 1.5, float("inf"), 3 - 2j),
    ("", "ascii", "Grün", "Ж", "\U0001f600", "\ud800"),
    (b"", b"bytes", bytearray(b"array"), (), ((),)),
    [1, {"a": {2}}],
)


@pytest.mark.parametrize("kind", QUEUES)
def test_queue_keeps_its_order_and_its_figures_in_every_interpreter(
    new_interpreter: Callable[[], Any], kind: type[Any]
) -> None:
    queue = kind(4, fair=True)
    other = new_interpreter()
    other.give(queue=queue)
    for item in (3, 1, 2):
        queue.put(item)
    first, second = {Queue: (3, 1), LifoQueue: (2, 1), PriorityQueue: (1, 2)}[kind]
    other.run(
        f"assert type(queue).__name__ == {kind.__name__!r} and queue.maxsize == 4 and queue.qsize() == 3\n"
        f"assert queue.peek() == {first} and queue.get() == {first} and queue.peek_nowait() == {second}\n"
        "queue.put_nowait(0); queue.put(9)\n"
        "assert queue.full() and queue.unfinished_tasks == 5\n"
        "import fairlead.errors\n"
        "try: queue.put(7, timeout=0.001)\n"
        "except fairlead.errors.QueueFull: pass\n"
        "else: raise AssertionError\n"
        "queue.maxsize = 5; queue.put(7)\n"
        "for _ in range(6): queue.task_done()\n"
    )
    assert queue.statistics() == (5, 5, 0, 0, 0, 0, False, True)
    left = {Queue: [1, 2, 0, 9, 7], LifoQueue: [7, 9, 0, 1, 3], PriorityQueue: [0, 2, 3, 7, 9]}[kind]
    assert [queue.get() for _ in range(5)] == left
    assert queue.join(0)


@pytest.mark.parametrize("kind", [SimpleQueue, Queue, LifoQueue])
def test_queue_carries_copies_of_every_kind_of_object(
    new_interpreter: Callable[[], Any], kind: type[Any]
) -> None:
    there, back = kind(), Queue()
    other = new_interpreter()
    other.give(there=there, back=back)
    for item in EVERYTHING:
        there.put(item)
        if kind is not SimpleQueue:
            other.run("assert there.peek() == there.peek()")
        other.run("back.put(there.get())")
        received = back.get()
        assert received == item
        assert type(received) is type(item)
    assert received is not EVERYTHING[-1]
    with pytest.raises(Exception, match=r"pickle|local object"):
        there.put(lambda: None)
    assert there.empty()
    if kind is not SimpleQueue:
        assert there.unfinished_tasks == len(EVERYTHING)
    there.put_nowait(memoryview(b"abcdef")[::2])
    there.put(Lock)
    assert {there.get_nowait(), there.get()} == {b"ace", Lock}


def test_priority_queue_compares_across_interpreters_and_survives_what_a_comparison_raises(
    new_interpreter: Callable[[], Any],
) -> None:
    queue: PriorityQueue[Any] = PriorityQueue()
    other = new_interpreter()
    other.give(queue=queue)
    items = [(n * 7919 % 101, f"item {n}", [n]) for n in range(100)]
    for item in items[:50]:
        queue.put(item)
    other.run(f"for item in {items[50:]!r}: queue.put(item)\n")
    with pytest.raises(TypeError, match="not supported"):
        queue.put("no tuple")
    assert queue.qsize() == 100
    assert [queue.get() for _ in range(40)] == sorted(items)[:40]
    other.run(f"assert [queue.get() for _ in range(60)] == {sorted(items)[40:]!r}\n")
    assert queue.empty()


@pytest.mark.parametrize("kind", QUEUES)
def test_putter_and_joiner_are_woken_by_another_interpreter(
    new_interpreter: Callable[[], Any], kind: type[Any]
) -> None:
    full = kind(1)
    other = new_interpreter()
    other.give(full=full)
    full.put(1)

    async def put() -> None:
        await full.put_async(2)

    joiner = waiting_thread(full, full.join)
    putter = waiting_thread(full, asyncio.run, put())
    other.run("assert full.get() == 1; full.task_done()\n")
    putter.result()
    other.run("assert full.get() == 2; full.task_done()\n")
    assert joiner.result() is True


@pytest.mark.parametrize("immediate", [False, True])
def test_shutdown_reaches_every_interpreter(new_interpreter: Callable[[], Any], immediate: bool) -> None:
    queue: Queue[Any] = Queue()
    other = new_interpreter()
    other.give(queue=queue)
    queue.put("left")
    other.run(f"queue.shutdown({immediate})")
    with pytest.raises(QueueShutDown):
        queue.put(1)
    if not immediate:
        assert queue.get() == "left"
    with pytest.raises(QueueShutDown):
        queue.get()
    assert queue.is_shutdown


def test_queue_outlives_the_interpreter_that_put_and_the_objects_it_was_made_by(
    new_interpreter: Callable[[], Any],
) -> None:
    queue: Queue[Any] = Queue(2)
    other = new_interpreter()
    other.give(queue=queue)
    other.run("queue.put(['kept', 1]); queue.put(('kept', 2))")
    other.close()
    same = attach(handle(queue))
    del queue
    assert same.get() == ["kept", 1]
    assert same.get_nowait() == ("kept", 2)
    with pytest.raises(QueueEmpty):
        same.get_nowait()
    same.put(1)
    same.put(2)
    with pytest.raises(QueueFull):
        same.put_nowait(3)


def test_queue_with_objects_in_it_is_not_handed_over() -> None:
    for kind in (SimpleQueue, *QUEUES):
        queue = kind()
        queue.put(1)
        with pytest.raises(UsageError, match="before something is put into it"):
            handle(queue)
        assert queue.get() == 1
        assert pickle.loads(pickle.dumps(share(queue))).empty()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="interpreters of Python 3.11 may not start threads")
@pytest.mark.parametrize("kind", QUEUES)
def test_nothing_is_lost_or_doubled_between_interpreters_that_run_at_once(
    new_interpreter: Callable[[], Any], kind: type[Any]
) -> None:
    """Two interpreters put, two get, each by a thread of its own."""
    many, line, results = 300, kind(3), Queue()
    interpreters = [new_interpreter() for _ in range(4)]
    for interpreter in interpreters:
        interpreter.give(line=line, results=results)
    put = f"for n in range({many}): line.put(({{}}, n))\nresults.put(None)\n"
    get = f"got = [line.get() for _ in range({many})]\nresults.put(got)\n"
    programs = [put.format(1), put.format(2), get, get]
    threads = [
        Thread(interpreter.run, program) for interpreter, program in zip(interpreters, programs, strict=True)
    ]
    for thread in threads:
        thread.result()
    got = [item for one in (results.get() for _ in range(4)) if one is not None for item in one]
    assert sorted(got) == [(by, n) for by in (1, 2) for n in range(many)]
    assert line.statistics()[:4] == (0, 3, 0, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_finds_a_shared_queue_whole() -> None:
    """While another thread puts and gets: whatever it was doing, the child counts what it finds.

    That thread has objects of its own for them: without a GIL it may be inside one of these at the fork.
    """
    queues = [kind() for kind in QUEUES]
    others = [attach(handle(queue)) for queue in queues]
    for queue in queues:
        queue.put(0)
    going = [True]

    def busy() -> None:
        while going[0]:
            for other in others:
                other.put(1)
                other.get()

    thread = Thread(busy)
    for _ in range(20):
        child = os.fork()
        if child == 0:
            try:
                sizes = [queue.qsize() for queue in queues]
                found = [len([queue.get_nowait() for _ in range(queue.qsize())]) for queue in queues]
                whole = sizes == found and all(queue.empty() for queue in queues) and min(sizes) >= 0
                queues[0].put("still works")
                os._exit(not (whole and queues[0].get() == "still works"))
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
    going[0] = False
    thread.result()


def test_barrier_that_is_broken_is_broken_in_every_interpreter(new_interpreter: Callable[[], Any]) -> None:
    barrier, other = Barrier(2), new_interpreter()
    other.give(barrier=barrier)
    other.run("barrier.abort()")
    with pytest.raises(BrokenBarrierError):
        barrier.wait()
    with pytest.raises(UsageError, match="action or a timeout"):
        handle(Barrier(2, timeout=1))
    with pytest.raises(UsageError, match="action or a timeout"):
        handle(Barrier(2, print))


def test_rate_limiter_is_shared(new_interpreter: Callable[[], Any]) -> None:
    clock = ManualClock()
    limiter = RateLimiter(1, burst=2, clock=clock)
    other = new_interpreter()
    other.give(limiter=limiter)
    other.run("assert limiter.acquire(False, n=2) and not limiter.acquire(False) and limiter.delay() == 1.0")
    waiter = waiting_thread(limiter, limiter.acquire)
    other.run("assert limiter.statistics() == (0, 2, 1)")
    clock.advance(1)
    assert waiter.result() is True


def test_ends_of_channels_arrive_as_clones_and_close_with_their_interpreter(
    new_interpreter: Callable[[], Any],
) -> None:
    sender, receiver = channel(2)
    casts, listener = broadcast(2)
    watched, watcher = broadcast(latest=("first", 1))
    other = new_interpreter()
    ends = {"sender": sender, "casts": casts, "watched": watched, "watcher": watcher}
    other.run(
        "import pickle\n"
        + "".join(f"{name} = pickle.loads({pickle.dumps(share(end))!r})\n" for name, end in ends.items())
    )
    assert receiver.statistics()[1:3] == (2, 1)
    assert listener.statistics()[1:3] == (2, 1)
    assert watcher.statistics()[1:3] == (2, 2)
    other.run(
        "sender.send([1, 'copy']); sender.send(2)\n"
        "casts.send('cast'); assert watcher.value == ('first', 1)\n"
        "watched.send('second'); assert watcher.receive() == 'second'\n"
    )
    sender.close()
    casts.close()
    watched.close()
    assert [receiver.receive(), receiver.receive()] == [[1, "copy"], 2]
    assert listener.receive() == "cast"
    assert watcher.receive() == "second"
    assert not receiver.statistics().closed
    thread = waiting_thread(listener, listener.receive)
    other.close()
    with pytest.raises(ChannelClosedError):
        thread.result()
    assert list(receiver) == list(watcher) == []
    assert watcher.value == "second"
