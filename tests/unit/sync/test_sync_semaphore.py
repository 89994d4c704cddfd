"""Semaphore and BoundedSemaphore in threads: as threading's, and several permits at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from waiting import Thread, until, waiting_thread

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
    waiter = waiting_thread(semaphore, semaphore.acquire, n=2)
    semaphore.release()
    with pytest.raises(errors.TooManyReleasesError):
        semaphore.release(2)
    assert semaphore.statistics() == (1, 1, False)
    semaphore.release()
    assert waiter.result() is True


def test_waiter_for_many_permits_is_not_starved_by_waiters_for_one() -> None:
    semaphore = Semaphore(4)
    semaphore.acquire(n=4)
    many = waiting_thread(semaphore, semaphore.acquire, n=4)
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

        threads.append(waiting_thread(semaphore, take))
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
