"""What the passes of each way add up to: one estimate of its time, from which all figures follow."""

from __future__ import annotations

from typing import Any

import pytest
from advices import work

from fairlead.advice.candidates import Way
from fairlead.advice.figures import Estimate, Figures, estimate
from fairlead.advice.successive_halving import CandidateState
from fairlead.record.advice import Kind

pytestmark = pytest.mark.ends


def state(kind: Kind, workers: int, calls_s: float, once_s: float = 0.0, **changes: Any) -> CandidateState:
    """Three processes that take as long, each with 10 ms of processor time a call."""
    found = Estimate(0.0 if kind == "sequential" else 0.2, once_s, calls_s)
    known: dict[str, Any] = {
        "rounds": dict.fromkeys((1, 2, 3), found), "foreign": [(1.0, 0.01)] * 3, "cpu": [1.0] * 3,
        "cpu_call": [0.01] * 3, "memory": [20_000] * 3, "calls": 900,
    }  # fmt: skip
    return CandidateState(Way(kind, workers), "CPython 3.14.0", **known | changes)


def figures(*states: CandidateState, **seen: Any) -> Figures:
    return Figures(states, work(**seen), 100, 2)


@pytest.mark.parametrize(
    ("passes", "requests", "once", "total"),
    [
        # two workers import 0.3 s in their first calls: 4 calls, and then 10 ms each
        ([(4, 0.34), (10, 0.10), (10, 0.10)], 199, 0.3, 0.3 + 1.99),
        # all calls were made: nothing is scaled
        ([(4, 0.34), (20, 0.26)], 24, 0.34 - 4 * 0.013, 0.60),
        # a pass that is not yet warm is no rate, and is paid once
        ([(4, 0.34), (10, 0.40), (10, 0.10)], 199, 0.3 + 0.3, 0.6 + 1.99),
        # what is slower later is noise, of which both passes are the mean
        ([(4, 0.04), (10, 0.10), (10, 0.12)], 24, 0.0, 0.26),
        # there was one pass alone
        ([(4, 0.4)], 8, 0.0, 0.8),
    ],
    ids=["cold first calls", "all calls", "a second cold pass", "noise", "one pass"],
)
def test_what_a_worker_pays_once_is_not_multiplied(
    passes: list[tuple[int, float]], requests: int, once: float, total: float
) -> None:
    found = estimate(0.05, passes, requests)
    assert (found.start_s, found.once_s) == (0.05, pytest.approx(once))
    assert found.total_s == pytest.approx(0.05 + total)


def test_printed_speedup_is_the_ratio_of_the_printed_times_and_these_the_sum_of_their_parts() -> None:
    """Though the machine got slower after the first round, in which one way was given up."""
    slow = {1: Estimate(0, 0, 1.0), 2: Estimate(0, 0, 2.0), 3: Estimate(0, 0.1, 2.0), 4: Estimate(0, 0, 2.2)}
    fast = {n: Estimate(0.1, 0.05, slow[n].total_s / 2 - 0.15) for n in slow}
    ways = [
        state("sequential", 1, 1.0, rounds=slow),
        state("interpreters", 2, 1.0, rounds=fast),
        state("processes", 2, 1.0, rounds={1: Estimate(0.1, 0.1, 0.7)}),
    ]
    first, *others = found = figures(*ways).candidates()
    for one in found:
        assert one.total_s is not None
        assert first.total_s is not None
        assert one.speedup == pytest.approx(first.total_s / one.total_s)
        once, call = one.parts
        assert once + 100 * call == pytest.approx(one.total_s)
    assert [one.speedup for one in others] == pytest.approx([2.0, 1 / 0.9])


def test_speedup_is_paired_by_round_and_with_two_there_is_no_interval() -> None:
    """The machine became twice as slow from round to round; both ways met that alike."""
    first = state("sequential", 1, 1.0, rounds={n: Estimate(0, 0, 2.0**n) for n in range(3)})
    other = state("threads", 2, 1.0, rounds={n: Estimate(0, 0, 0.5 * 2.0**n) for n in range(3)})
    one = figures(first, other, gil=0.1, free=0.9).candidates()[1]
    assert (one.low, one.speedup, one.high) == pytest.approx((2.0, 2.0, 2.0))
    del other.rounds[2]
    one = figures(first, other, gil=0.1, free=0.9).candidates()[1]
    assert (one.low, one.speedup, one.high) == (None, pytest.approx(2.0), None)


def test_way_that_never_ended_has_no_figures() -> None:
    dead = CandidateState(Way("threads", 2), "CPython 3.14.0", status="failed", reason="its process ended")
    one = figures(state("sequential", 1, 1.0), dead).candidates()[1]
    assert (one.status, one.reason, one.total_s) == ("failed", "its process ended", None)


@pytest.mark.parametrize(
    ("kind", "workers", "gains", "seen", "changes", "said"),
    [
        ("processes", 2, 4.8, {}, {}, "measured at x4.80, which 2 cores cannot give"),
        ("processes", 64, 60.0, {}, {}, "measured at x60.00, which 2 cores cannot give"),
        ("threads", 64, 1.7, {}, {}, "which calls that hold the GIL 98 % of the time cannot gain"),
        # calls cost less there, as where memory is touched once: then it can be
        ("threads", 2, 4.0, {"gil": 0.1, "free": 0.9}, {"cpu_call": [0.004] * 3}, None),
        ("threads", 64, 60.0, {"gil": 0.01, "free": 0.0, "waiting": 0.99}, {}, None),
        ("processes", 2, 1.9, {}, {}, None),
    ],
)
def test_speedup_that_cannot_be_is_an_error_and_not_chosen(
    kind: Kind, workers: int, gains: float, seen: dict[str, Any], changes: dict[str, Any], said: str | None
) -> None:
    way = state(kind, workers, 4.0 / gains - 0.2 if 4.0 / gains > 0.2 else 4.0 / gains, **changes)
    if 4.0 / gains <= 0.2:
        way.rounds = dict.fromkeys((1, 2, 3), Estimate(0.0, 0.0, 4.0 / gains))
    one = figures(state("sequential", 1, 4.0), way, **seen).candidates()[1]
    assert one.status == ("failed" if said else "measured")
    assert (said or "") in (one.reason or "")


def test_other_load_is_that_of_its_processes_or_of_all_where_these_are_short() -> None:
    ways = [
        state("sequential", 1, 1.0, foreign=[(0.3, 0.5), (0.1, 0.9), (0.2, 0.5)]),
        state("threads", 2, 1.0, foreign=[(0.1, 0.0)]),
    ]
    shares = [one.foreign for one in figures(*ways).candidates()]
    assert shares == pytest.approx([0.34 / 0.6, 0.34 / 0.7])
    assert figures(ways[1], ways[1]).candidates()[0].foreign is None


def test_throughput_over_workers_is_of_calls_and_not_of_starts() -> None:
    ways = [
        state("sequential", 1, 1.0),
        state("processes", 4, 0.25, once_s=6.0),
        state("processes", 2, 0.5, once_s=3.0),
        CandidateState(Way("threads", 2), "CPython 3.14.0", status="failed", reason="it did not end in time"),
    ]
    (curve,) = figures(*ways).curves()
    assert (curve.kind, curve.points) == ("processes", ((1, 100.0), (2, 200.0), (4, 400.0)))


def test_p99_is_what_99_of_100_calls_take_and_fewer_have_none() -> None:
    ways = [
        state("sequential", 1, 1.0, latencies=[number / 1000 for number in range(100, 0, -1)]),
        state("threads", 2, 1.0, latencies=[0.01] * 98 + [0.5]),
        state("processes", 2, 1.0),
    ]
    found = figures(*ways).candidates()
    assert (found[0].p50_s, found[0].p99_s) == pytest.approx((0.0505, 0.099))
    assert [(one.p50_s, one.p99_s) for one in found[1:]] == [(0.01, None), (None, None)]
