"""Semaphore and BoundedSemaphore in threads: as threading's, and several permits at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from waiting import Thread, until

from fairlead import errors
from fairlead.sync import BoundedSemaphore, Lock, RateLimiter, RLock, Semaphore

pytestmark = pytest.mark.pypy


def test_semaphore_counts_permits() -> None:
    semaphore = Semaphore(2)
    assert semaphore.acquire()
    assert semaphore.acquire(n=1)
    assert semaphore.locked()
    assert not semaphore.acquire(False)
    semaphore.release(2)
    assert semaphore.acquire(n=2)
    semaphore.release()
    assert semaphore.statistics() == (1, 0, False)
    with semaphore:
        assert semaphore.locked()
    semaphore.release(5)
    assert semaphore.statistics().value == 6


def test_bounded_semaphore_refuses_what_it_never_had() -> None:
    semaphore = BoundedSemaphore(2)
    with pytest.raises(errors.TooManyReleasesError, match="too many"):
        semaphore.release()
    assert semaphore.acquire()
    with pytest.raises(ValueError, match="too many"):
        semaphore.release(2)
    assert semaphore.statistics().value == 1
    semaphore.release()
    assert semaphore.acquire(n=2)


def test_bounded_semaphore_refuses_too_much_while_others_wait() -> None:
    semaphore = BoundedSemaphore(2)
    semaphore.acquire(n=2)
    waiter = Thread(lambda: semaphore.acquire(n=2))
    until(lambda: semaphore.statistics().waiting == 1)
    semaphore.release()
    with pytest.raises(errors.TooManyReleasesError):
        semaphore.release(2)
    assert semaphore.statistics() == (1, 1, False)
    semaphore.release()
    assert waiter.result() is True


@pytest.mark.parametrize("value", [-1, 2**31, 2**70])
def test_senseless_initial_value_is_refused(value: int) -> None:
    for kind in (Semaphore, BoundedSemaphore):
        with pytest.raises((ValueError, OverflowError)):
            kind(value)


@pytest.mark.parametrize("number", [0, -1, 2**40, 2**80])
def test_senseless_number_of_permits_is_refused(number: int) -> None:
    semaphore = Semaphore(3)
    calls: list[Any] = [lambda: semaphore.acquire(n=number), lambda: semaphore.release(number)]
    for call in [*calls, lambda: semaphore.acquire_async(number)]:
        with pytest.raises((ValueError, OverflowError)):
            call()
    assert semaphore.statistics() == (3, 0, False)


def test_bounded_semaphore_of_nothing_stays_so() -> None:
    semaphore = BoundedSemaphore(0)
    with pytest.raises(errors.TooManyReleasesError):
        semaphore.release()
    assert not semaphore.acquire(False)


def test_more_than_it_ever_has_is_refused_by_a_bounded_semaphore() -> None:
    with pytest.raises(ValueError, match="at most 2"):
        BoundedSemaphore(2).acquire(n=3)


def test_waiter_for_many_permits_is_not_starved_by_waiters_for_one() -> None:
    semaphore = Semaphore(4)
    semaphore.acquire(n=4)
    many = Thread(lambda: semaphore.acquire(n=4))
    until(lambda: semaphore.statistics().waiting == 1)
    stop: list[bool] = []

    def one() -> None:
        while not stop:
            if semaphore.acquire(timeout=0.0001):
                semaphore.release()

    others = [Thread(one) for _ in range(3)]
    for _ in range(4):
        semaphore.release()
    assert many.result() is True
    stop.append(True)
    semaphore.release(4)
    for other in others:
        other.result()
    assert semaphore.statistics() == (4, 0, False)


def test_fair_semaphore_serves_a_waiter_for_many_permits_in_turn() -> None:
    semaphore, order = Semaphore(0, fair=True), []
    threads = []
    for me, wanted in enumerate([2, 1, 3, 1]):

        def take(me: int = me, wanted: int = wanted) -> None:
            assert semaphore.acquire(n=wanted)
            order.append(me)

        threads.append(Thread(take))
        until(lambda me=me: semaphore.statistics().waiting == me + 1)
    for served in range(4):
        semaphore.release([2, 1, 3, 1][served])
        until(lambda served=served: len(order) == served + 1)
    for thread in threads:
        thread.result()
    assert order == [0, 1, 2, 3]


def test_release_of_many_wakes_many() -> None:
    semaphore = Semaphore(0)
    threads = [Thread(semaphore.acquire) for _ in range(20)]
    until(lambda: semaphore.statistics().waiting == 20)
    semaphore.release(20)
    for thread in threads:
        assert thread.result() is True
    assert semaphore.statistics() == (0, 0, False)


@pytest.mark.parametrize(
    "make", [lambda: Semaphore(5), lambda: BoundedSemaphore(5), Lock, RLock, lambda: RateLimiter(1)]
)
def test_number_that_is_no_truth_value_is_not_taken_for_one(make: Callable[[], Any]) -> None:
    """acquire(3) looks like three permits, and would be `blocking`."""
    primitive = make()
    for senseless in (3, -1, 1 << 70):
        with pytest.raises(TypeError, match=f"not {senseless}; of n permits give the name"):
            primitive.acquire(senseless)
    assert primitive.acquire(1)
