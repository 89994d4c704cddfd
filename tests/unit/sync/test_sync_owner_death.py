"""A thread or a task that ends with a lock in its hands: who waits for it is told, and a lock may break."""

from __future__ import annotations

import asyncio
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import trio
from holdings import HOLDINGS, LIMITER, Holding
from waiting import Thread, blocking_tasks, run, until, until_async, waiting_task, waiting_thread

from fairlead.errors import BrokenLockError, NotHeldError, OwnerDeathWarning
from fairlead.sync import CapacityLimiter, Condition, Event, Lock, RLock, select, waits

pytestmark = pytest.mark.ends_and_free

FREE_THREADED = not getattr(sys, "_is_gil_enabled", lambda: True)()


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


def until_told(wait: Callable[..., Any]) -> None:
    """The system's thread may end a little after Python's."""

    def is_told() -> bool:
        try:
            return bool(wait(timeout=0.001))
        except OwnerDeathWarning as warning:
            return "a thread" in str(warning)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        until(is_told)


@pytest.mark.parametrize("holding", [*HOLDINGS, LIMITER], ids=lambda one: one.name)
def test_thread_that_ended_as_holder_is_reported_once_to_each_thread_and_task_that_comes_to_wait(
    holding: Holding,
) -> None:
    lock = holding.make()
    Thread(holding.calls(lock, holding.taken)[0]).result()
    wait, wait_async, _ = holding.calls(lock, holding.wanted)

    async def main() -> None:
        with pytest.raises(OwnerDeathWarning):
            await wait_async()

    until_told(wait)
    with pytest.warns(OwnerDeathWarning, match="ended") as told:
        assert not wait(timeout=0.02)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not wait(False)  # who does not wait is not told
        run(main())
    assert lock.statistics().waiting == 0


def test_thread_that_waits_already_is_warned_and_goes_on_when_another_releases() -> None:
    lock, leave = Lock(), Event()
    holder = in_a_thread_that_ends_when(leave, lock)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        waiter = waiting_thread(lock, lock.acquire, True, 1000)
        leave.set()
        holder.join()
        until(lambda: told)
        until(waits)  # the waiter was awake to warn
        assert waits()[-1].owners[0].thread == 0
        assert "held by a thread that has ended" in str(waits()[-1])
        lock.release()
        assert waiter.result() is True
    assert [type(one.message) for one in told] == [OwnerDeathWarning]


ONE_AT_A_TIME = [one for one in HOLDINGS if one.kind in {"Lock", "RLock"}]


@pytest.mark.parametrize("holding", ONE_AT_A_TIME, ids=lambda one: one.name)
def test_warning_that_is_an_error_ends_the_wait_of_a_thread(holding: Holding) -> None:
    lock, leave = holding.make(), Event()
    holder = in_a_thread_that_ends_when(leave, lock)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        waiter = waiting_thread(lock, lock.acquire, timeout=1000)
        leave.set()
        holder.join()
        with pytest.raises(OwnerDeathWarning, match="held by a thread that has ended"):
            waiter.result()
    assert lock.statistics().waiting == 0


def test_tasks_that_wait_and_that_come_are_warned() -> None:
    lock, leave = Lock(), Event()
    holder = in_a_thread_that_ends_when(leave, lock)

    async def take() -> None:
        async with lock:
            pass

    async def main() -> None:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            first = await waiting_task(lock, take())
            leave.set()
            await until_async(lambda: told)
            second = asyncio.create_task(take())
            await until_async(lambda: len(told) == 2)
            lock.release()
            await asyncio.gather(first, second)
        assert [type(one.message) for one in told] == [OwnerDeathWarning] * 2
        holder.join()

    run(main())


def test_lock_of_a_task_whose_loops_thread_has_ended_is_reported() -> None:
    lock = Lock()
    Thread(run, take_along(lock)).result()
    until(lambda: ended(lock))
    with pytest.warns(OwnerDeathWarning, match="or by a task of it"):
        assert not lock.acquire(timeout=0.01)


async def take_along(lock: Lock | RLock) -> None:
    await lock.acquire_async()


def test_lock_that_breaks_fails_present_and_later_waiters() -> None:
    lock, leave = Lock(on_owner_death="break"), Event()
    assert (lock.on_owner_death, Lock().on_owner_death) == ("break", "warn")
    holder = in_a_thread_that_ends_when(leave, lock)
    calls = [(lock.acquire,), (lock.acquire, True, 1000), (run, take_along(lock))]
    waiting = [waiting_thread(lock, *call) for call in calls]
    leave.set()
    holder.join()
    for thread in waiting:
        with pytest.raises(BrokenLockError, match="ended without releasing"):
            thread.result()
    for call in (
        lock.release,  # which would mend it
        lock.acquire,
        lambda: lock.acquire(False),
        lambda: lock.acquire(timeout=1),
        lock.__enter__,
    ):
        with pytest.raises(BrokenLockError):
            call()
    with pytest.raises(BrokenLockError):
        run(take_along(lock))
    with pytest.raises(BrokenLockError):
        select(lock.acquire_async())
    assert lock.statistics().waiting == 0


@pytest.mark.parametrize(
    "call", [lambda lock: lock.acquire(False), Lock.acquire, lambda lock: run(take_along(lock))]
)
def test_lock_that_breaks_fails_the_first_caller_after_its_owner_ended(call: Callable[[Lock], Any]) -> None:
    lock = Lock(on_owner_death="break")
    ended_with(lock)
    with pytest.raises(BrokenLockError):
        call(lock)


def test_many_threads_that_end_while_others_wait_are_each_reported() -> None:
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


async def come_in(take_async: Callable[[], Any]) -> None:
    await take_async()


OF_TASKS = [one for one in [*HOLDINGS, LIMITER] if one.kind in {"RLock", "RWLock", "CapacityLimiter"}]
each_that_knows_its_task = pytest.mark.parametrize("holding", OF_TASKS, ids=lambda one: one.name)


@each_that_knows_its_task
def test_task_that_ended_as_holder_is_reported_to_tasks_and_threads_that_come(holding: Holding) -> None:
    lock = holding.make()
    wait, wait_async, _ = holding.calls(lock, holding.wanted)
    _, take_async, _ = holding.calls(lock, holding.taken)

    async def main() -> None:
        await asyncio.create_task(come_in(take_async), name="leaves it")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            waiter = asyncio.create_task(come_in(wait_async))
            await until_async(lambda: told)
        assert [type(one.message) for one in told] == [OwnerDeathWarning]
        assert "task that has ended" in str(told[0].message)
        if holding is not LIMITER:
            [wait_seen] = waits()
            [owner] = wait_seen.owners
            assert (owner.task, owner.ended) == ("leaves it", True)
            assert "held by task 'leaves it', which has ended, of thread" in str(wait_seen)
        waiter.cancel()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not await asyncio.to_thread(wait, False)  # who does not wait is not told
            with pytest.raises(OwnerDeathWarning):
                await come_in(wait_async)
            if not FREE_THREADED or holding.kind != "RLock":  # there its task is known in its own thread
                with pytest.raises(OwnerDeathWarning):
                    await asyncio.to_thread(wait, True, 1000)

    run(main())


@each_that_knows_its_task
def test_task_of_trio_that_ended_as_holder_is_reported(holding: Holding) -> None:
    lock = holding.make()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(come_in, holding.calls(lock, holding.taken)[1])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(OwnerDeathWarning, match="task that has ended"):
                await come_in(holding.calls(lock, holding.wanted)[1])

    trio.run(main)


@each_that_knows_its_task
def test_task_that_lives_is_not_reported(holding: Holding) -> None:
    lock = holding.make()
    wait, wait_async, _ = holding.calls(lock, holding.wanted)

    async def main() -> None:
        async with holding.block(lock, holding.taken):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                waiter = asyncio.create_task(come_in(wait_async))
                await asyncio.sleep(0)
                assert not await asyncio.to_thread(wait, True, 0.001)
        await waiter

    run(main())


def test_acquire_that_gather_wraps_in_a_task_is_reported_as_held_by_an_ended_task() -> None:
    lock = RLock()

    async def main() -> None:
        await asyncio.gather(lock.acquire_async())
        with pytest.raises(NotHeldError):
            lock.release()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(OwnerDeathWarning, match="task that has ended"):
                await lock.acquire_async()

    run(main())


def test_token_on_behalf_of_a_task_that_is_done_may_be_returned_by_any_thread_and_is_not_reported() -> None:
    limiter = CapacityLimiter(1)

    async def main() -> None:
        task = asyncio.create_task(asyncio.sleep(0))
        await task
        limiter.acquire_on_behalf_of(task)
        with warnings.catch_warnings(), blocking_tasks():
            warnings.simplefilter("error")
            assert not limiter.acquire(timeout=0.001)
        limiter.release_on_behalf_of(task)
        await limiter.acquire_async()

    run(main())


def test_condition_takes_its_lock_again_though_the_warning_is_an_error() -> None:
    """A warning that raises is raised once the lock is there, and not again and again meanwhile."""
    lock = Lock()
    condition, waiting, warned = Condition(lock), Event(), Event()

    def wait() -> None:
        with condition:
            waiting.set()
            try:
                condition.wait()
            finally:
                assert lock.locked()

    def raise_it(message: Warning, *_: object) -> None:
        assert not warned.is_set()
        warned.set()
        raise message

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = raise_it  # type: ignore[assignment]
        waiter = Thread(wait)
        waiting.wait()
        ended_with(lock)
        condition.notify()
        warned.wait()
        lock.release()
        with pytest.raises(OwnerDeathWarning):
            waiter.result()
    assert not lock.locked()


class EndsWhenLookedAt(asyncio.Task[None]):
    """A task that is let go on, and ends, while another thread asks whether it has."""

    leave: Event

    def done(self) -> bool:
        if not super().done() and threading.current_thread() is not threading.main_thread():
            self.leave.set()
            until(super().done)
        return super().done()


@each_that_knows_its_task
def test_task_that_releases_and_ends_during_the_lookup_is_not_reported(holding: Holding) -> None:
    lock = holding.make()
    inside, leave = Event(), Event()

    async def body() -> None:
        async with holding.block(lock, holding.taken):
            inside.set()
            await leave.wait_async()

    async def main() -> None:
        task = EndsWhenLookedAt(body())
        task.leave = leave
        await inside.wait_async()
        comer = Thread(holding.calls(lock, holding.wanted)[0])
        if (
            holding.kind == "RLock" and FREE_THREADED
        ):  # there only its own thread asks for the task of an RLock
            leave.set()
        await leave.wait_async()
        await task
        assert await asyncio.to_thread(comer.result)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(main())
