"""From the passes of each way to its figures, and what they would be on a machine left alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from fairlead.advice import scaling
from fairlead.advice.candidates import KINDS
from fairlead.advice.loss import versus
from fairlead.advice.successive_halving import CandidateState
from fairlead.lab.isolation import other_load
from fairlead.pools.choose import rules
from fairlead.record.advice import Candidate, Curve, Kind, Work

OWN_THREADS = 1.25
"""A call whose process uses this many times the processor time of its thread has threads of its own."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What the states say; calls in turn are the first of them."""

    states: Sequence[CandidateState]
    work: Work
    requests: int
    cores: int

    @property
    def foreign(self) -> float:
        """The share of the cores that others took meanwhile, as far as it is known."""
        return median([share for one in self.states for share in one.foreign] or [0.0])

    def candidates(self) -> list[Candidate]:
        return [self._candidate(one) for one in self.states]

    def curves(self) -> tuple[Curve, ...]:
        """Of the kinds that were measured, throughput over workers."""
        points = {kind: self._points(kind) for kind in KINDS}
        return tuple(scaling.curve(kind, found) for kind, found in points.items() if len(found) > 1)

    def _candidate(self, one: CandidateState) -> Candidate:
        sequential = self.states[0]
        plain = Candidate(
            kind=one.way.kind, workers=one.way.workers, interpreter=one.interpreter, status=one.status,
            reason=one.reason,
        )  # fmt: skip
        if not one.totals:
            return plain
        alone = one is sequential
        ratio = versus(sequential.by_round, one.by_round)
        start, per_call = self._alone(one) if self.foreign > other_load.NOISY else (None, None)
        return Candidate(
            kind=one.way.kind,
            workers=one.way.workers,
            interpreter=one.interpreter,
            status=one.status,
            reason=one.reason,
            total_s=one.total,
            rounds=tuple(sorted(one.by_round.items())),
            speedup=1.0 if alone else ratio.value if ratio else _gain(sequential.by_round, one.by_round),
            low=1.0 if alone else ratio.low if ratio else None,
            high=1.0 if alone else ratio.high if ratio else None,
            start_s=median(one.starts),
            call_s=median(one.per_call),
            passes=one.passes,
            calls=one.calls,
            cpu=median(one.cpu),
            memory_kib=median(one.memory) if one.memory else None,
            switches=median(one.switches),
            p50_s=median(one.latencies) if one.latencies else None,
            p99_s=_p99(one.latencies),
            cpu_call_s=median(one.cpu_call),
            foreign=median(one.foreign) if one.foreign else None,
            alone_s=None if start is None or per_call is None else start + per_call * self.requests,
            alone_start_s=start,
            alone_call_s=per_call,
        )

    def _alone(self, one: CandidateState) -> tuple[float, float]:
        """The time of the start and of a call on a machine left alone. A start computes, for each worker the
        same."""
        at_once = min(one.way.workers, self.cores)
        start = min(median(one.starts), median(one.start_cpu) / at_once)
        # the processor time of two ways may have been taken at times of which one was slower for both
        computing = (1 - self.work.waiting) * self._at_once_in_a_call()
        most = min(one.way.workers, self.cores / max(computing, 1e-9))
        if one.way.kind in ("threads", "async") and self.work.gil_from != "none":
            most = min(most, 1 / max(self.work.gil, 1e-9))
        least = self._alone_call(self.states[0]) / most
        return start, max(self._alone_call(one), least)

    def _alone_call(self, one: CandidateState) -> float:
        """The time between the ends of two calls on a machine left alone.

        Processor time hardly depends on what else runs. A call cannot take less than that time on one of
        the cores that its workers have, nor less than one worker needs for it and its waiting; and threads
        of one interpreter not less than it holds the GIL. Nor do calls wait at once only because they wait:
        what holds them up besides other programs, as a lock that each takes, is there alone, too. A call that
        has threads of its own has several cores by itself.
        """
        work, workers = self.work, one.way.workers
        computing = median(one.cpu_call)
        at_once = self._at_once_in_a_call()
        waiting = work.waiting * work.call_s
        per_call = max(
            computing / min(workers * at_once, self.cores), (computing / at_once + waiting) / workers
        )
        if one.way.kind in ("sequential", "threads", "async") and work.gil_from != "none":
            per_call = max(per_call, computing * work.gil / max(work.gil + work.free, 1e-9))
        if one is not self.states[0] and rules.waits(work.waiting):
            per_call = max(per_call, self._held_up(one))
        return per_call

    def _at_once_in_a_call(self) -> float:
        """How many cores a call without a pool can use, as one of a library with threads of its own does."""
        sequential = self.states[0]
        own = median(sequential.own_cpu_call or [0.0])
        used = median(sequential.cpu_call)
        return min(used / own, self.cores) if 0 < own < used / OWN_THREADS else 1.0

    def _held_up(self, one: CandidateState) -> float:
        """The measured time between the ends of two calls, without what other programs can have added: as
        much as to a call without a pool, in proportion to its processor time and on each of the cores."""
        sequential = self.states[0]
        added = max(0.0, median(sequential.per_call) - self._alone_call(sequential))
        more = max(1.0, median(one.cpu_call) / max(median(sequential.cpu_call), 1e-9))
        return median(one.per_call) - added * more / min(one.way.workers, self.cores)

    def _points(self, kind: Kind) -> dict[int, float]:
        """Calls a second by workers, worked out if others were busy; calls in turn are one worker."""
        if kind in ("sequential", "free-threaded"):
            return {}

        busy = self.foreign > other_load.NOISY

        def rate(one: CandidateState) -> float:
            return 1 / (self._alone_call(one) if busy else median(one.per_call))

        points = {
            one.way.workers: rate(one)
            for one in self.states
            if one.way.kind == kind and one.per_call and one.runs
        }
        return {1: rate(self.states[0])} | points if points else {}


def _gain(sequential: Mapping[int, float], other: Mapping[int, float]) -> float:
    """The speed-up of one or two rounds: from those that both ran in, for the machine may change."""
    common = sorted(sequential.keys() & other.keys()) or None
    return median(sequential[number] for number in common or sequential) / median(
        other[number] for number in common or other
    )


def _p99(latencies: Sequence[float]) -> float | None:
    """What 99 of 100 calls take at most; None of fewer than a hundred, of which it is the longest."""
    return None if len(latencies) < 100 else sorted(latencies)[-(len(latencies) // 100) - 1]
