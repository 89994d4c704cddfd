"""fairlead.sync.Lock in threads: as threading.Lock, and what it adds."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest
from waiting import until, waiting_thread

pytest.importorskip("trio")

from fairlead import errors
from fairlead.sync import BoundedSemaphore, Event, Lock, Semaphore

pytestmark = pytest.mark.pypy

"""CPython's threading.TIMEOUT_MAX; that of PyPy is a thousand times as long."""


@pytest.fixture(params=[False, True], ids=["barging", "fair"])
def lock(request: pytest.FixtureRequest) -> Lock:
    return Lock(fair=request.param)


def test_lock_is_held_by_one_at_a_time(lock: Lock) -> None:
    assert lock.acquire() is True
    assert lock.locked()
    assert lock.acquire(False) is False
    assert lock.acquire(blocking=False) is False
    assert lock.acquire(timeout=0) is False
    assert lock.acquire(True, 0.001) is False
    lock.release()
    assert not lock.locked()
    with lock as entered:
        assert entered is True
        assert lock.locked()
    assert not lock.locked()


def test_release_of_a_free_lock_is_refused(lock: Lock) -> None:
    with pytest.raises(errors.NotHeldError, match="release unlocked lock"):
        lock.release()
    with pytest.raises(RuntimeError):
        lock.release()
    assert lock.acquire(False)
    assert not lock.acquire(False)


def test_fair_lock_cannot_be_taken_past_its_waiters() -> None:
    """The lock is the waiter's in the instant of the release, before its thread runs."""
    lock = Lock(fair=True)
    lock.acquire()
    waiter = waiting_thread(lock, lock.acquire)
    lock.release()
    assert lock.acquire(False) is False
    assert waiter.result() is True


def test_waiter_that_waited_for_long_is_served_before_newcomers() -> None:
    lock = Lock()
    lock.acquire()
    waiter = waiting_thread(lock, lock.acquire)
    begun = time.monotonic()
    until(lambda: time.monotonic() - begun > 0.002)
    lock.release()
    assert lock.acquire(False) is False
    assert waiter.result() is True


@pytest.mark.skipif(sys.implementation.name == "pypy", reason="PyPy's sys.getsizeof knows no sizes")
@pytest.mark.parametrize("kind", [Lock, Semaphore, BoundedSemaphore, Event])
def test_primitive_and_its_cell_take_at_most_two_cache_lines(kind: Any) -> None:
    cell = 64  # at most, as sync/wait/waitq.c asserts
    assert sys.getsizeof(kind()) + cell <= 128
