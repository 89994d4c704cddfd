"""What the passes of each way add up to, and what they would have been on a machine left alone."""

from __future__ import annotations

from typing import Any

import pytest
from advices import work

from fairlead.advice.candidates import Way
from fairlead.advice.figures import Figures
from fairlead.advice.successive_halving import CandidateState
from fairlead.record.advice import Kind

pytestmark = pytest.mark.ends


def state(kind: Kind, workers: int, per_call: float, **changes: Any) -> CandidateState:
    """Nine passes of a hundred calls that take 10 ms of a core each."""
    start = 0.0 if kind == "sequential" else 0.2
    known: dict[str, Any] = {
        "starts": [start] * 3, "start_cpu": [start / 4] * 3, "per_call": [per_call] * 9,
        "totals": {n: [start + per_call * 100] * 3 for n in (1, 2, 3)}, "foreign": [0.01] * 9,
        "cpu": [1.0] * 3,
        "cpu_call": [0.01] * 3, "memory": [20_000] * 3, "switches": [1.0] * 3, "calls": 900, "rounds": 3,
    }  # fmt: skip
    return CandidateState(Way(kind, workers), "CPython 3.14.0", **known | changes)


def alone(*states: CandidateState, **seen: Any) -> list[float | None]:
    figures = Figures(states, work(**seen), 100, 2)
    return [one.alone_s for one in figures.candidates()]


def test_speedup_is_that_of_all_calls_with_the_start_and_of_one_that_never_ended_there_is_none() -> None:
    figures = Figures([state("sequential", 1, 0.01), state("processes", 2, 0.005)], work(), 100, 2)
    one, two = figures.candidates()
    assert (one.speedup, one.low, one.high) == (1.0, 1.0, 1.0)
    assert two.total_s == pytest.approx(0.7)
    assert (two.low, two.speedup, two.high) == pytest.approx((1 / 0.7,) * 3)
    assert (len(two.rounds), two.passes, two.alone_s) == (3, 9, None)
    dead = CandidateState(Way("threads", 2), "CPython 3.14.0", status="failed", reason="its process ended")
    one = Figures([state("sequential", 1, 0.01), dead], work(), 100, 2).candidates()[1]
    assert (one.status, one.reason, one.total_s) == ("failed", "its process ended", None)


def test_on_a_busy_machine_time_is_worked_out_from_processor_time() -> None:
    busy = {"foreign": [0.6] * 9}
    ways = [
        state("sequential", 1, 0.02, **busy),
        state("threads", 2, 0.03, **busy),
        state("processes", 2, 0.015, **busy),
    ]
    assert alone(*ways, gil=1.0, free=0.0, waiting=0.0) == pytest.approx([1.0, 1.025, 0.525])
    two = Figures(ways, work(gil=1.0, free=0.0, waiting=0.0), 100, 2).candidates()[2]
    assert two.parts == pytest.approx((0.025, 0.005)), "of the start and of a call"
    # without the GIL threads share the work as processes do
    assert alone(*ways, gil=0.0, free=1.0, waiting=0.0) == pytest.approx([1.0, 0.525, 0.525])


def test_waiting_is_shared_by_workers_unless_calls_wait_for_each_other() -> None:
    busy = {"foreign": [0.6] * 9, "cpu_call": [0.001] * 3}
    ways = [state("sequential", 1, 0.02, **busy), state("threads", 8, 0.003, **busy)]
    found = alone(*ways, gil=0.1, free=0.0, waiting=0.9, call_s=0.01)
    assert found == pytest.approx([1.0, 0.025 + 100 * 0.01 / 8])
    busy = {"foreign": [0.9] * 9, "cpu_call": [0.0001] * 3}
    ways = [state("sequential", 1, 0.0045, **busy), state("threads", 32, 0.0044, **busy)]
    one, two = alone(*ways, gil=0.02, free=0.0, waiting=0.98, call_s=0.0041)
    assert one is not None
    assert two is not None
    assert one / two < 1.15, "each takes the same lock"


def test_no_way_is_promised_more_than_cores_and_the_gil_allow_and_curves_are_of_the_same_times() -> None:
    """Though its processor time was taken when the machine was quicker."""
    busy = {"foreign": [0.6] * 9}
    ways = [
        state("sequential", 1, 0.02, **busy, cpu_call=[0.01] * 3),
        state("threads", 2, 0.02, **busy, cpu_call=[0.004] * 3, start_cpu=[0.0] * 3),
        state("processes", 2, 0.02, **busy, cpu_call=[0.004] * 3, start_cpu=[0.0] * 3),
    ]
    assert alone(*ways, gil=1.0, free=0.0, waiting=0.0) == pytest.approx([1.0, 1.0, 0.5])
    quiet = [state("sequential", 1, 0.01), state("processes", 2, 0.008)]
    assert Figures(quiet, work(), 100, 2).curves()[0].points == ((1, 100.0), (2, 125.0))
    busy = [state("sequential", 1, 0.02, foreign=[0.5]), state("processes", 2, 0.02, foreign=[0.5])]
    (curve,) = Figures(busy, work(gil=1.0, free=0.0, waiting=0.0), 100, 2).curves()
    assert curve.points == ((1, pytest.approx(100.0)), (2, pytest.approx(200.0)))


def test_speedup_is_paired_by_round_and_passes_of_one_process_are_one_observation() -> None:
    """The machine became twice as slow from round to round; both ways met that alike."""
    first = state("sequential", 1, 0.01, totals={n: [2.0**n] * 3 for n in range(3)})
    other = state("processes", 2, 0.01, totals={n: [0.5 * 2.0**n] * 3 for n in range(3)})
    one = Figures([first, other], work(), 100, 2).candidates()[1]
    assert (one.low, one.speedup, one.high) == pytest.approx((2.0, 2.0, 2.0))
    del other.totals[2]
    one = Figures([first, other], work(), 100, 2).candidates()[1]
    assert (one.low, one.speedup, one.high) == (None, pytest.approx(2.0), None)
    first = state("sequential", 1, 0.01, totals={1: [1.0] * 9, 2: [1.0] * 9})
    other = state("processes", 2, 0.01, totals={1: [0.5] * 9, 2: [0.5] * 9})
    one = Figures([first, other], work(), 100, 2).candidates()[1]
    assert (one.passes, one.low) == (18, None), "eighteen passes of two processes bound nothing"


def test_p99_is_what_99_of_100_calls_take_and_fewer_have_none() -> None:
    ways = [
        state("sequential", 1, 0.01, latencies=[number / 1000 for number in range(100, 0, -1)]),
        state("threads", 2, 0.01, latencies=[0.01] * 98 + [0.5]),
        state("processes", 2, 0.01),
    ]
    found = Figures(ways, work(), 100, 2).candidates()
    assert (found[0].p50_s, found[0].p99_s) == pytest.approx((0.0505, 0.099))
    assert [(one.p50_s, one.p99_s) for one in found[1:]] == [(0.01, None), (None, None)]


def test_calls_with_threads_of_their_own_have_the_cores_without_a_pool() -> None:
    """As those of a linear algebra library."""
    busy = {"foreign": [0.9] * 9, "start_cpu": [0.0] * 3}
    ways = [
        state("sequential", 1, 0.02, **busy, own_cpu_call=[0.005] * 3),
        state("threads", 2, 0.02, **busy, own_cpu_call=[0.005] * 3),
        # whose threads wait for each other in loops, for longer where others take the cores
        state("threads", 4, 0.02, **{**busy, "cpu_call": [0.004] * 3}, own_cpu_call=[0.002] * 3),
    ]
    assert alone(*ways, gil=0.0, free=1.0, waiting=0.0) == pytest.approx([0.5] * 3)
    # Python threads of its own share the GIL
    assert alone(*ways, gil=1.0, free=0.0, waiting=0.0) == pytest.approx([1.0] * 3)
