"""Successive halving on a machine whose times are known: what is measured, how often, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from advices import work

from fairlead.advice.candidates import Way
from fairlead.advice.child.measure import following
from fairlead.advice.choosing import choose
from fairlead.advice.figures import Figures
from fairlead.advice.jobs import Bench, Died
from fairlead.advice.successive_halving import UNBOUNDED, CandidateState, Halving, Limits
from fairlead.errors import AdviceError
from fairlead.lab.isolation.stop import Stop
from fairlead.record.advice import Candidate, Pick

pytestmark = pytest.mark.ends

Times = dict[tuple[str, int], tuple[float, float, float]]
"""Seconds of a way's start, of its first calls together, and between the ends of two calls."""


@dataclass
class Machine:
    """Stands in for the processes that measure, and for the clock."""

    truth: Times
    process_s: float = 0.3
    slower: float = 1.0
    """How many times as long everything takes, other programs having the cores."""
    now: float = 0.0
    made: list[tuple[str, int, int]] = field(default_factory=list)
    """(kind, workers, calls) of each process."""

    def run(self, _stage: str, timeout_s: float, _other: Any = None, **job: Any) -> dict[str, Any] | Died:
        kind, workers = job["kind"], job["workers"]
        start, once, call = (self.slower * part for part in self.truth[kind, workers])
        first, number = job["first"], job["number"]
        passes = [(first, once + first * call)]
        left = job["time_s"]
        while calls := following(job, passes, left):
            passes.append((calls, calls * call))
            left -= calls * call
        number = sum(calls for calls, _ in passes)
        took = self.process_s * self.slower + start + sum(wall for _, wall in passes)
        if took > timeout_s:
            self.now += timeout_s
            return Died("was ended by SIGKILL", late=True, doing="passes", item=0)
        begin, self.now = self.now, self.now + took
        self.made.append((kind, workers, number))
        reading = {"cpu_s": 0.0, "idle_s": None, "at_s": begin}
        return {
            "interpreter": "CPython 3.14.0", "start_s": start, "fingerprints": ["mark"] * first,
            "passes": passes, "timings": [], "calls": number, "raised": [], "first": reading,
            "before": reading, "after": {**reading, "at_s": self.now}, "memory_kib": 1000, "elapsed_s": took,
        }  # fmt: skip


def measured(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, *, budget: float, requests: int = 199, **seen: Any
) -> tuple[Halving, list[Candidate], Pick]:
    monkeypatch.setattr(
        "fairlead.advice.successive_halving.time", SimpleNamespace(monotonic=lambda: machine.now)
    )
    looked = work(**{"call_s": machine.truth["sequential", 1][2], **seen})
    limits = Limits(
        label="shop:price", requests=requests, cores=2, work=looked, marks=("mark",) * 20, raises=False,
        budget_s=budget, end=budget, most_calls=UNBOUNDED,
    )  # fmt: skip
    states = [
        CandidateState(Way(cast(Any, kind), workers), "CPython 3.14.0") for kind, workers in machine.truth
    ]
    with Stop() as stop:
        halving = Halving(cast(Bench, machine), stop, limits, lambda *_: None)
        halving.run(states)
    found = [one for one in states if one.way not in halving.left_out]
    candidates = Figures(found, looked, requests, 2).candidates()
    return halving, candidates, choose(candidates, looked, requests, 2)


QUIET: Times = {
    ("sequential", 1): (0.0, 0.0, 0.0117),
    ("threads", 2): (0.002, 0.0, 0.0118),
    ("interpreters", 2): (0.06, 0.1, 0.0058),
    ("interpreters", 4): (0.1, 0.2, 0.0060),
    ("processes", 2): (0.12, 0.15, 0.0060),
    ("processes", 4): (0.2, 0.3, 0.0061),
    ("free-threaded", 2): (0.0, 0.0, 0.001),
}
"""Pure Python of 11 ms a call on two cores: a pool is worth it, and its workers' first calls import a lot."""


@pytest.mark.parametrize("budget", [5.0, 12.0, 30.0, 60.0])
def test_pool_whose_first_calls_are_slow_is_chosen_and_each_time_is_the_true_one(
    budget: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, candidates, pick = measured(Machine(QUIET), monkeypatch, budget=budget)
    assert (pick.kind, pick.workers) == ("interpreters", 2)
    for one in candidates:
        if one.total_s is not None:
            start, once, call = QUIET[one.kind, one.workers]
            assert one.total_s == pytest.approx(start + once + 199 * call, rel=0.02)


@pytest.mark.parametrize("budget", [5.0, 12.0, 30.0])
def test_all_rounds_are_of_one_size_and_none_is_small(budget: float, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(QUIET)
    measured(machine, monkeypatch, budget=budget)
    sizes = {calls for _, _, calls in machine.made}
    assert len(sizes) == 1
    assert sizes.pop() * 0.0117 >= 0.1, "three times what a worker's first call takes"
    assert [kind for kind, _, _ in machine.made].count("free-threaded") <= 1


def test_calls_of_which_the_first_is_slow_are_not_taken_to_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.8 s once in each process, and then 11 ms: for 500 calls no pool is much better than another."""
    once: Times = {(kind, n): (start, 0.8, call) for (kind, n), (start, _, call) in QUIET.items()}
    _, candidates, _ = measured(Machine(once), monkeypatch, budget=25.0, requests=500)
    for one in candidates:
        if one.total_s is not None and one.rounds:
            start, first, call = once[one.kind, one.workers]
            assert one.total_s == pytest.approx(start + first + 500 * call, rel=0.1)


@pytest.mark.parametrize("slower", [1.0, 3.0, 6.0])
@pytest.mark.parametrize("budget", [12.0, 30.0])
def test_budget_is_kept_on_a_machine_that_others_use(
    budget: float, slower: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(QUIET, slower=slower)
    measured(machine, monkeypatch, budget=budget)
    assert machine.now <= 1.15 * budget


def test_little_time_is_for_few_ways_and_they_are_the_promising_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    halving, candidates, pick = measured(Machine(QUIET), monkeypatch, budget=3.0)
    assert len(candidates) < len(QUIET)
    assert len(candidates) + len(halving.left_out) == len(QUIET)
    assert Way("free-threaded", 2) in halving.left_out
    assert pick.kind != "sequential"


def test_waiting_calls_are_made_often_enough_by_each_of_many_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    truth: Times = {("sequential", 1): (0.0, 0.0, 0.01)}
    truth |= {("threads", n): (0.0001 * n, 0.0, 0.01 / n) for n in (2, 16, 64)}
    machine = Machine(truth)
    _, _, pick = measured(
        machine, monkeypatch, budget=10.0, requests=10_000, gil=0.01, free=0.0, waiting=0.99
    )
    assert (pick.kind, pick.workers) == ("threads", 64)
    assert all(calls >= 8 * workers for _, workers, calls in machine.made)


def refusal(call_s: float, left_s: float, monkeypatch: pytest.MonkeyPatch, **seen: Any) -> str:
    workers = seen.pop("workers", 2)
    machine = Machine({("sequential", 1): (0.0, 0.0, call_s), ("threads", workers): (0.0, 0.0, call_s)})
    machine.now = 2.0 - left_s
    with pytest.raises(AdviceError) as raised:
        measured(machine, monkeypatch, budget=2.0, requests=100, **seen)
    return str(raised.value)


def test_refusal_is_of_what_takes_long_and_not_of_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    said = refusal(10.0, 2.0, monkeypatch)
    assert said.startswith("one call of shop:price takes 10 s, and comparing 2 ways")
    assert "comparing 2 ways" in refusal(0.5, 2.0, monkeypatch, workers=64)
    truth: Times = {("sequential", 1): (0.0, 0.0, 0.5), ("threads", 64): (0.0, 0.0, 0.5 / 64)}
    waits = {"gil": 0.0, "free": 0.0, "waiting": 1.0}
    _, _, pick = measured(Machine(truth), monkeypatch, budget=2.0, requests=100, **waits)
    assert pick.kind == "threads"


def test_calls_in_turn_that_fail_end_it_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine({("sequential", 1): (0.0, 0.0, 1e-7), ("threads", 2): (0.0, 0.0, 1e-7)})
    monkeypatch.setattr(machine, "run", lambda *_, **__: {"failed": "KeyError: 1"})
    with pytest.raises(AdviceError) as raised:
        measured(machine, monkeypatch, budget=2.0)
    assert str(raised.value).startswith("shop:price, called one after another in a new process: KeyError: 1")
