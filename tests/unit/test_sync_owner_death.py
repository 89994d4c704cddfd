"""A thread that ends with a lock in its hands: who waits for it is told, and a lock may break."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from waiting import Thread, run, until

from fairlead.errors import BrokenResourceError, NotHeld, OwnerDeathWarning, UsageError
from fairlead.sync import Condition, Event, Lock, RLock, select, waits


def ended_with(lock: Lock | RLock) -> None:
    """A thread has taken it and is no more."""
    Thread(lock.acquire).result()
    until(lambda: ended(lock))


def ended(lock: Any) -> bool:
    """The system's thread may end a little after Python's."""
    from fairlead import _native

    [(owner, *_)] = lock._holders()
    return _native.thread_of(owner) == 0


def in_a_thread_that_ends_when(event: Event, lock: Lock | RLock) -> threading.Thread:
    def body() -> None:
        lock.acquire()
        event.wait()

    thread = Thread(body)
    until(lambda: lock.locked())
    return thread


@pytest.mark.parametrize("make", [Lock, RLock, lambda: Lock(fair=True)], ids=["Lock", "RLock", "fair"])
def test_who_comes_to_wait_is_warned_once_and_waits(make: Callable[[], Lock | RLock]) -> None:
    lock = make()
    ended_with(lock)
    with pytest.warns(OwnerDeathWarning, match="is held by a thread that has ended") as told:
        assert not lock.acquire(timeout=0.02)
    assert len(told) == 1
    assert repr(lock).split(" locked")[0] in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not lock.acquire(False)  # who does not wait is not told
        with pytest.raises(OwnerDeathWarning):
            lock.acquire(timeout=1000)
    assert lock.statistics().waiting == 0


@pytest.mark.parametrize("kind", [Lock, RLock])
def test_thread_that_waits_already_is_warned_and_goes_on_when_another_releases(kind: Any) -> None:
    lock, leave = kind(), Event()
    holder = in_a_thread_that_ends_when(leave, lock)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        waiter = Thread(lock.acquire, True, 1000 if kind is Lock else 0.5)
        until(lambda: lock.statistics().waiting == 1)
        leave.set()
        holder.join()
        until(lambda: told)
        if kind is Lock:
            assert waits()[-1].owners[0].thread == 0
            assert "held by a thread that has ended" in str(waits()[-1])
            lock.release()
        assert waiter.result() is (kind is Lock)
    assert [type(one.message) for one in told] == [OwnerDeathWarning]


def test_tasks_that_wait_and_that_come_are_warned() -> None:
    lock, leave = Lock(), Event()
    holder = in_a_thread_that_ends_when(leave, lock)

    async def take() -> None:
        async with lock:
            pass

    async def main() -> None:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            first = asyncio.create_task(take())
            while not lock.statistics().waiting:
                await asyncio.sleep(0)
            leave.set()
            while not told:
                await asyncio.sleep(0)
            second = asyncio.create_task(take())
            while len(told) < 2:
                await asyncio.sleep(0)
            lock.release()
            await asyncio.gather(first, second)
        assert [type(one.message) for one in told] == [OwnerDeathWarning] * 2
        holder.join()

    run(main())


def test_lock_of_a_task_whose_loops_thread_has_ended_is_told() -> None:
    lock = Lock()
    Thread(run, take_along(lock)).result()
    until(lambda: ended(lock))
    with pytest.warns(OwnerDeathWarning, match="or by a task of it"):
        assert not lock.acquire(timeout=0.01)


async def take_along(lock: Lock) -> None:
    await lock.acquire_async()


def test_lock_that_breaks_lets_all_who_wait_and_who_come_fail() -> None:
    lock, leave = Lock(on_owner_death="break"), Event()
    assert (lock.on_owner_death, Lock().on_owner_death) == ("break", "warn")
    holder = in_a_thread_that_ends_when(leave, lock)
    waiting = [Thread(lock.acquire), Thread(lock.acquire, True, 1000), Thread(run, take_along(lock))]
    until(lambda: lock.statistics().waiting == 3)
    leave.set()
    holder.join()
    for thread in waiting:
        with pytest.raises(BrokenResourceError, match="ended without releasing"):
            thread.result()
    for call in (lock.acquire, lambda: lock.acquire(False), lambda: lock.acquire(timeout=1), lock.__enter__):
        with pytest.raises(BrokenResourceError):
            call()
    with pytest.raises(BrokenResourceError):
        run(take_along(lock))
    with pytest.raises(BrokenResourceError):
        select(lock.acquire_async())
    assert lock.statistics().waiting == 0


def test_lock_that_breaks_does_so_for_who_comes_first_after_the_end() -> None:
    for call in (
        lambda lock: lock.acquire(False),
        lambda lock: lock.acquire(),
        lambda lock: run(take_along(lock)),
    ):
        lock = Lock(on_owner_death="break")
        ended_with(lock)
        with pytest.raises(BrokenResourceError):
            call(lock)


def test_lock_that_breaks_is_a_lock_as_long_as_nobody_ends_with_it() -> None:
    lock, inside = Lock(on_owner_death="break"), [0]

    def work() -> None:
        for _ in range(300):
            with lock:
                inside[0] += 1

    for thread in [Thread(work) for _ in range(4)]:
        thread.result()
    assert inside == [1200]
    lock.acquire()
    lock.release()
    with pytest.raises(NotHeld):
        lock.release()


def test_bad_words_are_refused() -> None:
    with pytest.raises(UsageError, match="'warn' or 'break'"):
        Lock(on_owner_death="ignore")
    with pytest.raises(TypeError):
        Lock(on_owner_death=1)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not one that breaks"):
        Condition(Lock(on_owner_death="break"))


def test_many_threads_that_end_while_others_wait_are_each_told_of() -> None:
    """Whenever a holder ends, before or while another begins to wait, that one is told."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for i in range(60):
            lock = Lock()
            before = len(told)
            holder = Thread(lock.acquire)
            until(lock.locked)
            waiter = Thread(lock.acquire)
            until(lambda before=before: len(told) > before)  # type: ignore[misc]
            lock.release()
            waiter.result()
            holder.result()
            assert len(told) == before + 1, i
