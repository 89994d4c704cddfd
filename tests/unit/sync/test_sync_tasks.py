"""Lock and Semaphore in asyncio tasks: cancellation, time-outs, closed loops, and threads beside them.

A task is cancelled at the worst moments here. Whatever happens, no permit is lost and none is doubled.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable
from typing import Any

import pytest
from waiting import Thread, run, until_async

from fairlead.sync import Lock, Semaphore

kinds = pytest.mark.parametrize("fair", [False, True], ids=["barging", "fair"])


async def wait_for(awaitable: Awaitable[Any], semaphore: Lock | Semaphore) -> asyncio.Task[Any]:
    """A task that awaits it, and is queued."""

    async def body() -> Any:
        return await awaitable

    waiting = semaphore.statistics().waiting
    task = asyncio.ensure_future(body())
    await until_async(lambda: semaphore.statistics().waiting == waiting + 1)
    return task


@kinds
def test_lock_is_as_asyncio_lock_in_a_task(fair: bool) -> None:
    async def main() -> None:
        lock = Lock(fair=fair)
        async with lock as entered:
            assert entered is None
            assert lock.locked()
        assert not lock.locked()
        assert await lock.acquire_async() is True
        lock.release()
        with pytest.raises(KeyError):
            async with lock:
                raise KeyError
        assert not lock.locked()

    run(main())


@kinds
@pytest.mark.parametrize("cancelled", [1, 50], ids=["one", "many"])
def test_release_after_cancellations_wakes_the_first_that_is_not_cancelled_in_the_next_turn(
    fair: bool, cancelled: int
) -> None:
    async def main() -> None:
        semaphore = Semaphore(0, fair=fair)
        ends = [await wait_for(semaphore.acquire_async(), semaphore) for _ in range(cancelled)]
        first, second = [await wait_for(semaphore.acquire_async(), semaphore) for _ in range(2)]
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


def test_release_of_many_with_the_middle_cancelled_keeps_the_order() -> None:
    async def main() -> None:
        semaphore, order = Semaphore(0, fair=True), []

        async def take(me: int) -> None:
            await semaphore.acquire_async()
            order.append(me)

        tasks = []
        for me in range(6):
            tasks.append(asyncio.ensure_future(take(me)))
            await until_async(lambda me=me: semaphore.statistics().waiting == me + 1)
        tasks[2].cancel()
        tasks[3].cancel()
        semaphore.release(4)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert order == [0, 1, 4, 5]
        assert semaphore.statistics()[:2] == (0, 0)

    run(main())


@kinds
def test_try_between_grant_and_resume_takes_no_second_permit(fair: bool) -> None:
    async def main() -> None:
        semaphore = Semaphore(0, fair=fair)
        waiter = await wait_for(semaphore.acquire_async(), semaphore)
        semaphore.release()
        barged = semaphore.acquire(blocking=False)
        assert barged is False or not fair
        await asyncio.sleep(0)
        if barged:
            semaphore.release()
        assert await waiter is True
        assert semaphore.acquire(blocking=False) is False

    run(main())


def test_thread_wakes_a_task_and_a_task_a_thread() -> None:
    semaphore, answer = Semaphore(0), Semaphore(0)

    def thread() -> None:
        for _ in range(100):
            semaphore.release()
            assert answer.acquire(timeout=30)

    async def main() -> None:
        for _ in range(100):
            await semaphore.acquire_async()
            answer.release()

    other = Thread(thread)
    run(main())
    other.result()


@kinds
def test_coroutine_that_is_closed_while_it_waits_passes_its_grant_on(fair: bool) -> None:
    async def main() -> None:
        lock = Lock(fair=fair)
        await lock.acquire_async()

        async def body() -> None:
            async with lock:
                pass

        coroutine = body()
        coroutine.send(None)
        assert lock.statistics().waiting == 1
        coroutine.close()
        assert lock.statistics().waiting == 0
        coroutine = body()
        coroutine.send(None)
        lock.release()
        coroutine.close()
        assert lock.statistics()[:2] == (False, 0)

    run(main())


def test_no_reference_cycle_keeps_a_lock_alive_after_a_wait() -> None:
    async def main() -> weakref.ref[Lock]:
        lock = Lock()
        await lock.acquire_async()
        task = await wait_for(lock.acquire_async(), lock)
        lock.release()
        await task
        return weakref.ref(lock)

    gc.collect()
    gc.disable()
    try:
        assert run(main())() is None
    finally:
        gc.enable()
