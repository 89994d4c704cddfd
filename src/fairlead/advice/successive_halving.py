"""Successive halving: which of many ways is the fastest, without measuring the slow ones for long.

One round measures every way that is still in the running once, in turn, so that a change of the machine's
mood meets all alike. After a round the slower half is given up, never the sequential run, which is what all
are held against. It goes on until the answer would not change, or the budget or the calls are used up.
(K. Jamieson, A. Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization", 2016.)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from fairlead.advice.candidates import Way
from fairlead.advice.jobs import Bench, Died
from fairlead.advice.loss import expected_loss, versus
from fairlead.errors import AdviceError
from fairlead.lab.analysis.statistics import FEWEST_ROUNDS
from fairlead.lab.isolation import other_load
from fairlead.lab.isolation.stop import Stop
from fairlead.record.advice import CandidateStatus, in_workers

PASSES = 3
"""In one process, before the one of which each call is timed. More processes say more than more passes."""
START_S = 0.3
"""What a process takes besides its pool and its passes, until it is known."""
FEWEST_PASSES = 5
"""Of calls in turn, where nothing else is measured."""
MOST_ROUNDS = 10
SETTLED = 0.005
"""An expected loss below this needs no further round."""
SLOT_S = (0.04, 0.5)
"""The shortest and the longest time that a pass is made to take, unless one call takes longer."""
CHECK_SHARE = 0.02
"""Of the budget, for the calls of a process whose results are held against the sequential ones."""
PATIENCE_S = 10.0
"""For what is not calls, until a process is taken to hang."""
UNBOUNDED = 1 << 60
"""Calls, where no bound is given."""
QUIET_SHARE = 0.05
"""Of the budget, for waiting until other programs leave the machine alone."""


@dataclass
class CandidateState:
    """What is known of a way so far."""

    way: Way
    interpreter: str
    status: CandidateStatus = "measured"
    reason: str | None = None
    starts: list[float] = field(default_factory=list)
    start_cpu: list[float] = field(default_factory=list)
    """Processor time of each start."""
    per_call: list[float] = field(default_factory=list)
    totals: dict[int, list[float]] = field(default_factory=dict)
    """By round: what all the calls take by each pass of its process, with the start."""
    foreign: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    cpu_call: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    switches: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    """Seconds of single calls, from the begin of each in its worker to its end."""
    own_cpu_call: list[float] = field(default_factory=list)
    """The part of ``cpu_call`` that the thread of the call used itself."""
    calls: int = 0
    rounds: int = 0
    marks: list[str] = field(default_factory=list)
    """Fingerprints of its first results."""

    @property
    def runs(self) -> bool:
        return self.status == "measured"

    @property
    def total(self) -> float:
        return median(self.by_round.values())

    @property
    def by_round(self) -> dict[int, float]:
        """A process is one observation: the median of its passes."""
        return {number: median(passes) for number, passes in self.totals.items()}

    @property
    def passes(self) -> int:
        return sum(map(len, self.totals.values()))


@dataclass(frozen=True, slots=True)
class Limits:
    """What there is to do, and what it may take."""

    label: str
    coroutines: bool
    requests: int
    call_s: float
    """Of one call, as far as the first ones tell."""
    waiting: float
    """The share of it that workers wait through at once."""
    check: Sequence[int]
    """Places of items whose results are known ..."""
    marks: Sequence[str]
    """... by these fingerprints."""
    budget_s: float
    end: float
    """By the monotonic clock."""
    most_calls: int


class Halving:
    """Measures ways; their states are what comes out."""

    def __init__(
        self, bench: Bench, stop: Stop, limits: Limits, tell: Callable[[str, int, int], None]
    ) -> None:
        self._bench = bench
        self._stop = stop
        self._limits = limits
        self._tell = tell
        """Told what is being done, the number of the round, and how many measurements it still has."""
        self._overheads = [START_S]
        self.calls = 0
        """Of the function, so far."""
        self.varies = False
        """The same calls gave other results in another process."""

    def run(self, states: list[CandidateState]) -> None:
        """Raises AdviceError if one round of all takes too much, or calls in turn fail."""
        sequential = states[0]
        running = list(states)
        self._afford(running)
        patience = self._limits.budget_s * QUIET_SHARE
        meter = other_load.Meter()
        number = 0
        while running:
            number += 1
            left = self._limits.end - time.monotonic()
            share = 0.4 if number == 1 else 0.5
            slot = left * share / len(running) / (PASSES + 2) - median(self._overheads) / PASSES
            slot = min(max(slot, SLOT_S[0]), SLOT_S[1])
            # backwards in every other round, so that a drift falls on no way alone
            for place, one in enumerate(running if number % 2 else running[::-1]):
                if number > 1 and time.monotonic() + self._cost(one, slot) > self._limits.end:
                    continue
                if number > 1 and self.calls + self._fewest_calls(one) > self._limits.most_calls:
                    continue
                to_come = len(running) - place
                self._tell(f"round {number}: {one.way.kind}, {in_workers(one.way.workers)}", number, to_come)
                self._measure(one, slot, to_come, number)
                if one is sequential and not one.runs:
                    raise AdviceError(
                        f"{self._limits.label}, called one after another in a new process: {one.reason}; "
                        "give items that it can handle, and have its module make what else it needs"
                    )
                if patience > 0 and one.foreign and one.foreign[-1] > other_load.NOISY:
                    begin = time.monotonic()
                    meter.wait_for_quiet(min(patience, left * QUIET_SHARE), self._stop)
                    patience -= time.monotonic() - begin
            if number == 1:
                self._compare_results(states)
            running = self._survivors(sequential, states)
            least = min(self._cost(one, SLOT_S[0]) for one in running)
            out_of_time = time.monotonic() + least > self._limits.end
            out_of_calls = self.calls + min(map(self._fewest_calls, running)) > self._limits.most_calls
            if out_of_time or out_of_calls or self._is_clear(running):
                return

    def _afford(self, running: list[CandidateState]) -> None:
        """One round must not take far more than the budget, nor more calls than are allowed.

        Raises:
            AdviceError: it does; says how much would do.
        """
        if len(running) == 1:
            return
        least = self.calls + sum(map(self._fewest_calls, running))
        if least > self._limits.most_calls:
            raise AdviceError(
                f"to compare {len(running)} ways takes {least} calls at least, and --max-calls allows "
                f"{self._limits.most_calls}: allow more, or name fewer --kinds"
            )
        needed = sum(self._fewest_calls(one) * self._per_call(one) for one in running)
        left = self._limits.end - time.monotonic()
        # on a busy machine the first calls may have used up more than the budget, however short they are
        if needed > 2 * max(left, 0.0) + self._limits.budget_s:
            used = self._limits.budget_s - left
            raise AdviceError(
                f"one call of {self._limits.label} takes {self._limits.call_s:.3g} s, and comparing "
                f"{len(running)} ways of making the calls takes about {needed + used:.0f} s: allow that with "
                "--budget, give items that take less, or name fewer --kinds"
            )

    def _per_call(self, one: CandidateState) -> float:
        """Seconds between the ends of two calls, as far as it is known."""
        if one.per_call:
            return median(one.per_call)
        computing = (1 - self._limits.waiting) / (1 + (one.way.workers > 1))
        return self._limits.call_s * (computing + self._limits.waiting / one.way.workers)

    def _at_once(self, one: CandidateState) -> int:
        """How many calls it is expected to make at once: in a pass there are as many at least."""
        return min(one.way.workers, self._limits.requests)

    def _check_places(self, one: CandidateState, *, first: bool) -> Sequence[int]:
        slot = self._limits.budget_s * CHECK_SHARE
        most = max(1, int(slot / max(self._limits.call_s, 1e-6)))
        if not first:
            most = min(most, 2 * one.way.workers)
        return self._limits.check[:most]

    def _fewest_calls(self, one: CandidateState) -> int:
        return 1 + self._at_once(one)

    def _cost(self, one: CandidateState, slot: float) -> float:
        """Seconds that one more process for it takes, about."""
        per_call = self._per_call(one)
        at_least = self._at_once(one) * per_call
        checks = len(self._check_places(one, first=not one.rounds)) * per_call
        start = median(one.starts) if one.starts else 0.0
        return median(self._overheads) + start + checks + max(at_least, 1.5 * slot * (PASSES + 1))

    def _measure(self, one: CandidateState, slot: float, to_come: int, number: int) -> None:
        first = not one.rounds
        check = self._check_places(one, first=first)
        # in the first round each leaves as much for those that follow
        left = (self._limits.most_calls - self.calls) // (to_come if first else 1)
        check = check[: max(1, left - self._at_once(one))]
        first_pass = max(self._at_once(one), len(check) if self._limits.call_s < slot else 1)
        calls_of_a_pass = slot * max(PASSES * 4, 12) * max(1, one.way.workers)
        expected = self._limits.call_s * (len(check) + PASSES * max(self._at_once(one), 1)) + calls_of_a_pass
        answer = self._bench.run(
            "measure",
            PATIENCE_S + START_S + 5 * expected,
            one.way.interpreter,
            kind=one.way.kind,
            workers=one.way.workers,
            coroutines=self._limits.coroutines,
            requests=self._limits.requests,
            call_s=self._limits.call_s,
            check=check,
            first_pass=min(left - len(check), first_pass),
            slot_s=slot,
            time_s=slot * PASSES,
            passes=PASSES,
            most_calls=left,
        )
        one.rounds += 1
        if isinstance(answer, Died):
            one.status = "failed"
            one.reason = "it did not end in time" if answer.late else f"its process {answer.how}"
            self._count_all(left)
            return
        if "refused" in answer or "failed" in answer:
            one.status, one.reason = "failed", answer.get("refused") or answer["failed"]
            self._count_all(left)
            return
        self.calls += answer["calls"]
        if first:
            one.marks = answer["fingerprints"]
        self._overheads.append(self._note(one, answer, number))

    def _note(self, one: CandidateState, answer: dict[str, Any], round_number: int) -> float:
        """Adds a process's passes to what is known; returns what it took besides them and the pool."""
        one.interpreter = answer["interpreter"]
        before, after = answer["before"], answer["after"]
        calls = sum(number for number, _ in answer["passes"])
        seconds = max(after["at_s"] - before["at_s"], 1e-9)
        one.starts.append(answer["start_s"])
        one.start_cpu.append(answer["started"]["cpu_s"] - answer["first"]["cpu_s"])
        for number, wall in answer["passes"]:
            one.per_call.append(wall / number)
            total = max(answer["start_s"] + wall / number * self._limits.requests, 1e-9)
            one.totals.setdefault(round_number, []).append(total)
        one.calls += calls
        one.cpu.append((after["cpu_s"] - before["cpu_s"]) / seconds)
        one.switches.append(max(0, after["switches"] - before["switches"]) / calls)
        one.latencies += [took for took, _ in answer["timings"]]
        if own := [used for _, used in answer["timings"] if used is not None]:
            one.own_cpu_call.append(fmean(own))
        if answer["memory_kib"]:
            one.memory.append(answer["memory_kib"])
        one.cpu_call.append((after["cpu_s"] - before["cpu_s"]) / calls)
        since, now = (
            other_load.Reading(at_s=r["at_s"], idle_s=r["idle_s"] or 0.0, own_s=r["cpu_s"])
            for r in (answer["first"], after)
        )
        if after["idle_s"] is not None and now.at_s - since.at_s >= other_load.WINDOW_S:
            share = other_load.share(since, now, len(os.sched_getaffinity(0)))
            one.foreign += [share] * len(answer["passes"])
        passes_s = sum(wall for _, wall in answer["passes"])
        took: float = answer["elapsed_s"] - answer["start_s"] - passes_s - answer["latency_s"]
        return max(took, 0.0)

    def _count_all(self, allowed: int) -> None:
        """A process that gave no answer may have made all the calls that it was allowed."""
        if self._limits.most_calls < UNBOUNDED:
            self.calls += allowed

    def _compare_results(self, states: list[CandidateState]) -> None:
        """Which ways came to other results than calls in turn; nothing is said where those vary."""
        sequential = states[0].marks
        self.varies = sequential != self._limits.marks[: len(sequential)]
        for one in states[1:]:
            other = sum(a != b for a, b in zip(one.marks, self._limits.marks, strict=False))
            if one.runs and other and not self.varies:
                one.status = "wrong"
                one.reason = f"{other} of {len(one.marks)} results are not those of calls in turn"

    def _survivors(self, sequential: CandidateState, states: list[CandidateState]) -> list[CandidateState]:
        """Sequential, and the faster half of the others that were in the last round."""
        last = max(one.rounds for one in states)
        others = sorted(
            (one for one in states[1:] if one.runs and one.rounds == last), key=lambda one: one.total
        )
        keep = max(2, -(-len(others) // 2))
        kept = others[:keep]
        # a way that cannot be told from the best is not given up for its place alone
        kept += [one for one in others[keep:] if kept and one.total < 1.05 * kept[0].total]
        return [sequential, *kept]

    def _is_clear(self, running: list[CandidateState]) -> bool:
        """Whether more passes would hardly change the answer."""
        if len(running) == 1:
            return running[0].passes >= FEWEST_PASSES
        if any(len(one.totals) < FEWEST_ROUNDS for one in running):
            return False
        if all(len(one.totals) >= MOST_ROUNDS for one in running):
            return True
        best, *others = sorted(running, key=lambda one: one.total)
        losses = (
            expected_loss(best.total / one.total, versus(best.by_round, one.by_round)) for one in others
        )
        return max(losses) < SETTLED
