"""From a function to advice: look, choose what to measure, measure by successive halving, choose.

Every measurement is a process session of its own. One round measures every way that is still in the running
once, in turn, so that a change of the machine's mood meets all alike. After a round the slower half is given
up, never the sequential run, which is what all are held against. It goes on until the answer would not
change, or the budget is used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import fmean, median
from typing import Any

from fairlead import machine
from fairlead.advice import choosing, pasting, scaling
from fairlead.advice.bench import Bench, Died, Report
from fairlead.advice.target import Target
from fairlead.advice.ways import COMPUTES, KINDS, Facts, Way, ways
from fairlead.errors import CannotAdvise, UsageError
from fairlead.lab import quiet
from fairlead.lab.environment import environment
from fairlead.lab.interpreters import Interpreter, free_threaded
from fairlead.lab.runner import Progress
from fairlead.lab.statistics import describe, ends, positive, resampled_medians
from fairlead.lab.stop import Stop
from fairlead.pools.choice import has_gil
from fairlead.record.advice import Advice, Candidate, Kind, Plan, Work

LOOK_SHARE = 0.05
"""Of the budget, for a round of first calls; there are two."""
FIRST_CALL_SHARE = 0.5
"""Of the budget: what does not return within that is taken never to return."""
PASSES = 3
"""In one process. More processes say more than more passes in one."""
START_S = 0.3
"""What a process takes besides its pool and its passes, until it is known."""
FEWEST_PASSES = 5
"""Below these an interval says nothing."""
ENOUGH = 9
"""Passes after which a way that is clearly ahead needs no more."""
MOST_PASSES = 30
SLOT_S = (0.04, 0.5)
"""The shortest and the longest time that a pass is made to take, unless one call takes longer."""
CHECK_SHARE = 0.02
"""Of the budget, for the calls of a process whose results are held against the sequential ones."""
PATIENCE_S = 10.0
QUIET_SHARE = 0.05
"""Of the budget, for waiting until other programs leave the machine alone."""
FEWEST = 1.0
"""Seconds: a budget below this is none."""


@dataclass
class Standing:
    """What is known of a way so far."""

    way: Way
    interpreter: str
    status: Any = "measured"
    reason: str | None = None
    starts: list[float] = field(default_factory=list)
    per_call: list[float] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)
    foreign: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    cpu_call: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    switches: list[float] = field(default_factory=list)
    calls: int = 0
    rounds: int = 0
    marks: list[str] = field(default_factory=list)
    """Fingerprints of its first results."""

    @property
    def runs(self) -> bool:
        return bool(self.status == "measured")

    @property
    def total(self) -> float:
        return median(self.totals)


class Session:
    """One measuring, from the first look to the advice.

    Raises:
        UsageError: the budget, a kind or a bound is none.
    """

    def __init__(
        self,
        target: Target,
        budget: float,
        *,
        max_calls: int | None = None,
        kinds: Sequence[str] | None = None,
        report: Report | None = None,
    ) -> None:
        if not FEWEST <= budget < float("inf"):
            raise UsageError(f"the budget must be at least {FEWEST:g} s, not {budget:g}")
        if max_calls is not None and max_calls < 4:
            raise UsageError(f"max_calls must be at least 4, not {max_calls}: two to look, two to compare")
        for kind in kinds or ():
            if kind not in KINDS:
                raise UsageError(f"there is no kind {kind!r}; there are {', '.join(KINDS)}")
        self._target = target
        self._budget = budget
        self._most = max_calls or 1 << 60
        self._max_calls = max_calls
        self._kinds = kinds
        self._report = report
        self._cores = machine.cores().usable
        self._calls = 0
        self._samples = 0
        self._to_come = 0
        self._varies = False
        self._overheads = [START_S]
        self._marks: list[str] = []

    def plan(self) -> Plan:
        """What ``run`` would do. The function is imported, and not called."""
        with Stop() as stop:
            bench = Bench(self._target, stop)
            answer = bench.run("plan", self._budget + PATIENCE_S)
            if isinstance(answer, Died):
                raise CannotAdvise(f"{self._target.label} cannot be imported: its process {answer.how}")
            requests = self._target.requests or answer["items"]
            facts = self._facts(answer, requests, None, self._free_threaded(stop, None))
        found, refused = ways(facts)
        return Plan(
            target=self._target.label,
            items=answer["items"],
            requests=requests,
            budget_s=self._budget,
            max_calls=self._max_calls,
            ways=tuple((way.kind, way.workers, _name(way, answer)) for way in found),
            refused={str(kind): why for kind, why in refused.items()},
        )

    def run(self) -> Advice:
        """Measure, and say what to do. See ``fairlead.advise`` for what it raises."""
        begin = time.monotonic()
        self._end = begin + self._budget
        with Stop() as stop:
            self._stop = stop
            self._bench = Bench(self._target, stop)
            self._tell("looking at the first calls")
            look = self._look()
            self._check = look["check"]
            self._marks = look["fingerprints"]
            requests = self._target.requests or look["items"]
            self._requests = requests
            work = _work(look, varies=False)
            self._call_s = work.call_s
            facts = self._facts(look, requests, work, self._free_threaded(stop, work))
            found, refused = ways(facts)
            standings = [Standing(way, _name(way, look)) for way in found]
            self._coroutines = facts.coroutines
            self._rounds(standings)
        work = _work(look, varies=self._varies)
        foreign = median([share for one in standings for share in one.foreign] or [0.0])
        candidates = [self._candidate(one, standings[0], foreign, work) for one in standings]
        candidates += [_refused(kind, why, look) for kind, why in refused.items()]
        choice = choosing.choose(candidates, work, requests, self._cores)
        self._busy = foreign > quiet.NOISY
        curves = tuple(
            scaling.curve(kind, points)
            for kind in KINDS
            if len(points := self._points(standings, kind, work)) > 1
        )
        return Advice(
            target=self._target.label,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            python=look["interpreter"],
            cores=self._cores,
            gil=look["gil_here"],
            environment=environment(),
            requests=requests,
            items=look["items"],
            budget_s=self._budget,
            used_s=time.monotonic() - begin,
            calls=self._calls,
            work=work,
            choice=choice,
            candidates=tuple(candidates),
            curves=curves,
            code=pasting.code(
                self._target, choice.kind, choice.workers,
                coroutines=facts.coroutines, requests=requests, items=look["items"],
            ),
            again=choosing.again(choice, work, candidates, requests, self._cores),
            notes=choosing.notes(choice, work, candidates, self._calls),
        )  # fmt: skip

    # before measuring

    def _facts(
        self, answer: dict[str, Any], requests: int, work: Work | None, free: Interpreter | None
    ) -> Facts:
        return Facts(
            cores=self._cores,
            gil=has_gil(),
            requests=requests,
            coroutines=answer["coroutines"],
            cannot_be_sent=answer["cannot_be_sent"],
            cannot_load=answer["cannot_load"],
            by_reference=self._target.by_reference,
            free_threaded=free,
            kinds=self._kinds,
            work=work,
        )

    def _free_threaded(self, stop: Stop, work: Work | None) -> Interpreter | None:
        """The newest interpreter without a GIL on this machine, where it could do better than this one."""
        if not has_gil() or (self._kinds is not None and "free-threaded" not in self._kinds):
            return None
        if work is not None and (work.coroutines or work.gil < COMPUTES):
            return None
        return free_threaded(stop)

    def _look(self) -> dict[str, Any]:
        limit = max(self._budget * FIRST_CALL_SHARE, FEWEST)
        answer = self._bench.run(
            "look",
            self._budget + limit + PATIENCE_S,
            call_limit_s=limit,
            look_s=self._budget * LOOK_SHARE,
            requests=self._target.requests or 1 << 60,
            most_calls=self._most,
        )
        label = self._target.label
        if not isinstance(answer, Died):
            self._calls += answer["calls"]
            return answer
        how = "it took too long" if answer.late else f"its process {answer.how}"
        match answer.doing:
            case "call":
                where = f"when it was called with item {answer.item}"
                if answer.late:
                    raise CannotAdvise(
                        f"{label} did not return within {limit:.0f} s {where}: give items that take less "
                        "time, or a larger budget"
                    )
                raise CannotAdvise(f"{label} ended its process {where}: it {answer.how}")
            case "items":
                raise CannotAdvise(f"the items of {label} cannot be had: {how}")
            case "import":
                raise CannotAdvise(f"{label} cannot be imported: {how}")
        raise CannotAdvise(f"{label} could not be called: {how}")

    # measuring

    def _rounds(self, standings: list[Standing]) -> None:
        sequential = standings[0]
        running = list(standings)
        self._afford(running)
        patience = self._budget * QUIET_SHARE
        meter = quiet.Meter()
        number = 0
        while running:
            number += 1
            left = self._end - time.monotonic()
            share = 0.4 if number == 1 else 0.5
            slot = left * share / len(running) / (PASSES + 1) - median(self._overheads) / PASSES
            slot = min(max(slot, SLOT_S[0]), SLOT_S[1])
            self._to_come = len(running)
            for place, one in enumerate(running):
                if number > 1 and time.monotonic() + self._cost(one, slot) > self._end:
                    continue
                if number > 1 and self._calls + self._fewest_calls(one) > self._most:
                    continue
                self._to_come = len(running) - place
                self._tell(f"round {number}: {one.way.kind}, {_count(one.way.workers)}", number)
                self._measure(one, slot, first=number == 1)
                if one is sequential and not one.runs:
                    raise CannotAdvise(f"{self._target.label}, called one after another: {one.reason}")
                if patience > 0 and one.foreign and one.foreign[-1] > quiet.NOISY:
                    begin = time.monotonic()
                    meter.wait_for_quiet(min(patience, left * QUIET_SHARE), self._stop)
                    patience -= time.monotonic() - begin
            if number == 1:
                self._compare_results(standings)
            running = self._survivors(sequential, standings)
            least = min(self._cost(one, SLOT_S[0]) for one in running)
            out_of_time = time.monotonic() + least > self._end
            out_of_calls = self._calls + min(map(self._fewest_calls, running)) > self._most
            if out_of_time or out_of_calls or self._is_clear(running):
                return

    def _afford(self, running: list[Standing]) -> None:
        """One round must not take far more than the budget, nor more calls than are allowed.

        Raises:
            CannotAdvise: it does; says how much would do.
        """
        if len(running) == 1:
            return
        least = self._calls + sum(map(self._fewest_calls, running))
        if least > self._most:
            raise CannotAdvise(
                f"to compare {len(running)} ways takes {least} calls at least, and --max-calls allows "
                f"{self._most}: allow more, or name fewer --kinds"
            )
        needed = sum(self._fewest_calls(one) * self._per_call(one) for one in running)
        left = self._end - time.monotonic()
        if needed > 2 * left + self._budget:
            used = self._budget - left
            raise CannotAdvise(
                f"one call of {self._target.label} takes {self._call_s:.1f} s, and to compare {len(running)} "
                f"ways of making them takes some {needed + used:.0f} s: give it a --budget of that, items "
                "that take less, or fewer --kinds"
            )

    def _per_call(self, one: Standing) -> float:
        """Seconds between the ends of two calls, as far as it is known."""
        return median(one.per_call) if one.per_call else self._call_s / (1 + (one.way.workers > 1))

    def _at_once(self, one: Standing) -> int:
        """How many calls it is expected to make at once: in a pass there are as many at least."""
        return min(one.way.workers, self._requests)

    def _check_places(self, one: Standing, *, first: bool) -> list[int]:
        slot = self._budget * CHECK_SHARE
        most = max(1, int(slot / max(self._call_s, 1e-6)))
        if not first:
            most = min(most, 2 * one.way.workers)
        left = (self._most - self._calls) // 2
        places: list[int] = self._check
        return places[: max(1, min(most, left))]

    def _fewest_calls(self, one: Standing) -> int:
        return 1 + self._at_once(one)

    def _cost(self, one: Standing, slot: float) -> float:
        """Seconds that one more process for it takes, about."""
        per_call = self._per_call(one)
        at_least = self._at_once(one) * per_call
        checks = len(self._check_places(one, first=not one.rounds)) * per_call
        start = median(one.starts) if one.starts else 0.0
        return median(self._overheads) + start + checks + max(at_least, 1.5 * slot * PASSES)

    def _measure(self, one: Standing, slot: float, *, first: bool) -> None:
        check = self._check_places(one, first=first)
        left = max(self._most - self._calls, 2)
        calls_of_a_pass = slot * max(PASSES * 4, 12) * max(1, one.way.workers)
        expected = self._call_s * (len(check) + PASSES * max(self._at_once(one), 1)) + calls_of_a_pass
        self._samples += 1
        answer = self._bench.run(
            "measure",
            PATIENCE_S + START_S + 5 * expected,
            one.way.interpreter,
            kind=one.way.kind,
            workers=one.way.workers,
            coroutines=self._coroutines,
            requests=self._requests,
            check=check,
            first_pass=self._at_once(one) if self._call_s > slot else max(self._at_once(one), len(check)),
            slot_s=slot,
            time_s=slot * PASSES,
            passes=PASSES,
            most_calls=left,
        )
        one.rounds += 1
        if isinstance(answer, Died):
            one.status = "failed"
            one.reason = "it did not end in time" if answer.late else f"its process {answer.how}"
            return
        if "refused" in answer or "failed" in answer:
            one.status, one.reason = "failed", answer.get("refused") or answer["failed"]
            return
        self._calls += answer["calls"]
        one.interpreter = answer["interpreter"]
        if first:
            one.marks = answer["fingerprints"]
        before, after = answer["before"], answer["after"]
        calls = sum(number for number, _ in answer["passes"])
        seconds = max(after["at_s"] - before["at_s"], 1e-9)
        one.starts.append(answer["start_s"])
        for number, wall in answer["passes"]:
            one.per_call.append(wall / number)
            one.totals.append(max(answer["start_s"] + wall / number * self._requests, 1e-9))
        one.calls += calls
        one.cpu.append((after["cpu_s"] - before["cpu_s"]) / seconds)
        one.switches.append(max(0, after["switches"] - before["switches"]) / calls)
        if answer["memory_kib"]:
            one.memory.append(answer["memory_kib"])
        one.cpu_call.append((after["cpu_s"] - before["cpu_s"]) / calls)
        since, now = (
            quiet.Reading(at_s=r["at_s"], idle_s=r["idle_s"] or 0.0, own_s=r["cpu_s"])
            for r in (answer["first"], after)
        )
        if after["idle_s"] is not None and now.at_s - since.at_s >= quiet.WINDOW_S:
            share = quiet.share(since, now, len(os.sched_getaffinity(0)))
            one.foreign += [share] * len(answer["passes"])
        passes_s = sum(wall for _, wall in answer["passes"])
        self._overheads.append(max(answer["elapsed_s"] - answer["start_s"] - passes_s, 0.0))

    def _compare_results(self, standings: list[Standing]) -> None:
        """Which ways came to other results than calls in turn; nothing is said where those vary."""
        sequential = standings[0].marks
        self._varies = sequential != self._marks[: len(sequential)]
        for one in standings[1:]:
            other = sum(a != b for a, b in zip(one.marks, self._marks, strict=False))
            if one.runs and other and not self._varies:
                one.status = "wrong"
                one.reason = f"{other} of {len(one.marks)} results are not those of calls in turn"

    def _survivors(self, sequential: Standing, standings: list[Standing]) -> list[Standing]:
        """Sequential, and the faster half of the others that were in the last round."""
        last = max(one.rounds for one in standings)
        others = sorted(
            (one for one in standings[1:] if one.runs and one.rounds == last), key=lambda one: one.total
        )
        keep = max(2, -(-len(others) // 2))
        kept = others[:keep]
        # a way that cannot be told from the best is not given up for its place alone
        kept += [one for one in others[keep:] if kept and one.total < 1.05 * kept[0].total]
        return [sequential, *kept]

    def _is_clear(self, running: list[Standing]) -> bool:
        """Whether more passes would hardly change the answer."""
        if len(running) == 1:
            return len(running[0].totals) >= FEWEST_PASSES
        if any(len(one.totals) < ENOUGH for one in running):
            return False
        if all(len(one.totals) >= MOST_PASSES for one in running):
            return True
        described = sorted((describe(one.totals) for one in running), key=lambda d: d.median or 0.0)
        best, second = described[0], described[1]
        return best.high is not None and second.low is not None and best.high < second.low

    def _tell(self, doing: str, number: int = 0) -> None:
        if self._report is not None:
            left = max(0.0, self._end - time.monotonic())
            self._report(
                Progress(
                    doing=doing, round=number, done=self._samples, to_come=self._to_come,
                    used_s=self._budget - left, left_s=left,
                )
            )  # fmt: skip

    # after measuring

    def _candidate(self, one: Standing, sequential: Standing, foreign: float, work: Work) -> Candidate:
        plain = Candidate(
            kind=one.way.kind, workers=one.way.workers, interpreter=one.interpreter, status=one.status,
            reason=one.reason,
        )  # fmt: skip
        if not one.totals:
            return plain
        described = describe(one.totals, one.foreign)
        ratio = ends(
            resampled_medians(positive(sequential.totals)) / resampled_medians(positive(one.totals), 1)
        )
        alone = one is sequential
        return Candidate(
            kind=one.way.kind,
            workers=one.way.workers,
            interpreter=one.interpreter,
            status=one.status,
            reason=one.reason,
            total_s=described.median,
            total_low_s=described.low,
            total_high_s=described.high,
            speedup=1.0 if alone else sequential.total / one.total,
            low=1.0 if alone else ratio[0],
            high=1.0 if alone else ratio[1],
            start_s=median(one.starts),
            call_s=median(one.per_call),
            passes=len(one.totals),
            calls=one.calls,
            cpu=median(one.cpu),
            memory_kib=median(one.memory) if one.memory else None,
            switches=median(one.switches),
            cpu_call_s=median(one.cpu_call),
            foreign=median(one.foreign) if one.foreign else None,
            alone_s=self._alone(one, work, foreign) if foreign > quiet.NOISY else None,
            verdict=described.verdict,
            advice=described.advice,
        )

    def _alone(self, one: Standing, work: Work, foreign: float) -> float:
        """The time of all the calls on a machine left alone. A start computes, and had what others left."""
        return median(one.starts) * (1 - foreign) + self._alone_call(one, work) * self._requests

    def _alone_call(self, one: Standing, work: Work) -> float:
        """The time between the ends of two calls on a machine left alone.

        Processor time hardly depends on who else runs. A call cannot take less than that time on one of
        the cores that its workers have, nor less than one worker needs for it and its waiting; and threads
        of one interpreter not less than it holds the GIL.
        """
        computing = median(one.cpu_call)
        waiting = work.waiting * work.call_s
        per_call = max(computing / min(one.way.workers, self._cores), (computing + waiting) / one.way.workers)
        if one.way.kind in ("threads", "async") and work.gil_from != "none":
            per_call = max(per_call, work.gil * work.call_s)
        return per_call

    def _points(self, standings: Sequence[Standing], kind: Kind, work: Work) -> dict[int, float]:
        """Calls a second by workers, worked out if others were busy; calls in turn are one worker."""
        if kind in ("sequential", "free-threaded"):
            return {}

        def rate(one: Standing) -> float:
            return 1 / (self._alone_call(one, work) if self._busy else median(one.per_call))

        points = {
            one.way.workers: rate(one)
            for one in standings
            if one.way.kind == kind and one.per_call and one.runs
        }
        return {1: rate(standings[0])} | points if points else {}


def _work(look: dict[str, Any], *, varies: bool) -> Work:
    times = look["times"]
    return Work(
        looked_at=len(times),
        call_s=fmean(times),
        shortest_s=min(times),
        longest_s=max(times),
        gil=look["gil"],
        free=look["free"],
        waiting=look["waiting"],
        gil_from=look["gil_from"],
        coroutines=look["coroutines"],
        cannot_be_sent=look["cannot_be_sent"],
        argument_bytes=look["argument_bytes"],
        result_bytes=look["result_bytes"],
        cannot_load=look["cannot_load"],
        accumulates=tuple(look["accumulates"]),
        caches=tuple(look["caches"]),
        guarded=look["guarded"],
        changes_items=look["changes_items"],
        varies=varies,
    )


def _refused(kind: Kind, why: str, look: dict[str, Any]) -> Candidate:
    return Candidate(kind=kind, workers=0, interpreter=look["interpreter"], status="refused", reason=why)


def _name(way: Way, answer: dict[str, Any]) -> str:
    if way.interpreter is None:
        name: str = answer["interpreter"]
        return name
    return f"{way.interpreter.implementation} {way.interpreter.version} free-threaded"


def _count(workers: int) -> str:
    return "1 worker" if workers == 1 else f"{workers} workers"
