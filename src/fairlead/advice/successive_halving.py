"""Successive halving: which of many ways is the fastest, without measuring the slow ones for long.

One round measures every way that is still in the running once, in turn, so that a change of the machine's
mood meets all alike. All rounds are of one size: every way makes the same calls, all that the program would
make, or as many as there is time for. If there is too little time, fewer ways are measured rather than fewer
calls, for a few calls say more of starts and first calls than of what comes after. After a round the slower
half is given up, never the calls in turn, which are what all are held against. It goes on until the answer
would not change, or no further round fits into the budget or the allowed calls.
(K. Jamieson, A. Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization", 2016.)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from statistics import median
from typing import Any

from fairlead.advice.candidates import Way, expected_call_s
from fairlead.advice.figures import Estimate, estimate
from fairlead.advice.jobs import Bench, Died
from fairlead.advice.loss import error, expected_loss, gain
from fairlead.errors import AdviceError
from fairlead.lab.isolation import other_load
from fairlead.lab.isolation.stop import Stop
from fairlead.measure.ratio import FEWEST_ROUNDS
from fairlead.pools.choose import rules
from fairlead.record.advice import CandidateStatus, Work, in_workers

PROCESS_S = 0.35
"""What a process takes besides its calls, until it is known."""
STARTS_S = {"processes": 0.06, "interpreters": 0.03}
"""What each worker takes to start, until it is known."""
SLOT_S = (0.15, 2.0)
"""The shortest and the longest time that calls in turn are made to take in a round, unless one takes longer
or all take little more."""
LATER = 6
"""Measurements after the first round for which there must be time: two more rounds of three ways."""
KEPT = 2
"""Ways besides calls in turn that a round keeps at least, if there is time."""
WAVES = (2, 8)
"""Calls of each worker in a process, at least and where they take little time."""
MOST_ROUNDS = 10
SETTLED = 0.005
"""An expected loss below this needs no further round."""
BEYOND = 0.5
"""What one round may take beyond the budget, as a share of it."""
CHECK_SHARE = 0.02
"""Of the budget, for the calls of a process whose results are held against the sequential ones."""
PATIENCE_S = 10.0
"""For what is not calls, until a process is taken to hang."""
UNBOUNDED = 1 << 60
"""Calls, where no bound is given."""
SHORTEST_S = 0.02
"""Processor time of passes that took less is not counted: the counting itself takes some of it."""


@dataclass
class CandidateState:
    """What is known of a way so far."""

    way: Way
    interpreter: str
    status: CandidateStatus = "measured"
    reason: str | None = None
    rounds: dict[int, Estimate] = field(default_factory=dict)
    """What all the calls take, by the process of each round: a process is one observation."""
    foreign: list[tuple[float, float]] = field(default_factory=list)
    """(seconds of a process, the share of the cores that others took in them)."""
    cpu: list[float] = field(default_factory=list)
    cpu_call: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    """Seconds of single calls, from the begin of each in its worker to its end."""
    calls: int = 0
    marks: list[str] = field(default_factory=list)
    """Fingerprints of its first results."""

    @property
    def runs(self) -> bool:
        return self.status == "measured"

    @property
    def by_round(self) -> dict[int, float]:
        return {number: found.total_s for number, found in self.rounds.items()}


@dataclass(frozen=True, slots=True)
class Limits:
    """What there is to do, and what it may take."""

    label: str
    requests: int
    cores: int
    work: Work
    marks: Sequence[str]
    """Fingerprints of the results of the first calls, in turn."""
    raises: bool
    """Whether one of the first calls raised an exception."""
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
        self.process_s = PROCESS_S
        """What a process takes besides its calls, as far as it is known before one is measured."""
        self._overheads: list[float] = []
        self._slot = SLOT_S[0]
        self._number = 2
        """Calls of a process, more where its workers need more."""
        self.calls = 0
        """Of the function, so far."""
        self.varies = False
        """The same calls gave other results in another process."""
        self.left_out: list[Way] = []
        """Ways for which there was no time."""
        self.raised: dict[int, str] = {}
        """What calls with these items raised."""

    def run(self, states: list[CandidateState]) -> None:
        """Raises AdviceError if one round takes too much, or calls in turn fail."""
        sequential = states[0]
        running = self._affordable(states)
        for number in count(1):
            # backwards in every other round, so that a drift falls on no way alone
            for place, one in enumerate(running if number % 2 else running[::-1]):
                if number == 1 and place > 1:
                    # the machine may be slower than its first calls were: two more rounds are worth more
                    later = 2 * self._cost(running[:2]) if place > KEPT else 0.0
                    if not self._fits([one]) or self._cost([one]) + later > self._left():
                        self.left_out.append(one.way)
                        continue
                to_come = len(running) - place
                self._tell(f"round {number}: {one.way.kind}, {in_workers(one.way.workers)}", number, to_come)
                late = self._measure(one, to_come, number)
                if one is sequential and not one.runs:
                    raise AdviceError(
                        f"{self._limits.label}, called one after another in a new process: {one.reason}; "
                        "give items that it can handle, and have its module make what else it needs"
                    )
                if late:
                    return
            if number == 1:
                self._compare_results(states)
            running = self._survivors(states, number)
            if not self._fits(running) or self._is_clear(running):
                return

    # how much

    def _affordable(self, states: list[CandidateState]) -> list[CandidateState]:
        """The ways for which there is time, the most promising ones, and how many calls each makes.

        Raises:
            AdviceError: there is no time for calls in turn and one other way, or too few calls are allowed;
                says how much would do.
        """
        limits = self._limits
        first, *others = states
        others.sort(key=lambda one: self._takes(one, limits.requests))
        # another interpreter is never the choice: it is the first to go
        kinds = {one.way.kind: one for one in reversed(others)}.values()
        others.sort(key=lambda one: (one.way.kind == "free-threaded", one not in kinds))
        while True:
            running = [first, *others]
            self._size(running)
            calls = self.calls + sum(map(self._calls, running))
            fits = self._left() > self._cost(running) + 2 * self._cost(running[:3])
            if len(others) <= 1 or (fits and calls <= limits.most_calls):
                break
            self.left_out.append(others.pop().way)
        if others and calls > limits.most_calls:
            raise AdviceError(
                f"to compare {len(running)} ways takes {calls} calls at least, and --max-calls allows "
                f"{limits.most_calls}: allow more, or name fewer --kinds"
            )
        # on a busy machine the first calls may have used up more than the budget, however short they are
        needed = sum(self._calls(one) * self._per_call(one) for one in running)
        if others and needed > max(self._left(), 0.0) + BEYOND * limits.budget_s:
            raise AdviceError(
                f"one call of {limits.label} takes {limits.work.call_s:.3g} s, and comparing "
                f"{len(running)} ways of making the calls takes about "
                f"{needed + limits.budget_s - self._left():.0f} s: allow that with --budget, give items that "
                "take less, or name fewer --kinds"
            )
        return running

    def _size(self, running: Sequence[CandidateState]) -> None:
        """How many calls each way makes in a process: all, or those of a slot of calls in turn."""
        limits = self._limits
        call_s = max(limits.work.call_s, 1e-9)
        slot = 0.9 * self._left() / (len(running) + LATER) - self.process_s
        self._slot = min(max(slot, SLOT_S[0]), SLOT_S[1])
        waits = rules.waits(limits.work.waiting)
        workers = 1 if waits else max(one.way.workers for one in running)
        number = max(int(self._slot / call_s), WAVES[0] * workers)
        if limits.requests * call_s <= 2 * self._slot:
            number = limits.requests
        self._number = -(-number // workers) * workers

    def _calls(self, one: CandidateState) -> int:
        """Of a process: of all the same, but where calls wait at once each worker makes some."""
        number = self._number
        if rules.waits(self._limits.work.waiting):
            waves = int(self._slot / max(self._limits.work.call_s, 1e-9))
            number = max(number, one.way.workers * min(max(waves, WAVES[0]), WAVES[1]))
        number = min(self._limits.requests, number)
        if self._limits.most_calls < UNBOUNDED:  # a few calls are all that can be had then
            number = min(number, max(WAVES[0] * one.way.workers, self._limits.most_calls // (2 * LATER)))
        return number

    def _per_call(self, one: CandidateState) -> float:
        """Seconds between the ends of two calls, as far as it is known."""
        if one.rounds:
            return median(found.calls_s for found in one.rounds.values()) / self._limits.requests
        return expected_call_s(one.way, self._limits.work, self._limits.cores)

    def _cost(self, running: Sequence[CandidateState]) -> float:
        """Seconds that one more round takes, about."""
        overhead = median(self._overheads or [self.process_s])
        return sum(overhead + self._takes(one, self._calls(one)) for one in running)

    def _takes(self, one: CandidateState, calls: int) -> float:
        """Seconds of a pool with so many calls, as far as it is known."""
        # a pool's start is as much slower here as that of a process is
        start = STARTS_S.get(one.way.kind, 0.001) * one.way.workers * self.process_s / PROCESS_S
        if one.rounds:
            start = median(found.start_s + found.once_s for found in one.rounds.values())
        return start + calls * self._per_call(one)

    def _fits(self, running: Sequence[CandidateState]) -> bool:
        enough = self.calls + sum(map(self._calls, running)) <= self._limits.most_calls
        return enough and self._cost(running) <= self._left()

    def _left(self) -> float:
        return self._limits.end - time.monotonic()

    # one process

    def _measure(self, one: CandidateState, to_come: int, number: int) -> bool:
        """Measures it once; whether the budget ended before that did."""
        limits = self._limits
        # in the first round each leaves as much for those that follow
        left = (limits.most_calls - self.calls) // (to_come if number == 1 else 1)
        calls = min(self._calls(one), left)
        checked = int(limits.budget_s * CHECK_SHARE / max(limits.work.call_s, 1e-6))
        first = min(calls, max(one.way.workers, min(checked, len(limits.marks), max(calls // 10, 1))))
        cost = self._cost([one])
        answer = self._bench.run(
            "measure",
            PATIENCE_S + 5 * cost if number == 1 else max(self._left(), 0.0) + cost,
            one.way.interpreter,
            kind=one.way.kind,
            workers=one.way.workers,
            coroutines=limits.work.coroutines,
            requests=limits.requests,
            call_s=limits.work.call_s,
            catch=limits.raises,
            first=first,
            number=calls,
            time_s=2 * max(self._slot, calls * self._per_call(one)),
            most_calls=left,
        )
        if isinstance(answer, Died):
            self._count_all(left)
            if answer.late and number > 1:
                return True
            one.status = "failed"
            one.reason = "it did not end in time" if answer.late else f"its process {answer.how}"
            return False
        if "refused" in answer or "failed" in answer:
            one.status, one.reason = "failed", answer.get("refused") or answer["failed"]
            self._count_all(left)
            return False
        if number == 1:
            one.marks = answer["fingerprints"]
        self._note(one, answer, number)
        marks = answer["fingerprints"]
        if set(marks) == {"raised"} and {*limits.marks[: len(marks)]} != {"raised"}:
            one.status, one.reason = "failed", answer["raised"][0][1]
        return False

    def _note(self, one: CandidateState, answer: dict[str, Any], number: int) -> None:
        """Adds what a process measured to what is known."""
        passes = [(calls, wall) for calls, wall in answer["passes"]]
        one.interpreter = answer["interpreter"]
        one.rounds[number] = estimate(answer["start_s"], passes, self._limits.requests)
        self.raised |= dict(answer["raised"])
        self.calls += answer["calls"]
        one.calls += sum(calls for calls, _ in passes)
        one.latencies += answer["timings"]
        if answer["memory_kib"]:
            one.memory.append(answer["memory_kib"])
        first, before, after = answer["first"], answer["before"], answer["after"]
        warm = sum(calls for calls, _ in passes[1:])
        if warm and sum(wall for _, wall in passes[1:]) > SHORTEST_S:
            used = after["cpu_s"] - before["cpu_s"]
            one.cpu.append(used / max(after["at_s"] - before["at_s"], 1e-9))
            one.cpu_call.append(used / warm)
        since, now = (
            other_load.Reading(at_s=r["at_s"], idle_s=r["idle_s"] or 0.0, own_s=r["cpu_s"])
            for r in (first, after)
        )
        if after["idle_s"] is not None:
            share = other_load.share(since, now, len(os.sched_getaffinity(0)))
            one.foreign.append((now.at_s - since.at_s, share))
        took = answer["elapsed_s"] - answer["start_s"] - sum(wall for _, wall in passes)
        self._overheads.append(max(took, 0.0))

    def _count_all(self, allowed: int) -> None:
        """A process that gave no answer may have made all the calls that it was allowed."""
        if self._limits.most_calls < UNBOUNDED:
            self.calls += allowed

    # what comes next

    def _compare_results(self, states: list[CandidateState]) -> None:
        """Which ways came to other results than calls in turn; nothing is said where those vary."""
        sequential = states[0].marks
        known = self._limits.marks[: len(sequential)]
        self.varies = sequential[: len(known)] != list(known)
        for one in states[1:]:
            other = sum(a != b for a, b in zip(one.marks, self._limits.marks, strict=False))
            if one.runs and other and not self.varies:
                one.status = "wrong"
                one.reason = f"{other} of {len(one.marks)} results are not those of calls in turn"

    def _survivors(self, states: list[CandidateState], last: int) -> list[CandidateState]:
        """Sequential, and the faster half of the others that were in the last round: fewer, if two more
        rounds of these do not fit. Another interpreter is never the choice, and needs no second round."""
        sequential = states[0]

        def slower(one: CandidateState) -> float:
            return 1 / gain(sequential.by_round, one.by_round)

        others = [
            one for one in states[1:]
            if one.runs and last in one.rounds and one.way.kind != "free-threaded"
        ]  # fmt: skip
        others.sort(key=slower)
        keep = max(KEPT, -(-len(others) // 2))
        # a way that cannot be told from the best is not given up for its place alone
        while keep < len(others) and slower(others[keep]) < 1.05 * slower(others[0]):
            keep += 1
        more = max(FEWEST_ROUNDS - last, 1)
        while keep > 1 and more * self._cost([sequential, *others[:keep]]) > self._left():
            keep -= 1
        return [sequential, *others[:keep]]

    def _is_clear(self, running: list[CandidateState]) -> bool:
        """Whether more rounds would hardly change the answer."""
        if any(len(one.rounds) < FEWEST_ROUNDS for one in running):
            return False
        if len(running) == 1 or all(len(one.rounds) >= MOST_ROUNDS for one in running):
            return True
        base = running[0].by_round
        best, *others = sorted(running, key=lambda one: 1 / gain(base, one.by_round))
        losses = []
        for one in others:
            off = error(best.by_round, one.by_round, base)
            slower = gain(base, one.by_round) / gain(base, best.by_round)
            losses.append(expected_loss(slower, off) if off is not None else 1.0)
        return max(losses) < SETTLED
