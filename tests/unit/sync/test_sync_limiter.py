"""CapacityLimiter, once, Flag and ResourceGuard."""

from __future__ import annotations

import asyncio
import math
from functools import partial
from typing import Any

import pytest
import trio
from waiting import Thread, run, waiting_task, waiting_thread

from fairlead import errors
from fairlead.sync import CapacityLimiter, Event, once
from fairlead.sync.extra import Flag, ResourceGuard

pytestmark = pytest.mark.ends_and_free


def test_borrower_gets_no_second_token_and_any_thread_may_return_one_on_its_behalf() -> None:
    async def main() -> None:
        limiter = CapacityLimiter(2)
        async with limiter:
            with pytest.raises(errors.AlreadyHeldError):
                await limiter.acquire_async()
            with pytest.raises(errors.AlreadyHeldError):
                limiter.acquire()

    run(main())
    limiter = CapacityLimiter(2)
    with limiter:
        with pytest.raises(errors.AlreadyHeldError):
            limiter.acquire(False)
        assert limiter.acquire_on_behalf_of("somebody") is True
        assert limiter.acquire_on_behalf_of("another", False) is False
        assert limiter.acquire_on_behalf_of("another", timeout=1e-9) is False
        Thread(limiter.release_on_behalf_of, "somebody").result()
        with pytest.raises(errors.NotHeldError):
            limiter.release_on_behalf_of("another")
    assert limiter.statistics() == (0, 2, 0, False)


def test_borrower_that_waits_twice_gets_one_token_and_an_error_and_has_none_to_return_before() -> None:
    async def main() -> None:
        limiter = CapacityLimiter(0)
        first, second = [
            await waiting_task(limiter, limiter.acquire_on_behalf_of_async("it")) for _ in range(2)
        ]
        assert limiter.acquire_on_behalf_of("it", False) is False
        with pytest.raises(errors.NotHeldError):
            limiter.release_on_behalf_of("it")
        limiter.total_tokens = 2
        assert await first is True
        with pytest.raises(errors.AlreadyHeldError):
            await second
        assert limiter.statistics() == (1, 2, 0, False)

    run(main())


def test_task_that_is_cancelled_as_its_token_comes_has_none_and_the_token_goes_on() -> None:
    async def main() -> None:
        limiter = CapacityLimiter(1)
        limiter.acquire_on_behalf_of("it")
        for granted in (False, True):
            waiter = await waiting_task(limiter, limiter.acquire_async())
            if granted:
                limiter.release_on_behalf_of("it")
            waiter.cancel()
            await asyncio.wait([waiter])
            assert waiter.cancelled()
            assert limiter.statistics() == (not granted, 1, 0, False)

    run(main())


class Unhashable:
    """Which raises when it is asked for its hash as often as is said."""

    def __init__(self, after: int) -> None:
        self.after = after

    def __hash__(self) -> int:
        self.after -= 1
        if self.after < 0:
            raise KeyboardInterrupt
        return 7


@pytest.mark.parametrize("after", range(2))
def test_borrower_that_raises_when_it_is_looked_up_has_no_token_and_none_is_lost(after: int) -> None:
    limiter = CapacityLimiter(1)
    for call in (limiter.acquire_on_behalf_of, lambda it: run(borrow(limiter, it))):
        with pytest.raises(KeyboardInterrupt):
            call(Unhashable(after))
        assert limiter.statistics() == (0, 1, 0, False)
    it = Unhashable(2)
    assert limiter.acquire_on_behalf_of(it) is True
    with pytest.raises(KeyboardInterrupt):
        limiter.release_on_behalf_of(it)
    assert limiter.statistics() == (1, 1, 0, False)
    it.after = 1
    limiter.release_on_behalf_of(it)
    assert limiter.statistics() == (0, 1, 0, False)


async def borrow(limiter: CapacityLimiter, borrower: object) -> bool:
    return await limiter.acquire_on_behalf_of_async(borrower)


@pytest.mark.parametrize("total", [1.0, "1", None, -1, 2**31, -math.inf])
def test_total_that_is_no_whole_number_is_refused(total: Any) -> None:
    limiter = CapacityLimiter(math.inf)
    assert (limiter.total_tokens, limiter.available_tokens) == (math.inf, math.inf)
    for refused in (CapacityLimiter, partial(setattr, limiter, "total_tokens")):
        with pytest.raises((TypeError, ValueError), match="total_tokens must be"):
            refused(total)
    limiter.acquire()
    assert limiter.statistics() == (1, math.inf, 0, False)
    assert repr(limiter) == "<fairlead.sync.CapacityLimiter 1 of inf borrowed, 0 waiting>"
    limiter.total_tokens = 1
    assert limiter.available_tokens == 0


def test_token_that_a_waiter_was_granted_is_lent_before_it_resumes() -> None:
    async def main() -> None:
        limiter = CapacityLimiter(1, fair=True)
        limiter.acquire_on_behalf_of(0)
        waiters = [await waiting_task(limiter, limiter.acquire_on_behalf_of_async(one)) for one in "abc"]
        limiter.release_on_behalf_of(0)
        assert (limiter.borrowed_tokens, limiter.available_tokens) == (1, 0)
        assert limiter.acquire_on_behalf_of("new", False) is False
        limiter.total_tokens = 3
        assert limiter.statistics() == (3, 3, 0, True)
        limiter.total_tokens = 0
        assert (limiter.borrowed_tokens, limiter.available_tokens) == (3, -3)
        await asyncio.gather(*waiters)
        assert (limiter.borrowed_tokens, limiter.available_tokens) == (3, -3)
        limiter.total_tokens = 4
        assert (limiter.borrowed_tokens, limiter.available_tokens) == (3, 1)

    run(main())


def test_once_is_called_by_one_and_all_get_its_value() -> None:
    begun, go_on, calls = Event(), Event(), []

    @once
    def value() -> object:
        """What it is for."""
        calls.append(1)
        begun.set()
        assert go_on.wait(30)
        return calls

    first = Thread(value)
    assert begun.wait(30)
    other = waiting_thread(value, value)
    assert value.statistics() == (False, True, 1)
    go_on.set()
    assert first.result() is other.result() is value() is calls
    assert calls == [1]
    assert value.__doc__ == "What it is for."
    assert value.statistics() == (True, False, 0)


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
        assert repr(flag) == "<fairlead.sync.extra.Flag set>"


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
    assert repr(guard) == "<fairlead.sync.extra.ResourceGuard free>"


def test_thread_waits_where_there_are_no_tokens_until_there_are() -> None:
    limiter = CapacityLimiter(0)
    waiter = waiting_thread(limiter, limiter.acquire)
    limiter.total_tokens = 1
    assert waiter.result() is True
