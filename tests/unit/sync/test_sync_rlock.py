"""RLock: who its holder is, thread or task, and that nobody else is taken for it."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest
from waiting import Thread, run, until

from fairlead import errors
from fairlead.sync import RLock

pytestmark = pytest.mark.ends_and_free


@pytest.fixture(params=[False, True], ids=["barging", "fair"])
def lock(request: pytest.FixtureRequest) -> RLock:
    return RLock(fair=request.param)


def free(lock: RLock) -> bool:
    return lock.statistics()[:3] == (False, 0, 0)


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
