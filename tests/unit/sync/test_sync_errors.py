"""What is refused when a primitive is made or used, and how native code raises errors."""

from __future__ import annotations

import builtins
import math
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from fairlead import errors
from fairlead._native import current_task
from fairlead.sync import (
    Barrier,
    BoundedSemaphore,
    CapacityLimiter,
    Condition,
    CountdownEvent,
    LifoQueue,
    Lock,
    PriorityQueue,
    Queue,
    RateLimiter,
    RWLock,
    RWLockView,
    Semaphore,
    SimpleQueue,
    broadcast,
    channel,
    detect_deadlocks,
    select,
    share,
)
from fairlead.sync.extra import Combiner, Exchanger, ManualClock, Phaser, StripedCounter

pytestmark = pytest.mark.ends_and_free

ANY_NUMBER = (ValueError, OverflowError)
"""By its size a number is refused by Python's conversion, or by what it is for."""

NO_COUNT, NO_COUNTS = (*ANY_NUMBER, TypeError), (-1, 2**31, 2**70, 1.5, "1")


def each(make: Callable[..., Any], *values: Any, **named: Any) -> list[Callable[[], Any]]:
    """With each of these, alone."""
    return [partial(make, value) for value in values] + [
        partial(make, **{name: value}) for name, several in named.items() for value in several
    ]


MAKING: list[tuple[Any, str | None, list[Callable[[], Any]]]] = [
    (TypeError, None, [*each(Lock, 1), *each(Lock, on_owner_death=[1])]),
    (errors.UsageError, "'warn' or 'break'", each(Lock, on_owner_death=["ignore"])),
    (TypeError, "not a _thread.lock", each(Condition, threading.Lock())),
    (ValueError, "fair", [partial(Condition, Lock(), fair=True)]),
    (errors.UsageError, "takes no lock that breaks", each(Condition, Lock(on_owner_death="break"))),
    (TypeError, None, [partial(type, "Mine", (RWLock,), {}), RWLockView, *each(RWLock, 1)]),
    (ANY_NUMBER, None, each(Combiner, batch=[-1, 2**31, 1 << 70])),
    (ANY_NUMBER, None, [*each(Semaphore, -1, 2**31, 2**70), *each(BoundedSemaphore, -1, 2**31, 2**70)]),
    ((ValueError, TypeError), "total_tokens", each(CapacityLimiter, -1, 2**31, 1.5, math.nan, "1")),
    (ValueError, "rate and per must be more than 0, and finite",
     [*each(RateLimiter, 0, -1, math.nan, math.inf), *each(partial(RateLimiter, 1), 0, math.inf)]),
    (ValueError, "burst must be 1 or more", each(partial(RateLimiter, 1), burst=[0])),
    (ValueError, "more than 36 years", each(partial(RateLimiter, 1e-9), burst=[3])),
    (TypeError, "must be a ManualClock or None, not a int", each(partial(RateLimiter, 1), clock=[7])),
    (ValueError, "parties", each(Barrier, 0, -1, 2**40)),
    (ValueError, "timeout", each(partial(Barrier, 2, None), math.nan)),
    (TypeError, "callable", each(partial(Barrier, 2), 3)),
    (TypeError, None, each(Barrier, "2")),
    (NO_COUNT, None, each(CountdownEvent, *NO_COUNTS)),
    (ValueError, "parties must be", each(Phaser, -1)),
    (TypeError, "on_advance must be callable", each(Phaser, on_advance=[3])),
    (TypeError, None, [*each(Exchanger, 2), *each(StripedCounter, 1.0, "1")]),
    (ValueError, "maxsize", each(Queue, 2**31)),
    (TypeError, None, each(Queue, "many")),
    (TypeError, r"^Queue\(\) ", each(partial(Queue, 1), True)),
    (TypeError, r"^LifoQueue\(\) ", each(partial(LifoQueue, 1), True)),
    (TypeError, r"^PriorityQueue\(\) ", each(partial(PriorityQueue, 1), True)),
    (ValueError, "capacity must be", [*each(channel, -1), *each(broadcast, 0, -1)]),
    (TypeError, "'str' object cannot be interpreted as an integer", each(channel, "2")),
    (ValueError, "more than 0", each(detect_deadlocks, interval=[0, -1, math.nan, math.inf, "1"])),
    (TypeError, "called with a Deadlock", each(detect_deadlocks, on_deadlock=[1])),
]  # fmt: skip


@pytest.mark.parametrize(("error", "match", "calls"), MAKING)
def test_senseless_arguments_make_nothing(
    error: Any, match: str | None, calls: list[Callable[[], Any]]
) -> None:
    for call in calls:
        with pytest.raises(error, match=match):
            call()


def slow() -> RateLimiter:
    limiter = RateLimiter(1, burst=2, clock=ManualClock())
    assert limiter.acquire(False, n=2)
    return limiter


def not_empty() -> Queue[int]:
    line = Queue[int](3)
    line.put(1)
    return line


def set_total(limiter: CapacityLimiter, total: Any) -> None:
    limiter.total_tokens = total


def delete_maxsize(line: Any) -> None:
    del line.maxsize


MANY = (0, -1, 2**40, 2**80)
USING: list[tuple[Callable[[], Any], Any, str | None, Callable[[Any], list[Callable[[], Any]]]]] = [
    (partial(Lock, on_owner_death="break"), errors.NotHeldError, "unlocked", lambda one: [one.release]),
    (Combiner, TypeError, None, lambda one: each(one.run, 3)),
    (partial(Semaphore, 3), ANY_NUMBER, None, lambda one: each(one.acquire, n=MANY)),
    (partial(Semaphore, 3), ANY_NUMBER, None, lambda one: each(one.release, *MANY)),
    (partial(Semaphore, 3), ANY_NUMBER, None, lambda one: each(one.acquire_async, *MANY)),
    (partial(BoundedSemaphore, 2), ValueError, "at most 2", lambda one: each(one.acquire, n=[3])),
    (partial(BoundedSemaphore, 0), errors.TooManyReleasesError, None, lambda one: [one.release]),
    (partial(CapacityLimiter, 1), (ValueError, TypeError), "total_tokens",
     lambda one: each(partial(set_total, one), -1, 2**31, 1.5, math.nan, "1")),
    (slow, ValueError, "at most 2, the burst", lambda one: each(one.acquire, n=[0, 3, -1])),
    (slow, ValueError, "at most 2, the burst", lambda one: each(one.acquire_async, n=[0, 3, -1])),
    (slow, ValueError, "at most 2, the burst", lambda one: each(one.delay, n=[0, 3, -1])),
    (slow, errors.UsageError, "cannot be selected", lambda one: each(select, one.acquire_async())),
    (partial(RateLimiter, 1), TypeError, None, lambda one: each(one.acquire, n=["1"])),
    (partial(CountdownEvent, 2), NO_COUNT, None, lambda one: each(one.count_down, 0, *NO_COUNTS)),
    (Phaser, errors.UsageError, "register", lambda one: [one.arrive, one.arrive_and_wait]),
    (Phaser, ValueError, "parties must be", lambda one: each(one.bulk_register, -1)),
    (partial(Phaser, 1), ANY_NUMBER, None, lambda one: each(one.arrive_and_wait, math.nan, math.inf)),
    (Phaser, TypeError, "phase", lambda one: [one.wait_phase]),
    (StripedCounter, TypeError, None, lambda one: each(one.add, 1.0, "1", None)),
    (Exchanger, TypeError, "item", lambda one: [one.exchange]),
    (SimpleQueue, TypeError, None, lambda one: [one.put]),
    (Queue, TypeError, "item", lambda one: [one.put]),
    (Queue, TypeError, None, lambda one: each(one.resize, "more")),
    (Queue, AttributeError, None, lambda one: each(delete_maxsize, one)),
    (not_empty, errors.UsageError, "before something is put", lambda one: each(share, one)),
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "match", "calls"), USING)
def test_senseless_use_is_refused_and_changes_nothing(
    make: Callable[[], Any], error: Any, match: str | None, calls: Callable[[Any], list[Callable[[], Any]]]
) -> None:
    one = make()
    before = one.statistics()
    for call in calls(one):
        with pytest.raises(error, match=match):
            call()
    assert one.statistics() == before


def test_clock_is_advanced_by_a_number_of_seconds() -> None:
    for call in each(ManualClock().advance, -1, math.nan, "1"):
        with pytest.raises(errors.UsageError, match="advanced by a number of seconds"):
            call()


ERRORS: list[tuple[Callable[[], object], type[Exception]]] = [
    (SimpleQueue().get_nowait, errors.QueueEmpty),
    (lambda: Queue().get(timeout=1e-6), errors.QueueEmpty),
    (lambda: Exchanger().exchange(1, timeout=1e-6), errors.WaitTimeoutError),
    (lambda: Barrier(2).wait(timeout=1e-6), errors.BrokenBarrierError),
    (Lock().release, errors.NotHeldError),
]


@pytest.mark.parametrize(("call", "error"), ERRORS)
def test_raising_an_error_imports_nothing(
    call: Callable[[], object], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    current_task()  # a wait asks for it, and imports the adapters of the libraries that are there, once
    imported = []
    real = builtins.__import__

    def importing(name: str, *rest: Any) -> Any:
        imported.append(name)
        return real(name, *rest)

    def watched() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(builtins, "__import__", importing)
            call()

    with pytest.raises(error):
        watched()
    assert imported == []
