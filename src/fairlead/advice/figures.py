"""From the passes of each way to its figures. There is one estimate, and all else follows from it.

The time of a process is its start, the one-off cost of first calls, and the calls. What was made counts as it
was; calls that there was no time for count at the rate of the warm passes. A speed-up is the median of the
ratios of rounds that both ways ran in, and the time of a way is that of calls in turn divided by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING

from fairlead.advice.candidates import KINDS
from fairlead.advice.loss import gain, versus
from fairlead.lab.isolation import other_load
from fairlead.pools.choose import rules
from fairlead.record.advice import Candidate, Curve, Work

if TYPE_CHECKING:
    from fairlead.advice.successive_halving import CandidateState

AGREE = 1.25
"""A first pass that takes this many times as long a call as those after it is not a warm one."""
BEYOND = 1.15
"""A speed-up this many times what is possible is an error of the measuring."""


MUCH = 0.3
"""A share of the time with the GIL from which on it bounds threads; less is not known well enough."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The time of all the calls by one process, in seconds."""

    start_s: float
    """Of the pool, and its end."""
    once_s: float
    """What first calls take longer than others: imports and caches of each worker."""
    calls_s: float

    @property
    def total_s(self) -> float:
        return self.start_s + self.once_s + self.calls_s


def estimate(start_s: float, passes: Sequence[tuple[int, float]], requests: int) -> Estimate:
    """
    Args:
        passes: the number of calls and the seconds of each, the cold one first.
    """
    warm = list(passes[1:]) or list(passes)
    if len(warm) > 1 and _rate(warm[:1]) > AGREE * _rate(warm[1:]):
        del warm[0]
    rate = _rate(warm)
    made, took = sum(number for number, _ in passes), sum(wall for _, wall in passes)
    cold = passes[: len(passes) - len(warm)]
    once = max(0.0, sum(wall - number * rate for number, wall in cold))
    return Estimate(start_s, once, max(took + (requests - made) * rate - once, 1e-9))


def _rate(passes: Sequence[tuple[int, float]]) -> float:
    return sum(wall for _, wall in passes) / sum(number for number, _ in passes)


@dataclass(frozen=True, slots=True)
class Figures:
    """What the states say; calls in turn are the first of them."""

    states: Sequence[CandidateState]
    work: Work
    requests: int
    cores: int

    def candidates(self) -> list[Candidate]:
        return [self._candidate(one) for one in self.states]

    def curves(self) -> tuple[Curve, ...]:
        """Of the kinds that were measured, throughput over workers, starts and first calls not counted."""
        alone, *others = self.states
        measured = [one for one in others if one.rounds and one.runs and one.way.kind != "free-threaded"]
        return tuple(
            Curve(
                kind=kind,
                points=tuple(
                    (one.way.workers, self.requests / median(found.calls_s for found in one.rounds.values()))
                    for one in [alone, *sorted(measured, key=lambda one: one.way.workers)]
                    if one is alone or one.way.kind == kind
                ),
            )
            for kind in KINDS
            if any(one.way.kind == kind for one in measured)
        )

    def _candidate(self, one: CandidateState) -> Candidate:
        if not one.rounds:
            return Candidate(
                kind=one.way.kind, workers=one.way.workers, interpreter=one.interpreter, status=one.status,
                reason=one.reason,
            )  # fmt: skip
        sequential = self.states[0]
        alone = one is sequential
        speedup = 1.0 if alone else gain(sequential.by_round, one.by_round)
        total = median(sequential.by_round.values()) / speedup
        ratio = None if alone else versus(sequential.by_round, one.by_round)
        start, once = (
            total * fmean(part / found.total_s for part, found in parts)
            for parts in (
                [(found.start_s, found) for found in one.rounds.values()],
                [(found.once_s, found) for found in one.rounds.values()],
            )
        )
        status, reason = one.status, one.reason
        if status == "measured" and (impossible := self._impossible(one, speedup)):
            status, reason = "failed", impossible
        return Candidate(
            kind=one.way.kind,
            workers=one.way.workers,
            interpreter=one.interpreter,
            status=status,
            reason=reason,
            total_s=total,
            rounds=tuple(sorted(one.by_round.items())),
            speedup=speedup,
            low=1.0 if alone else min(ratio.low, speedup) if ratio else None,
            high=1.0 if alone else max(ratio.high, speedup) if ratio else None,
            start_s=start,
            once_s=once,
            call_s=(total - start - once) / self.requests,
            calls=one.calls,
            cpu=median(one.cpu) if one.cpu else None,
            cpu_call_s=median(one.cpu_call) if one.cpu_call else None,
            memory_kib=median(one.memory) if one.memory else None,
            p50_s=median(one.latencies) if one.latencies else None,
            p99_s=_p99(one.latencies),
            foreign=_foreign([one]) or _foreign(self.states),
        )

    def _impossible(self, one: CandidateState, speedup: float) -> str | None:
        """Why this cannot be; None if it can.

        Calls that do not wait gain by cores alone, unless each takes less processor time in the pool; and
        threads never beyond the time with the GIL.
        """
        work, cores = self.work, min(one.way.workers, self.cores)
        if one.way.kind == "threads" and work.gil > MUCH and speedup * work.gil > BEYOND:
            return (
                f"measured at x{speedup:.2f}, which calls that hold the GIL {work.gil:.0%} of the time "
                "cannot gain by threads: what was measured is not what they do"
            ).replace("%", " %")
        used = median(self.states[0].cpu_call or [0.0]), median(one.cpu_call or [0.0])
        cheaper = max(used[0] / used[1], 1.0) if used[0] > 0 and used[1] > 0 else 1.0
        waits = rules.gains_by_waiting_at_once(work.waiting) or one is self.states[0]
        if not waits and speedup > cores * cheaper * BEYOND:
            return (
                f"measured at x{speedup:.2f}, which {cores} cores cannot give: calls without a pool had to "
                "wait for something else"
            )
        return None


def _foreign(states: Sequence[CandidateState]) -> float | None:
    """The share of the cores that others took; None where all processes together were too short to tell."""
    windows = [window for one in states for window in one.foreign]
    seconds = sum(length for length, _ in windows)
    if seconds < other_load.WINDOW_S:
        return None
    return sum(length * share for length, share in windows) / seconds


def _p99(latencies: Sequence[float]) -> float | None:
    """What 99 of 100 calls take at most; None of fewer than a hundred, of which it is the longest."""
    return None if len(latencies) < 100 else sorted(latencies)[-(len(latencies) // 100) - 1]
