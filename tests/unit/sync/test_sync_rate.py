"""RateLimiter: how many in which time, order, what a place is worth when its waiter goes, and real clocks."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import trio
from waiting import Thread, run, waiting_task, waiting_thread

from fairlead import _native, machine
from fairlead.sync import RateLimiter
from fairlead.sync.extra import ManualClock
from fairlead.wait import Mailbox, current_mailbox

pytestmark = pytest.mark.ends_and_free


def slow(burst: int = 1) -> tuple[RateLimiter, ManualClock]:
    """One permit a second; those that there are have been taken."""
    clock = ManualClock()
    limiter = RateLimiter(1, burst=burst, clock=clock)
    assert limiter.acquire(False, n=burst)
    return limiter, clock


def test_time_between_permits_is_rounded_up_so_that_there_are_never_too_many() -> None:
    clock = ManualClock()
    limiter = RateLimiter(3, clock=clock)
    assert limiter.acquire(False)
    clock.advance(0.333333333)
    assert limiter.acquire(False) is False
    clock.advance(1e-9)
    assert limiter.acquire(False) is True


def test_timeout_that_cannot_suffice_is_refused_at_once_and_delays_no_other_waiter() -> None:
    limiter, clock = slow()
    assert limiter.acquire(timeout=0.999) is False
    first = waiting_thread(limiter, limiter.acquire, timeout=1.0)
    assert limiter.acquire(timeout=1.999) is False
    assert limiter.acquire(timeout=0) is False
    assert limiter.delay() == 2.0
    clock.advance(1)
    assert first.result() is True


def test_waiter_for_many_permits_is_not_passed_by_waiters_for_one() -> None:
    limiter, clock = slow(burst=3)
    many = waiting_thread(limiter, limiter.acquire, n=3)
    one = waiting_thread(limiter, limiter.acquire)
    clock.advance(2.9)
    assert limiter.acquire(False) is False  # two are there, and are not for those who come
    assert limiter.statistics().waiting == 2
    clock.advance(0.1)
    assert many.result() is True
    assert limiter.statistics().waiting == 1
    clock.advance(1)
    assert one.result() is True


def test_what_was_granted_and_not_used_is_lost_if_others_were_granted_something_since() -> None:
    """Given back it could let through more than the rate allows."""

    async def main() -> None:
        limiter, clock = slow()
        first, second = [await waiting_task(limiter, limiter.acquire_async()) for _ in range(2)]
        clock.advance(2)
        first.cancel()
        await second
        assert limiter.statistics() == (0, 1, 0)
        assert limiter.delay() == 1.0

    run(main())


def in_asyncio(limiter: RateLimiter, n: int) -> None:
    async def main() -> None:
        await asyncio.gather(*(body() for _ in range(n)))

    async def body() -> None:
        async with limiter:
            pass

    run(main())


def in_trio(limiter: RateLimiter, n: int) -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(n):
                nursery.start_soon(limiter.acquire_async)

    trio.run(main)


def in_threads(limiter: RateLimiter, n: int) -> None:
    def body() -> None:
        with limiter:
            pass

    for thread in [Thread(body) for _ in range(n)]:
        thread.result()


@pytest.mark.parametrize("use", [in_asyncio, in_trio, in_threads])
def test_by_the_system_clock_no_waiter_is_early_and_all_are_served(
    use: Callable[[RateLimiter, int], None],
) -> None:
    limiter = RateLimiter(1000, burst=2)
    begin = machine.clock_ns()
    use(limiter, 8)
    assert machine.clock_ns() - begin >= 6_000_000
    assert limiter.statistics().waiting == 0


def test_cancelled_head_wakes_the_next_which_sets_its_timer_anew() -> None:
    """By the system's clock: the second would be due in days, if the first had kept its place."""

    async def main() -> None:
        limiter = RateLimiter(1, 0.05, burst=5_000_000)
        assert limiter.acquire(False, n=5_000_000)
        first = await waiting_task(limiter, limiter.acquire_async(5_000_000))
        second = await waiting_task(limiter, limiter.acquire_async())
        assert limiter.delay() > 86400
        first.cancel()
        assert await second is True

    run(main())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_no_timer_and_no_cycle_keeps_a_limiter_alive() -> None:
    async def main() -> weakref.ref[RateLimiter]:
        limiter = RateLimiter(1, 3600)
        assert limiter.acquire(False)
        before = timers()
        tasks = [await waiting_task(limiter, limiter.acquire_async()) for _ in range(3)]
        assert timers() > before
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert timers() == before
        return weakref.ref(limiter)

    def timers() -> int:
        loop: Any = asyncio.get_running_loop()
        return sum(not timer.cancelled() for timer in loop._scheduled)

    gone = run(main())
    gc.collect()
    assert gone() is None


class Future:
    """Of a loop that runs no task."""

    def done(self) -> bool:
        return False

    def set_result(self, _: None) -> None: ...

    def __await__(self) -> Any:
        yield


def test_wait_that_is_closed_stops_its_timer() -> None:
    class Timer:
        def __init__(self, seconds: float, _function: object) -> None:
            self.seconds, self.stopped = seconds, False
            timers.append(self)

        def cancel(self) -> None:
            self.stopped = True

    timers: list[Timer] = []
    port = Mailbox(Future, None, Timer)
    limiter = RateLimiter(1, 3600)
    _native.use_mailboxes(lambda: port)
    try:
        assert limiter.acquire(False)
        waiter = limiter.acquire_async()
        waiter.send(None)
        waiter.close()
    finally:
        _native.use_mailboxes(current_mailbox)
    assert [(0 < one.seconds <= 3600, one.stopped) for one in timers] == [(True, True)]


def test_loop_whose_mailbox_has_no_timers_is_refused() -> None:
    limiter = RateLimiter(1, 3600)
    port = Mailbox(Future)
    _native.use_mailboxes(lambda: port)
    try:
        assert limiter.acquire(False)
        with pytest.raises(RuntimeError, match="without call_later"):
            limiter.acquire_async().send(None)
    finally:
        _native.use_mailboxes(current_mailbox)
    assert limiter.statistics().waiting == 0


@pytest.mark.parametrize("away", [pickle.dumps, copy.copy, copy.deepcopy])
def test_clock_refuses_to_be_copied(away: Callable[[ManualClock], object]) -> None:
    with pytest.raises(TypeError, match="ManualClock' object: it belongs to one interpreter"):
        away(ManualClock())
