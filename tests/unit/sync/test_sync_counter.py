"""StripedCounter: nothing lost or doubled, exact however large, and what a sum promises while others add."""

from __future__ import annotations

import gc
import signal
import threading
import weakref
from typing import Any

import pytest
from endings import handling
from waiting import Thread, until

from fairlead.sync.extra import StripedCounter

pytestmark = pytest.mark.ends_and_free


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


def test_sums_are_exact_however_large() -> None:
    counter = StripedCounter(-(2**100))
    counter.decrement()
    assert int(counter) == counter.sum() == -(2**100) - 1
    counter.add(2**101)
    assert counter.sum_and_reset() == 2**100 - 1
    assert counter.sum() == 0
    counter.add(3)
    counter.reset()
    assert counter.statistics().sum == 0


def test_threads_that_follow_each_other_use_the_same_cell_and_those_at_once_their_own() -> None:
    counter = StripedCounter(3)
    for _ in range(5):
        Thread(counter.add, 2).result()
    gc.collect()
    assert counter.statistics() == (13, 2)
    go = threading.Event()
    threads = [Thread(lambda: (counter.increment(), go.wait(40))) for _ in range(3)]
    until(lambda: counter.sum() == 16)
    assert "sum=16, 4 stripes" in repr(counter)
    go.set()
    for thread in threads:
        thread.result()


def test_signal_handler_that_adds_in_between_loses_nothing() -> None:
    """It may come between any two bytecodes of another call in its thread."""
    counter, handled = StripedCounter(), [0]

    def handler() -> None:
        counter.increment()
        handled[0] += 1

    added, over = 0, threading.Event()
    main = threading.main_thread().ident

    def disturb() -> None:
        while not over.is_set():
            signal.pthread_kill(main or 0, signal.SIGUSR1)

    with handling(handler):
        sender = Thread(disturb)
        while handled[0] < 300:
            counter.increment()
            added += 1
        over.set()
        sender.result()
    assert counter.sum() == added + handled[0]


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
