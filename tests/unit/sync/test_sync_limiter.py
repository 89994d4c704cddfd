"""CapacityLimiter, once, Flag and ResourceGuard."""

from __future__ import annotations

import asyncio
import math
import pickle
from typing import Any

import pytest
import trio
from waiting import Thread, run, until, until_async

from fairlead import errors
from fairlead.sync import CapacityLimiter, Event, Flag, ResourceGuard, once


def test_each_thread_and_task_borrows_one_token_and_returns_it() -> None:
    limiter, inside, most = CapacityLimiter(2), [0], [0]

    def thread() -> None:
        for _ in range(50):
            with limiter:
                assert limiter.borrowed_tokens <= 2

    async def task(checkpoint: Any) -> None:
        for _ in range(50):
            async with limiter:
                inside[0] += 1
                await checkpoint()
                most[0] = max(most[0], limiter.borrowed_tokens)
                inside[0] -= 1

    async def tasks() -> None:
        await asyncio.gather(*(task(lambda: asyncio.sleep(0)) for _ in range(3)))

    async def trio_tasks() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(task, trio.lowlevel.checkpoint)

    threads = [Thread(thread), Thread(run, tasks()), Thread(trio.run, trio_tasks)]
    for one in threads:
        one.result()
    assert most[0] <= 2
    assert limiter.statistics() == (0, 2, 0, False)


def test_a_second_token_is_refused_and_so_is_giving_back_none() -> None:
    async def other(limiter: CapacityLimiter) -> None:
        with pytest.raises(errors.NotHeldError):
            limiter.release()

    async def main() -> None:
        limiter = CapacityLimiter(2)
        async with limiter:
            with pytest.raises(errors.AlreadyHeldError):
                await limiter.acquire_async()
            with pytest.raises(errors.AlreadyHeldError):
                limiter.acquire()
            await asyncio.ensure_future(other(limiter))
        assert limiter.borrowed_tokens == 0

    run(main())
    limiter = CapacityLimiter(2)
    with pytest.raises(errors.NotHeldError):
        limiter.release()
    with limiter:
        with pytest.raises(errors.AlreadyHeldError):
            limiter.acquire(False)
        with pytest.raises(errors.NotHeldError):
            Thread(limiter.release).result()
        assert limiter.acquire_on_behalf_of("somebody") is True
        assert limiter.acquire_on_behalf_of("another", False) is False
        assert limiter.acquire_on_behalf_of("another", timeout=1e-9) is False
        Thread(limiter.release_on_behalf_of, "somebody").result()
        with pytest.raises(errors.NotHeldError):
            limiter.release_on_behalf_of("another")
    assert limiter.statistics() == (0, 2, 0, False)


def test_waiters_cancelled_and_granted_leave_no_token_behind() -> None:
    async def main() -> None:
        limiter = CapacityLimiter(1, fair=True)
        limiter.acquire_on_behalf_of(0)
        first, second = (
            asyncio.ensure_future(limiter.acquire_on_behalf_of_async(one)) for one in ("first", "second")
        )
        await until_async(lambda: limiter.statistics().waiting == 2)
        with pytest.raises(errors.AlreadyHeldError, match="waits"):
            limiter.acquire_on_behalf_of("second", False)
        with pytest.raises(errors.NotHeldError):
            limiter.release_on_behalf_of("second")
        limiter.release_on_behalf_of(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert await second is True
        limiter.release_on_behalf_of("second")
        assert limiter.statistics() == (0, 1, 0, True)

    run(main())


def test_token_that_a_waiter_was_granted_is_lent_before_it_resumes() -> None:
    async def main() -> None:
        limiter = CapacityLimiter(1, fair=True)
        limiter.acquire_on_behalf_of(0)
        waiters = [asyncio.ensure_future(limiter.acquire_on_behalf_of_async(one)) for one in ("a", "b", "c")]
        await until_async(lambda: limiter.statistics().waiting == 3)
        limiter.release_on_behalf_of(0)
        assert (limiter.borrowed_tokens, limiter.available_tokens) == (1, 0)
        assert limiter.acquire_on_behalf_of("new", False) is False
        limiter.total_tokens = 3
        assert limiter.statistics() == (3, 3, 0, True)
        limiter.total_tokens = 0
        assert (limiter.borrowed_tokens, limiter.available_tokens) == (3, -3)
        await asyncio.gather(*waiters)
        assert (limiter.borrowed_tokens, limiter.available_tokens) == (3, -3)

    run(main())


def test_thread_that_would_wait_for_a_token_granted_to_its_own_task_gets_an_error() -> None:
    async def take(limiter: CapacityLimiter) -> bool:
        return await limiter.acquire_async()

    async def main() -> None:
        limiter = CapacityLimiter(1)
        await limiter.acquire_async()
        other = asyncio.create_task(take(limiter))
        await until_async(lambda: limiter.statistics().waiting == 1)
        limiter.release()
        with pytest.raises(errors.DeadlockError, match="this thread and its tasks"):
            limiter.acquire()
        assert await other

    run(main())


def test_total_may_grow_and_shrink_below_what_is_lent() -> None:
    limiter = CapacityLimiter(3)
    for one in range(3):
        limiter.acquire_on_behalf_of(one)
    for total in (2, 0, 1):
        limiter.total_tokens = total
        assert (limiter.borrowed_tokens, limiter.available_tokens) == (3, total - 3)
    for one in range(2):
        limiter.release_on_behalf_of(one)
        assert limiter.acquire_on_behalf_of("new", False) is False
    limiter.release_on_behalf_of(2)
    assert limiter.acquire_on_behalf_of("new", False) is True
    waiter = Thread(limiter.acquire_on_behalf_of, "waiter")
    until(lambda: limiter.statistics().waiting == 1)
    limiter.total_tokens = math.inf
    assert waiter.result() is True
    assert limiter.available_tokens == math.inf
    limiter.total_tokens = 2
    assert limiter.acquire_on_behalf_of("one more", False) is False


def test_thread_waits_where_there_are_no_tokens_until_there_are() -> None:
    limiter = CapacityLimiter(0)
    waiter = Thread(limiter.acquire)
    until(lambda: limiter.statistics().waiting == 1)
    limiter.total_tokens = 1
    assert waiter.result() is True


@pytest.mark.parametrize("total", [-1, 2**31, 1.5, math.nan, "1"])
def test_senseless_totals_are_refused(total: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="total_tokens"):
        CapacityLimiter(total)
    limiter = CapacityLimiter(1)
    with pytest.raises((ValueError, TypeError), match="total_tokens"):
        limiter.total_tokens = total
    assert limiter.total_tokens == 1


def test_thread_that_would_wait_for_its_own_tasks_tokens_gets_an_error() -> None:
    async def other(limiter: CapacityLimiter) -> None:
        with pytest.raises(errors.DeadlockError):
            limiter.acquire()
        assert limiter.acquire(timeout=1e-9) is False

    async def main() -> None:
        limiter = CapacityLimiter(1)
        async with limiter:
            await asyncio.ensure_future(other(limiter))
        assert limiter.statistics() == (0, 1, 0, False)

    run(main())


def test_limiter_shows_its_state_and_is_not_pickled() -> None:
    assert repr(CapacityLimiter(2)) == "<fairlead.sync.CapacityLimiter 0 of 2 borrowed, 0 waiting>"
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(CapacityLimiter(2))


def test_once_is_called_by_one_and_all_get_its_value() -> None:
    begun, go_on, calls = Event(), Event(), []

    @once
    def value() -> object:
        """What it is for."""
        calls.append(1)
        begun.set()
        assert go_on.wait(30)
        return calls

    async def task() -> object:
        return await value.call_async()

    first = Thread(value)
    assert begun.wait(30)
    others = [Thread(value), Thread(run, task()), Thread(trio.run, task)]
    until(lambda: value.statistics() == (False, True, 3))
    go_on.set()
    assert all(one.result() is calls for one in [first, *others])
    assert value() is run(task()) is calls
    assert calls == [1]
    assert value.__doc__ == "What it is for."
    assert value.statistics() == (True, False, 0)


def test_once_that_fails_is_called_again_by_the_next() -> None:
    outcomes = [KeyError("first"), "second"]

    @once
    async def value() -> str:
        await asyncio.sleep(0)
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def main() -> None:
        first, second, third = (asyncio.ensure_future(value.call_async()) for _ in range(3))
        with pytest.raises(KeyError, match="first"):
            await first
        assert await second == await third == await value() == "second"

    run(main())


def test_once_that_is_cancelled_is_called_again_by_the_next() -> None:
    calls = []

    @once
    async def value() -> int:
        calls.append(1)
        if len(calls) == 1:
            await asyncio.get_running_loop().create_future()
        return len(calls)

    async def main() -> None:
        first, second = (asyncio.ensure_future(value.call_async()) for _ in range(2))
        await until_async(lambda: value.statistics().waiting == 1)
        first.cancel()
        assert await second == 2

    run(main())


def test_once_that_calls_itself_gets_an_error() -> None:
    @once
    def value() -> object:
        return value()

    with pytest.raises(errors.DeadlockError, match="calls itself"):
        value()
    assert value.statistics() == (False, False, 0)


def test_flag_is_set_by_one_of_many_at_once() -> None:
    for _ in range(20):
        flag: Flag[int] = Flag()
        assert not flag
        assert flag.get() is None
        assert flag.get(7) == 7
        setters = [Thread(flag.set, number) for number in range(4)]
        winners = [number for number, one in enumerate(setters) if one.result()]
        assert len(winners) == 1
        assert flag.get() == winners[0]
        assert flag.is_set() is flag.statistics().is_set is True
        flag.clear()
        flag.clear()
        assert flag.set() is True
        assert repr(flag) == "<fairlead.sync.Flag set>"


def test_guard_lets_one_in_and_refuses_the_second_at_once() -> None:
    guard = ResourceGuard("reading from")

    async def task() -> None:
        with pytest.raises(errors.ResourceBusyError, match="already reading from"), guard:
            pass

    with guard:
        assert guard.statistics().busy is True
        with pytest.raises(RuntimeError), guard:
            pass
        run(task())
        trio.run(task)
    with guard:
        pass
    assert repr(guard) == "<fairlead.sync.ResourceGuard free>"
