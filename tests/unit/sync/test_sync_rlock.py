"""RLock: who its holder is, thread or task, and that nobody else is taken for it."""

from __future__ import annotations

import asyncio
import gc
import pickle
import sys
import threading
import weakref
from typing import Any

import pytest
import trio
import trio.testing
from waiting import Thread, run, until, until_async

from fairlead import errors
from fairlead.sync import RLock


@pytest.fixture(params=[False, True], ids=["barging", "fair"])
def lock(request: pytest.FixtureRequest) -> RLock:
    return RLock(fair=request.param)


def free(lock: RLock) -> bool:
    return lock.statistics()[:3] == (False, 0, 0)


async def waiter(lock: RLock) -> asyncio.Task[Any]:
    """A task that queues for the lock, and keeps it once it has it until it is cancelled."""

    async def body() -> None:
        async with lock:
            await asyncio.get_running_loop().create_future()

    waiting = lock.statistics().waiting
    task = asyncio.ensure_future(body())
    await until_async(lambda: lock.statistics().waiting == waiting + 1)
    return task


def test_thread_takes_it_again_and_releases_it_as_often(lock: RLock) -> None:
    assert lock.acquire() is True
    with lock as entered:
        assert entered is True
        assert lock.acquire(False) is True
        assert lock.acquire(timeout=0) is True
        assert lock.statistics().depth == 4
        lock.release()
        lock.release()
    assert Thread(lock.acquire, False).result() is False
    assert lock.locked()
    lock.release()
    assert free(lock)
    assert Thread(lock.acquire, False).result() is True


def test_task_takes_it_again_by_either_face_and_no_other_task_does(lock: RLock) -> None:
    async def other() -> None:
        assert lock.acquire(False) is False
        with pytest.raises(errors.NotHeldError, match="another thread or task"):
            lock.release()
        with pytest.raises(errors.NotHeldError):
            await lock.__aexit__(None, None, None)

    async def main() -> None:
        async with lock, lock:
            assert await lock.acquire_async() is True
            with lock:
                assert lock.statistics().depth == 4
                assert Thread(lock.acquire, False).result() is False
                await asyncio.ensure_future(other())
            lock.release()
            assert lock.statistics().depth == 2
        assert free(lock)
        with lock:  # the task's, not the thread's: a task may switch inside
            await asyncio.ensure_future(other())
            assert await lock.acquire_async() is True
            lock.release()
        assert free(lock)

    run(main())


def test_trio_task_takes_it_again_and_no_other_task_does(lock: RLock) -> None:
    async def other() -> None:
        assert lock.acquire(False) is False
        with pytest.raises(errors.NotHeldError):
            lock.release()

    async def main() -> None:
        async with lock, trio.open_nursery() as nursery:
            with lock:
                nursery.start_soon(other)
                await trio.testing.wait_all_tasks_blocked()
        assert free(lock)

    trio.run(main)


@pytest.mark.parametrize("wrong", ["nobody", "thread", "task for thread", "thread for task"])
def test_release_by_a_thread_without_the_lock_is_refused_and_changes_nothing(lock: RLock, wrong: str) -> None:
    async def main() -> None:
        if wrong == "task for thread":
            with pytest.raises(errors.NotHeldError):
                lock.release()
        else:
            await lock.acquire_async()
            with pytest.raises(errors.NotHeldError):
                Thread(lock.release).result()
            with pytest.raises(errors.NotHeldError):
                Thread(lock._release_save).result()
            lock.release()

    if wrong == "nobody":
        with pytest.raises(errors.NotHeldError, match="un-acquired"):
            lock.release()
        assert free(lock)
    elif wrong == "thread":
        lock.acquire()
        with pytest.raises(RuntimeError):
            Thread(lock.release).result()
        assert lock.statistics().depth == 1
        lock.release()
    elif wrong == "task for thread":
        lock.acquire()
        run(main())
        lock.release()
    else:
        run(main())
    assert free(lock)


def test_thread_that_would_wait_for_its_own_loops_task_gets_an_error(lock: RLock) -> None:
    async def other() -> None:
        with pytest.raises(errors.DeadlockError, match="a task of this thread"):
            lock.acquire()
        with pytest.raises(errors.DeadlockError), lock:
            pass
        assert lock.acquire(timeout=0.0001) is False

    async def main() -> None:
        loop, failed = asyncio.get_running_loop(), []

        def callback() -> None:  # of no task: the thread itself
            try:
                lock.acquire()
            except errors.DeadlockError as error:
                failed.append(error)

        async with lock:
            await asyncio.ensure_future(other())
            loop.call_soon(callback)
            await until_async(lambda: failed)
        assert free(lock)

    run(main())


def test_thread_that_would_wait_for_a_granted_task_of_its_own_gets_an_error() -> None:
    """The lock is the task's before it resumed."""

    async def main() -> None:
        lock = RLock(fair=True)
        await lock.acquire_async()
        task = await waiter(lock)
        lock.release()
        assert lock.locked()
        with pytest.raises(errors.DeadlockError):
            lock.acquire()
        task.cancel()
        await asyncio.wait([task])
        assert free(lock)

    run(main())


def test_task_that_would_wait_for_the_thread_beneath_it_gets_an_error(lock: RLock) -> None:
    async def main() -> None:
        with pytest.raises(errors.DeadlockError, match="outside of the task"):
            lock.acquire()
        assert lock.acquire(False) is False

    with lock:
        run(main())
    assert free(lock)


def test_identity_is_never_that_of_an_earlier_thread_or_task(lock: RLock) -> None:
    """Identifiers of threads, and the addresses of tasks, are used again; the lock stays with who is gone."""
    Thread(lock.acquire).result()
    for _ in range(20):
        assert Thread(lock.acquire, False).result() is False
        with pytest.raises(errors.NotHeldError):
            Thread(lock.release).result()
    task_held = RLock()

    async def take() -> None:
        await task_held.acquire_async()

    async def other() -> None:
        assert task_held.acquire(False) is False

    async def main() -> None:
        await asyncio.ensure_future(take())
        for _ in range(20):
            await asyncio.ensure_future(other())

    run(main())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks start eagerly from Python 3.12 on")
def test_task_that_runs_within_another_ones_step_is_not_its_holder(lock: RLock) -> None:
    async def within() -> tuple[bool, bool]:
        return lock.acquire(False), lock._is_owned()

    async def main() -> None:
        with lock:
            loop = asyncio.get_running_loop()  # which 3.13 wants to be told
            assert await asyncio.Task(within(), loop=loop, eager_start=True) == (False, False)
            assert lock._is_owned()

    run(main())


def test_task_that_ended_with_it_is_collected_with_the_lock() -> None:
    async def main() -> weakref.ref[Any]:
        lock = RLock()

        async def hold() -> None:
            await lock.acquire_async()

        task = asyncio.ensure_future(hold())
        await task
        task.lock = lock  # type: ignore[attr-defined] # a cycle
        return weakref.ref(lock)

    reference = run(main())
    gc.collect()
    assert reference() is None


def test_condition_of_threading_takes_it(lock: RLock) -> None:
    condition, woken = threading.Condition(lock), []  # type: ignore[arg-type]

    def wait() -> None:
        with condition, condition:
            assert condition.wait(30)
            assert lock._recursion_count() == 2
            woken.append(1)

    thread = Thread(wait)
    until(lambda: condition._waiters)  # type: ignore[attr-defined]
    with condition:
        condition.notify()
        assert lock._is_owned()
    thread.result()
    assert woken == [1]
    assert not lock._is_owned()
    assert lock._recursion_count() == 0


def test_it_shows_its_state_and_is_not_pickled() -> None:
    lock = RLock()
    assert repr(lock).startswith("<fairlead.sync.RLock unlocked count=0, 0 waiting, at 0x")
    with lock, lock:
        assert lock.statistics() == (True, 2, 0, False)
        assert repr(lock).startswith("<fairlead.sync.RLock locked count=2, 0 waiting, at 0x")
    assert RLock(fair=True).statistics() == (False, 0, 0, True)
    with pytest.raises(TypeError, match="RLock"):
        pickle.dumps(lock)
    assert weakref.ref(lock)() is lock
