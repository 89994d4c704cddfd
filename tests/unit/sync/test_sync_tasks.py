"""Lock and Semaphore in asyncio tasks: cancellation, time-outs, closed loops, and threads beside them.

A task is cancelled at the worst moments here. Whatever happens, no permit is lost and none is doubled.
"""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest
from waiting import run, waiting_task

from fairlead.sync import Lock, Semaphore

pytestmark = pytest.mark.ends_and_free

kinds = pytest.mark.parametrize("fair", [False, True], ids=["barging", "fair"])


@kinds
@pytest.mark.parametrize("cancelled", [1, 50], ids=["one", "many"])
def test_release_after_cancellations_wakes_the_first_that_is_not_cancelled_in_the_next_turn(
    fair: bool, cancelled: int
) -> None:
    async def main() -> None:
        semaphore = Semaphore(0, fair=fair)
        ends = [await waiting_task(semaphore, semaphore.acquire_async()) for _ in range(cancelled)]
        first, second = [await waiting_task(semaphore, semaphore.acquire_async()) for _ in range(2)]
        for task in ends:
            task.cancel()
        semaphore.release()
        await asyncio.sleep(0)
        assert first.done()
        await asyncio.sleep(0)
        assert not second.done()
        assert all(task.cancelled() for task in ends)
        assert semaphore.statistics()[:2] == (0, 1)
        semaphore.release()
        assert await second is True

    run(main())


def test_cancelled_task_that_finds_the_lock_free_still_releases_it() -> None:
    """The cancellation arrives at the next wait inside the body, and the lock is released on the way out."""

    async def main() -> None:
        lock = Lock()

        async def body() -> None:
            asyncio.current_task().cancel()
            async with lock:
                await asyncio.sleep(0)

        with pytest.raises(asyncio.CancelledError):
            await asyncio.ensure_future(body())
        assert not lock.locked()

    run(main())


@kinds
def test_try_between_grant_and_resume_takes_no_second_permit(fair: bool) -> None:
    async def main() -> None:
        semaphore = Semaphore(0, fair=fair)
        waiter = await waiting_task(semaphore, semaphore.acquire_async())
        semaphore.release()
        barged = semaphore.acquire(blocking=False)
        assert barged is False or not fair
        await asyncio.sleep(0)
        if barged:
            semaphore.release()
        assert await waiter is True
        assert semaphore.acquire(blocking=False) is False

    run(main())


def test_no_reference_cycle_keeps_a_lock_alive_after_a_wait() -> None:
    async def main() -> weakref.ref[Lock]:
        lock = Lock()
        await lock.acquire_async()
        task = await waiting_task(lock, lock.acquire_async())
        lock.release()
        await task
        return weakref.ref(lock)

    gc.collect()
    gc.disable()
    try:
        assert run(main())() is None
    finally:
        gc.enable()
