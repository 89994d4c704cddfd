"""StripedCounter: nothing lost or doubled, exact however large, and what a sum promises while others add."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from typing import Any

import pytest
from waiting import Thread

from fairlead.sync import StripedCounter

pytestmark = pytest.mark.ends_and_free

FREE_THREADED = not getattr(sys, "_is_gil_enabled", lambda: True)()


def test_what_is_added_while_others_take_the_sum_is_in_one_of_the_sums() -> None:
    counter, done = StripedCounter(), threading.Event()

    def take() -> int:
        taken = 0
        while not done.is_set():
            taken += counter.sum_and_reset()
        return taken

    takers = [Thread(take) for _ in range(2)]

    def add() -> None:
        for _ in range(3000):
            counter.increment()

    for thread in [Thread(add) for _ in range(2)]:
        thread.result()
    done.set()
    assert sum(taker.result() for taker in takers) + counter.sum() == 6000


def test_sums_never_become_smaller_while_others_add() -> None:
    counter, done = StripedCounter(), threading.Event()

    def add() -> None:
        while not done.is_set():
            counter.increment()
            counter.add(2**40)

    adders = [Thread(add) for _ in range(2)]
    last = 0
    for _ in range(500):
        now = counter.sum()
        assert now >= last
        last = now
    done.set()
    for adder in adders:
        adder.result()
    assert counter.sum() >= last


def test_sums_are_exact_beyond_64_bits() -> None:
    counter = StripedCounter(-(2**63))
    assert counter.sum() == -(2**63)
    counter.add(-(2**63))
    counter.decrement()
    assert counter.sum() == -(2**64) - 1
    for _ in range(5):
        counter.add(2**63 - 1)
    assert counter.sum_and_reset() == 5 * (2**63 - 1) - 2**64 - 1
    assert counter.sum() == 0
    counter.add(2**31)
    counter.add(-(2**31) + 1)
    assert counter.sum() == 1
    counter.reset()
    assert int(counter) == 0


def test_statistics_show_how_many_threads_can_add_uncontended() -> None:
    counter = StripedCounter(3)
    total, stripes = counter.statistics()
    assert total == 3
    assert stripes & (stripes - 1) == 0
    if not FREE_THREADED:
        assert stripes == 1
    assert f"sum=3, {stripes} stripes" in repr(counter)


def test_destructor_may_add_and_a_counter_dies_with_its_last_reference() -> None:
    counters = [StripedCounter()]

    class Adder:
        def __del__(self) -> None:
            counters[0].increment()

    one: Any = Adder()
    one.self = one
    del one
    gc.collect()
    assert counters[0].sum() == 1
    gone = weakref.ref(counters.pop())
    gc.collect()
    assert gone() is None
