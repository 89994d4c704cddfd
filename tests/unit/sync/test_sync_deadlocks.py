"""Deadlocks: every circle of waits is found, and nothing else."""

from __future__ import annotations

import asyncio
import ctypes
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from waiting import PATIENCE_S, Thread, blocking_tasks, deadlocks, run, until, until_async

from fairlead.errors import DeadlockWarning, NotHeldError
from fairlead.sync import (
    Deadlock,
    Event,
    Lock,
    RLock,
    RWLock,
    detect_deadlocks,
    select,
    waits,
)

pytestmark = pytest.mark.ends_and_free

GIL = getattr(__import__("sys"), "_is_gil_enabled", lambda: True)()
needs_gil = pytest.mark.skipif(not GIL, reason="tasks of other threads are named with a GIL only")


def name(wait: Any) -> str:
    return wait.waiter.task or wait.waiter.thread_name


def found() -> set[frozenset[str]]:
    """The names in each circle."""
    return {frozenset(name(wait) for wait in deadlock.waits) for deadlock in deadlocks()}


@contextmanager
def threads(bodies: dict[str, Callable[[], Any]], locks: list[Lock]) -> Iterator[None]:
    """Threads of these names; at the end locks are released from outside until all of them are through."""

    def body(name: str, function: Callable[[], Any]) -> None:
        threading.current_thread().name = name
        function()

    running = [Thread(body, name, function) for name, function in bodies.items()]
    try:
        yield
    finally:
        while any(thread.is_alive() for thread in running):
            for lock in locks:
                give(lock)
        for thread in running:
            thread.result()


def give(lock: Lock) -> None:
    with suppress(NotHeldError):
        lock.release()


def hold_and_take(mine: Lock, all_hold: threading.Barrier, theirs: Lock | None) -> Callable[[], None]:
    def body() -> None:
        mine.acquire()
        all_hold.wait(40)
        if theirs is not None:
            theirs.acquire()
            give(theirs)
        else:
            until(lambda: not mine.locked())
        give(mine)

    return body


@pytest.mark.parametrize(
    ("wants", "circles"),
    [
        ([1, 0], [{0, 1}]),
        ([1, 2, 0], [{0, 1, 2}]),
        ([1, 0, 0, 2], [{0, 1}]),
        ([1, 0, 3, 2], [{0, 1}, {2, 3}]),
        ([0], [{0}]),
        ([1, 2, None], []),
    ],
    ids=str,
)
def test_circles_of_threads_are_found_each_once_and_chains_are_none(
    wants: list[int | None], circles: list[set[int]]
) -> None:
    locks = [Lock() for _ in wants]
    together = threading.Barrier(len(wants))
    bodies = {
        str(i): hold_and_take(locks[i], together, None if want is None else locks[want])
        for i, want in enumerate(wants)
    }
    with threads(bodies, locks):
        waiting = sum(want is not None for want in wants)
        until(lambda: sum(lock.statistics().waiting for lock in locks) == waiting)
        expected = {frozenset(map(str, circle)) for circle in circles}
        until(lambda: found() == expected)
        assert found() == expected
        for deadlock in deadlocks():
            for wait, after in zip(deadlock.waits, [*deadlock.waits[1:], deadlock.waits[0]], strict=True):
                assert [owner.thread for owner in wait.owners] == [after.waiter.thread]
            assert str(deadlock).startswith("deadlock: thread '")
            assert str(deadlock).count("held by") == len(deadlock.waits)
    assert deadlocks() == ()


def test_detector_reports_each_deadlock_once_and_again_if_it_recurs() -> None:
    told: list[Deadlock] = []
    with detect_deadlocks(interval=0.005, on_deadlock=told.append) as detector:
        for times in (1, 2):
            first, second, together = Lock(), Lock(), threading.Barrier(2)
            bodies = {
                "a": hold_and_take(first, together, second),
                "b": hold_and_take(second, together, first),
            }
            with threads(bodies, [first, second]):
                until(lambda times=times: len(told) == times)  # type: ignore[misc]
                looks = Event()
                looks.wait(0.05)  # several looks more, which tell nothing new
                assert len(told) == times
            assert {name(wait) for wait in told[-1].waits} == {"a", "b"}
    detector.stop()
    looked = len(told)
    lock = Lock()
    with threads({"alone": hold_and_take(lock, threading.Barrier(1), lock)}, [lock]):
        until(lambda: found() == {frozenset({"alone"})})
        assert len(told) == looked


def test_warning_names_everyone_and_what_a_callback_raises_ends_nothing() -> None:
    raised: list[Any] = []
    told: list[Deadlock] = []

    def refuse(deadlock: Deadlock) -> None:
        told.append(deadlock)
        raise ValueError(name(deadlock.waits[0]))

    hook, threading.excepthook = threading.excepthook, raised.append
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with detect_deadlocks(interval=0.005), detect_deadlocks(interval=0.005, on_deadlock=refuse):
                for who in ("one", "two"):
                    lock = Lock()
                    before = len(seen)
                    with threads({who: hold_and_take(lock, threading.Barrier(1), lock)}, [lock]):
                        until(lambda before=before: len(seen) > before)  # type: ignore[misc]
                        until(lambda who=who: name(told[-1].waits[0]) == who if told else False)  # type: ignore[misc]
    finally:
        threading.excepthook = hook
    assert [type(one.message) for one in seen] == [DeadlockWarning] * 2
    assert "deadlock: thread 'one' waits for itself" in str(seen[0].message)
    assert [str(one.exc_value) for one in raised] == ["one", "two"]


def test_task_that_blocks_its_loop_for_a_thread_that_waits_for_another_of_its_tasks_is_found() -> None:
    of_task, of_thread, held = Lock(), Lock(), Event()

    async def main() -> None:
        with suppress(NotHeldError):  # it is released from outside in the end
            await hold()

    async def hold() -> None:
        async with of_task:
            await held.wait_async()

            async def block() -> None:
                with blocking_tasks():
                    of_thread.acquire()
                give(of_thread)

            await asyncio.create_task(block())

    def other() -> None:
        until(of_task.locked)
        of_thread.acquire()
        held.set()
        of_task.acquire()
        give(of_task)
        give(of_thread)

    with threads({"the loop": lambda: run(main()), "the other": other}, [of_task, of_thread]):
        until(deadlocks)
        assert found() == {frozenset({"the loop", "the other"})}


@needs_gil
def test_tasks_of_two_loops_are_found_by_name_with_locks_that_forget_them_otherwise() -> None:
    first, second, told = Lock(), Lock(), []
    tasks: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []
    together = threading.Barrier(2)

    async def body(mine: Lock, theirs: Lock) -> None:
        async with mine:
            await asyncio.to_thread(together.wait, 40)
            async with theirs:
                pass

    async def main(name: str, mine: Lock, theirs: Lock) -> None:
        task = asyncio.create_task(body(mine, theirs), name=name)
        tasks.append((asyncio.get_running_loop(), task))
        await asyncio.wait([task])  # cancelled, or it has got what the other one left

    with detect_deadlocks(interval=0.005, on_deadlock=told.append):
        loops = [Thread(run, main("left", first, second)), Thread(run, main("right", second, first))]
        until(lambda: told)
        loop, task = tasks[0]
        loop.call_soon_threadsafe(task.cancel)  # and the other one goes on
        for thread in loops:
            thread.result()
    assert {name(wait) for wait in told[0].waits} == {"left", "right"}
    assert all(wait.waiter.stack[0].name == "body" for wait in told[0].waits)
    assert not first.locked()
    assert not second.locked()


@needs_gil
@pytest.mark.parametrize("kind", [RLock, RWLock])
def test_tasks_with_reentrant_and_readers_writer_locks_are_found(kind: Any) -> None:
    def of(lock: Any) -> Any:
        return lock if kind is RLock else lock.writing

    async def main() -> None:
        first, second, together = kind(), kind(), asyncio.Barrier(2)

        async def body(mine: Any, theirs: Any) -> None:
            async with mine if kind is RLock else mine.reading:
                await together.wait()
                async with of(theirs):
                    pass

        tasks = [
            asyncio.create_task(body(first, second), name="left"),
            asyncio.create_task(body(second, first), name="right"),
        ]
        await until_async(lambda: found() == {frozenset({"left", "right"})})
        tasks[0].cancel()
        await asyncio.wait(tasks)
        assert deadlocks() == ()

    run(main())


@pytest.mark.parametrize("gives_up", [False, True], ids=["chooses", "gives-up"])
def test_circle_that_a_choice_or_a_timeout_can_end_is_no_deadlock(gives_up: bool) -> None:
    first, second, event, together = Lock(), Lock(), Event(), threading.Barrier(2)

    def may_go_on() -> None:
        first.acquire()
        together.wait(40)
        if gives_up:
            second.acquire(timeout=1000)
        else:
            select(second.acquire_async(), event.wait_async())
        give(first)

    with threads({"may": may_go_on, "waits": hold_and_take(second, together, first)}, [first, second]):
        until(lambda: first.statistics().waiting == second.statistics().waiting == 1)
        assert deadlocks() == ()
        event.set()


def test_readers_behind_a_writer_are_no_deadlock() -> None:
    shared, inner, inside = RWLock(), Lock(), Event()

    def reader() -> None:
        with shared.reading:
            inside.set()
            inner.acquire()

    def writer() -> None:
        inside.wait()
        if shared.writing.acquire(timeout=1000):
            shared.writing.release()

    with threads({"writer": writer}, []):
        until(lambda: shared.statistics().waiting == 0)
        inner.acquire()
        with threads({"reader": reader}, [inner]):
            until(lambda: shared.statistics().waiting == 1)
            give(inner)  # the reader has it, and goes
    assert deadlocks() == ()


def test_locks_that_are_always_taken_in_one_order_are_never_reported() -> None:
    """Threads and tasks take several locks at once, in an order that cannot end in a circle."""
    locks = [Lock(), RLock(), Lock(fair=True)]
    told: list[Deadlock] = []

    def thread(seed: int) -> None:
        for i in range(200):
            low = (seed + i) % 3
            with locks[low]:
                for lock in locks[low + 1 :]:
                    with lock:
                        pass

    async def task(seed: int) -> None:
        for i in range(40):
            low = (seed + i) % 3
            async with locks[low]:
                await asyncio.sleep(0)
                for lock in locks[low + 1 :]:
                    async with lock:
                        await asyncio.sleep(0)

    async def loop(seed: int) -> None:
        await asyncio.gather(*(task(seed + i) for i in range(3)))

    with detect_deadlocks(interval=0.0005, on_deadlock=told.append):
        working = [Thread(thread, i) for i in range(3)] + [Thread(run, loop(i)) for i in range(2)]
        for one in working:
            one.result()
    assert told == []


@contextmanager
def stopped(ident: int) -> Iterator[None]:
    """While it is entered, this thread is inside a handler of a signal, which the next signal ends."""
    libc = ctypes.CDLL(None)
    libc.signal.restype = ctypes.c_void_p
    libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    # functions of C, which leave nothing for Python to handle later
    before = libc.signal(signal.SIGUSR2, ctypes.cast(libc.abs, ctypes.c_void_p))
    handler = libc.signal(signal.SIGUSR1, ctypes.cast(libc.pause, ctypes.c_void_p))
    task = next(thread.native_id for thread in threading.enumerate() if thread.ident == ident)
    status = Path(f"/proc/self/task/{task}/status")

    def signals(state: str) -> int:
        line = next(line for line in status.read_text().splitlines() if line.startswith(state))
        return int(line.split()[1], 16)

    def inside() -> int:  # a signal is blocked while its handler runs
        return signals("SigBlk:") >> (signal.SIGUSR1 - 1) & 1

    def pending() -> int:
        return signals("SigPnd:") >> (signal.SIGUSR2 - 1) & 1

    try:
        signal.pthread_kill(ident, signal.SIGUSR1)
        until(inside)
        yield
        while inside():  # one that comes before it has paused does not end it
            signal.pthread_kill(ident, signal.SIGUSR2)
        until(lambda: not pending())  # else the last one ends the process as soon as the handler is gone
    finally:
        libc.signal(signal.SIGUSR1, handler)
        libc.signal(signal.SIGUSR2, before)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("make", [lambda: Lock(fair=True), lambda: RLock(fair=True)], ids=["Lock", "RLock"])
def test_thread_that_was_granted_a_lock_and_has_yet_to_wake_does_not_wait_for_itself(
    make: Callable[[], Lock | RLock],
) -> None:
    lock, over = make(), threading.Event()
    lock.acquire()

    def pass_through() -> None:
        with lock:
            pass
        over.wait(PATIENCE_S)

    waiter = Thread(pass_through)
    until(lambda: lock.statistics().waiting == 1 and waits())
    with stopped(waiter.ident or 0):
        lock.release()  # to the waiter, in whose name it is held from now on
        assert lock.locked()
        assert deadlocks() == ()
        assert waits() == ()
    over.set()
    waiter.result()


@needs_gil
@pytest.mark.parametrize("library", ["asyncio", "trio"])
def test_task_that_takes_its_lock_again_is_named_and_not_made_to_fail(library: str) -> None:
    """Another may release a Lock, and so it waits, as asyncio's; anyio's and trio's raise RuntimeError."""
    lock, told = Lock(), []

    async def take_twice() -> None:
        await lock.acquire_async()
        await lock.acquire_async()

    with detect_deadlocks(interval=0.005, on_deadlock=told.append):
        thread = Thread(run, take_twice()) if library == "asyncio" else Thread(trio.run, take_twice)
        until(lambda: told)
        lock.release()
        thread.result()
    assert [len(one.waits) for one in told] == [1]
    assert "waits for itself" in str(told[0])
