"""CapacityLimiter, once, Flag and ResourceGuard."""

from __future__ import annotations

import asyncio

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


def test_borrower_that_waits_gets_no_second_token_and_has_none_to_return() -> None:
    async def main() -> None:
        limiter = CapacityLimiter(0)
        waiter = await waiting_task(limiter, limiter.acquire_on_behalf_of_async("it"))
        with pytest.raises(errors.AlreadyHeldError, match="waits"):
            limiter.acquire_on_behalf_of("it", False)
        with pytest.raises(errors.NotHeldError):
            limiter.release_on_behalf_of("it")
        limiter.total_tokens = 1
        assert await waiter is True

    run(main())


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
