"""Observation of this process's own GIL. What is exact is tested exactly; how long things take is not."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import hashlib
import itertools
import operator
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from scheduled import run as run_alone

import fairlead.gil
from fairlead.errors import UnsupportedInterpreterError, UsageError
from fairlead.gil.observe.access import why_not
from fairlead.gil.observe.observation import NO_THREAD, UNKNOWN, Observation
from fairlead.gil.schedule.state import Scheduler
from fairlead.record.gil_summary import GilThread, StackLoss

refusal = why_not()
pytestmark = pytest.mark.skipif(refusal is not None, reason=f"the GIL cannot be observed: {refusal}")

ROUNDING = 1e-6
"""Seconds: sums of times that are rounded to nanoseconds each."""


def spin_until(done: Callable[[], object]) -> None:
    while not done():
        pass


def spin(seconds: float) -> None:
    """For so much of the thread's own CPU time."""
    end = time.thread_time() + seconds
    spin_until(lambda: time.thread_time() >= end)


def run(*bodies: Callable[[], object]) -> list[threading.Thread]:
    """All bodies at once, each in a thread that is named after it."""
    threads = [threading.Thread(target=body, name=f"body-{number}") for number, body in enumerate(bodies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return threads


def by_name(seen: Observation) -> dict[str, GilThread]:
    return {thread.name: thread for thread in seen.threads}


def check_invariants(seen: Observation) -> None:
    """What holds of every observation."""
    threads, seconds = seen.threads, seen.seconds
    for thread in threads:
        assert thread.held_seconds + thread.waited_seconds <= seconds + ROUNDING, thread
        assert thread.max_held_seconds <= thread.held_seconds + ROUNDING
        assert thread.max_wait_seconds <= thread.waited_seconds + ROUNDING
        assert thread.contended <= thread.acquisitions
        assert sum(thread.wait_histogram) == thread.contended
        drops = thread.forced_drops + thread.voluntary_drops
        assert sum(thread.held_histogram) == drops
        assert abs(thread.acquisitions - drops) <= 1, thread
        assert thread.held_off_cpu_seconds is not None
        assert 0 <= thread.held_off_cpu_seconds <= thread.held_seconds + ROUNDING
        assert thread.overrun_off_cpu_seconds is not None
        assert thread.overrun_off_cpu_seconds <= thread.held_off_cpu_seconds + ROUNDING
        assert thread.overrun_off_cpu_seconds <= (thread.overrun_seconds or 0.0) + ROUNDING
    for gil in {thread.gil for thread in threads}:
        assert sum(t.held_seconds for t in threads if t.gil == gil) <= seconds + ROUNDING


def test_two_spinners_hold_and_wait_within_the_time_there_is() -> None:
    done = threading.Event()

    def has_seen_it_all(name: str) -> bool:
        thread = by_name(seen).get(name)
        return thread is not None and thread.forced_drops > 0 and thread.waited_seconds > 0

    def until_both_have() -> None:
        while not (has_seen_it_all("body-0") and has_seen_it_all("body-1")):
            spin(0.005)
        done.set()

    with fairlead.gil.observe() as seen:
        run(until_both_have, lambda: spin_until(done.is_set))
    check_invariants(seen)
    forced_drops = sum(thread.forced_drops for thread in seen.threads)
    assert sum(thread.requests for thread in seen.threads) >= forced_drops


def test_thread_that_is_alone_holds_whenever_it_does_not_sleep_and_waits_for_none() -> None:
    """In a process of its own: what runs the tests may have a thread that wakes up now and then."""
    program = """
import ctypes
usleep = ctypes.CDLL(None).usleep  # time.sleep() reckons from before it drops the GIL
computed = 0.0
with gil.observe() as seen:
    for _ in range(5):
        start = time.thread_time()
        while time.thread_time() - start < 0.01:
            pass
        computed += time.thread_time() - start
        usleep(10_000)
(alone,) = seen.threads
print(json.dumps([[alone.native_id == os.getpid(), alone.name, alone.waited_seconds, alone.acquisitions,
                   alone.voluntary_drops, len(seen.blame)], computed, alone.held_seconds, seen.seconds]))
"""
    told, computed, held, seconds = run_alone(program)
    assert told == [True, "MainThread", 0, 5, 5, 0]
    assert held >= 0.999 * computed, (
        "Python code has the GIL; the clocks are two, and in step to a thousandth"
    )
    assert held + 5 * 0.01 <= seconds, "a sleep is never shorter than it was asked to be"


def test_every_turn_of_a_thread_is_counted() -> None:
    """os.stat lets go of the GIL once a call. Whoever else wants it meanwhile asks, and may cost one more."""
    with fairlead.gil.observe() as seen:
        before = seen.threads
        for _ in range(1000):
            os.stat("/")  # noqa: PTH116 - one call, one release
        after = seen.threads
    me = threading.get_native_id()
    counted = [sum(t.acquisitions for t in threads if t.native_id == me) for threads in (before, after)]
    asked = [sum(t.requests for t in threads if t.native_id != me) for threads in (before, after)]
    assert 1000 <= counted[1] - counted[0] <= 1000 + asked[1] - asked[0]


def test_blame_adds_up_to_what_was_waited() -> None:
    blamed = threading.Event()

    def first() -> None:
        while seen.blame["body-0", "body-1"] == 0:
            spin(0.001)
        blamed.set()

    with fairlead.gil.observe() as seen:
        run(first, lambda: spin_until(blamed.is_set), lambda: spin_until(blamed.is_set))
    threads = by_name(seen)
    for name in ("body-0", "body-1", "body-2"):
        row = sum(seconds for (waiter, _), seconds in seen.blame.items() if waiter == name)
        assert row == pytest.approx(threads[name].waited_seconds, abs=ROUNDING)
        assert seen.blame[name, name] == 0
        assert seen.blame[name, UNKNOWN] == 0
    assert seen.blame["body-0", "no such thread"] == 0.0
    assert ("body-0", "no such thread") not in seen.blame
    assert all(seconds > 0 for seconds in seen.blame.values())
    assert any(holder == NO_THREAD for _, holder in seen.blame)


def test_blame_of_threads_of_one_name_is_added_up() -> None:
    blamed = threading.Event()

    def until_all_have_waited() -> None:
        while len([one for one in seen.threads if one.name == "same" and one.waited_seconds > 0]) < 3:
            spin(0.001)
        blamed.set()

    bodies = [until_all_have_waited, *[lambda: spin_until(blamed.is_set)] * 2]
    with fairlead.gil.observe() as seen:
        threads = [threading.Thread(target=body, name="same") for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    row = sum(seconds for (waiter, _), seconds in seen.blame.items() if waiter == "same")
    waited = sum(thread.waited_seconds for thread in seen.threads if thread.name == "same")
    assert row == pytest.approx(waited, abs=ROUNDING)


def hold_in_c() -> None:
    """One call into C that keeps the GIL for some tens of milliseconds."""
    sum(range(2_000_000))


def caught_in_c(seen: Observation) -> list[StackLoss]:
    """Not those in which a new thread waited: it has no frames yet."""
    return [
        loss
        for loss in seen.stacks
        if loss.waiter_frames and loss.holder_frames and loss.holder_frames[0][0] == "hold_in_c"
    ]


def test_a_long_hold_in_c_is_named_with_its_line() -> None:
    """The waiter goes on until it has been kept waiting: that is what is waited for, not a time."""
    for _ in range(30):  # until the interpreter has specialised the way to the extension
        with fairlead.gil.observe(wait_threshold=0.001):
            pass
    ended = threading.Event()

    def holder() -> None:
        while not ended.is_set():
            hold_in_c()

    def waiter() -> None:
        while not caught_in_c(seen):
            time.sleep(0)
        ended.set()

    with fairlead.gil.observe(wait_threshold=0.001) as seen:
        run(holder, waiter)
    check_invariants(seen)
    caught = caught_in_c(seen)
    assert seen.blame["body-1", "body-0"] + seen.blame["MainThread", "body-0"] > 0
    function, file, line = caught[0].holder_frames[0]
    assert (function, file) == ("hold_in_c", __file__)
    assert line == hold_in_c.__code__.co_firstlineno + 2
    assert caught[0].max_seconds <= caught[0].seconds + ROUNDING


@pytest.fixture
def switch_interval() -> Iterator[Callable[[float], None]]:
    before = sys.getswitchinterval()
    yield sys.setswitchinterval
    sys.setswitchinterval(before)


def test_a_core_that_was_lost_before_the_request_is_not_of_the_time_after_it(
    switch_interval: Callable[[float], None],
) -> None:
    """A call sleeps with the GIL, and computes from before the other thread may ask for it.

    Once more where the other had no core in time, or had waited for the hold before this one; or where the
    hold before was cut short, and so the clock is not read as this one begins.
    """
    hold = [time.thread_time, time.perf_counter, partial(ctypes.PyDLL(None).usleep, 5_000)]
    hold += [time.perf_counter, time.thread_time, hold_in_c, time.perf_counter]
    ended = threading.Event()

    def holder() -> None:
        for _ in range(1_000):
            with fairlead.gil.observe() as seen:
                spin(0.002)
                time.sleep(0)  # a thread's clock is read as it takes the GIL if its last hold was long
                used, slept, _, computed, used_then, _, done = map(operator.call, hold)
                time.sleep(0)
            thread = by_name(seen)["body-0"]
            assert thread.overrun_seconds is not None
            (tally,) = (one for one in seen._read()["threads"] if one["serial"] == thread.serial)
            not_looked_at = thread.held_seconds - tally["held_checked_ns"] / 1e9
            if 0 < thread.overrun_seconds <= done - computed and not_looked_at < 0.004:
                found.append((computed - slept - (used_then - used) - not_looked_at, thread))
                break
            threads.append(thread)
        ended.set()

    def waiter() -> None:
        while not ended.is_set():
            time.sleep(0.001)

    found: list[tuple[float, GilThread]] = []
    threads: list[GilThread] = []
    switch_interval(0.01)
    run(holder, waiter)
    assert found, threads
    off_cpu_before, thread = found[0]
    assert thread.held_off_cpu_seconds is not None
    assert thread.overrun_off_cpu_seconds is not None
    assert thread.overrun_off_cpu_seconds <= thread.held_off_cpu_seconds - off_cpu_before + 1e-4


def test_hashing_outside_the_gil_is_not_held() -> None:
    """Of the time that there is, hashing takes at least its CPU time, all but the call and the return without
    the GIL; in the rest the thread may hold it, or have no core."""
    data = bytes(5_000_000)
    spent: list[float] = []

    def work() -> None:
        start = time.thread_time()
        hashlib.sha256(data).digest()
        spent.append(time.thread_time() - start)

    with fairlead.gil.observe() as seen:
        run(work)
    thread = by_name(seen)["body-0"]
    assert thread.voluntary_drops >= 1
    assert thread.held_seconds + thread.waited_seconds + spent[0] / 2 <= seen.seconds


def test_observations_nest_and_each_counts_from_its_own_start() -> None:
    with fairlead.gil.observe() as outer:
        run(lambda: spin(0.02))
        with fairlead.gil.observe() as inner:
            run(lambda: spin(0.005))
        check_invariants(inner)
    check_invariants(outer)
    assert inner.seconds < outer.seconds
    mine = {thread.serial: thread for thread in outer.threads}
    for thread in inner.threads:
        assert thread.acquisitions <= mine[thread.serial].acquisitions
        assert thread.held_seconds <= mine[thread.serial].held_seconds + ROUNDING
        assert thread.max_held_seconds <= inner.seconds, "and not that of an earlier hold"
    assert max(t.max_held_seconds for t in outer.threads if t.name == "body-0") > 0


def test_observations_may_end_in_any_order() -> None:
    first, second = fairlead.gil.observe().start(), fairlead.gil.observe().start()
    first.stop()
    run(lambda: spin(0.005))
    second.stop()
    assert "body-0" not in by_name(first)
    assert "body-0" in by_name(second)


def test_counts_stay_as_they_were_at_the_end_and_stand_still_while_nothing_observes() -> None:
    with fairlead.gil.observe() as seen:
        run(lambda: spin(0.005))
    threads, seconds, counters = seen.threads, seen.seconds, fairlead.gil.counters()
    run(lambda: spin(0.005))
    assert (seen.threads, seen.seconds, fairlead.gil.counters()) == (threads, seconds, counters)
    assert repr(seen) == "<fairlead.gil.Observation, ended>"


def test_an_observation_is_started_once_and_there_are_eight_at_once_and_no_more() -> None:
    seen = fairlead.gil.observe()
    with pytest.raises(UsageError, match="has not been started"):
        _ = seen.threads
    seen.stop()
    with seen, pytest.raises(UsageError, match="started before"):
        seen.start()
    with pytest.raises(UsageError, match="started before"):
        seen.start()
    with contextlib.ExitStack() as going_on:
        for _ in range(8):
            going_on.enter_context(fairlead.gil.observe())
        with pytest.raises(UsageError, match="too many observations"):
            fairlead.gil.observe().start()
    with fairlead.gil.observe():
        pass


@pytest.mark.parametrize("threshold", [-1, 1e10, float("nan")])
def test_a_threshold_that_is_no_time_is_refused(threshold: float) -> None:
    with pytest.raises(UsageError, match="wait_threshold"):
        fairlead.gil.observe(wait_threshold=threshold)


def test_without_a_threshold_no_stacks_are_taken() -> None:
    with fairlead.gil.observe(wait_threshold=None) as seen:
        run(*[lambda: spin_until(lambda: max(t.max_wait_seconds for t in seen.threads) > 0.002)] * 2)
    assert seen.stacks == ()
    assert seen.blame


def test_threads_keep_their_names_after_they_have_ended_and_when_they_slept_through_the_start() -> None:
    """That is known to the extension from its first turn on, which is its last, too."""
    asleep, go = threading.Event(), threading.Event()
    original = threading.Thread.start

    def work() -> None:
        asleep.set()
        go.wait()

    early = threading.Thread(target=work, name="early riser")
    early.start()
    asleep.wait()
    with fairlead.gil.observe() as seen:
        assert threading.Thread.start is not original
        run(*[lambda: None] * 5)
        go.set()
        early.join()
    assert {"early riser", *(f"body-{number}" for number in range(5))} <= set(by_name(seen))
    assert {thread.native_id for thread in seen.threads if thread.name == "body-0"} - {0}
    assert threading.Thread.start is original


def test_a_name_given_later_is_the_one_that_counts() -> None:
    with fairlead.gil.observe() as seen:

        def work() -> None:
            threading.current_thread().name = "späterer Name ✓"
            assert "späterer Name ✓" in by_name(seen)

        run(work)
    assert "späterer Name ✓" in by_name(seen)


STATE = "policy cpu_share waiting watchdog_tripped watchdog_trips switched_off canary scheduled_seconds"
"""What scheduler() has beside its counts."""
COUNTED = """
observed_seconds acquisitions contended_acquisitions held_seconds held_off_cpu_seconds held_asleep_seconds
waited_seconds overrun_seconds forced_drops voluntary_drops drop_requests handoffs scheduled_seconds
watchdog_trips canary_kept canary_rejected
"""
SCHEDULER = {one.name for one in dataclasses.fields(Scheduler)} - set(STATE.split())
COUNTERS = {
    f"fairlead_gil_{name}_total" for name in (*COUNTED.split(), *(f"scheduler_{one}" for one in SCHEDULER))
}


def readings() -> Iterator[dict[str, float]]:
    """Counters at many moments: within observations, between them, and while threads come and go."""
    yield fairlead.gil.counters()
    for _ in range(20):
        with fairlead.gil.observe():
            yield fairlead.gil.counters()
            run(lambda: spin(0.002), lambda: spin(0.002))
            yield fairlead.gil.counters()
        yield fairlead.gil.counters()


def test_counters_never_fall() -> None:
    for before, after in itertools.pairwise(readings()):
        assert set(after) == COUNTERS
        assert {name: after[name] for name in COUNTERS if after[name] < before[name]} == {}


def test_counters_agree_with_the_observation() -> None:
    before = fairlead.gil.counters()
    with fairlead.gil.observe() as seen:
        run(lambda: spin(0.01), lambda: spin(0.01))
    after = fairlead.gil.counters()
    turns = sum(thread.acquisitions for thread in seen.threads)
    counted = after["fairlead_gil_acquisitions_total"] - before["fairlead_gil_acquisitions_total"]
    assert turns <= counted <= turns + 50
    assert after["fairlead_gil_held_seconds_total"] - before["fairlead_gil_held_seconds_total"] > 0.01


def test_findings_come_with_the_observation() -> None:
    with fairlead.gil.observe() as seen:
        run(lambda: spin(0.02), lambda: spin(0.02))
    assert seen.findings
    assert all(finding.advice for finding in seen.findings)


def test_an_interpreter_of_another_kind_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.implementation.name", "pypy")
    with pytest.raises(UnsupportedInterpreterError, match="the GIL of pypy cannot be observed"):
        fairlead.gil.observe().start()
    with pytest.raises(UnsupportedInterpreterError, match="pypy"):
        fairlead.gil.counters()
