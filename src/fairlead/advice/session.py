"""From a function to advice: look, choose what to measure, measure by successive halving, choose.

Every job is a process session of its own: whatever the function does there, this process goes on, and nothing
that one of them fills, opens or breaks is there for the next.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from fairlead import machine
from fairlead.advice import choosing, codegen
from fairlead.advice.candidates import KINDS, Facts, Way, ways
from fairlead.advice.figures import Figures
from fairlead.advice.jobs import Bench, Died, Report
from fairlead.advice.successive_halving import PATIENCE_S, UNBOUNDED, CandidateState, Halving, Limits
from fairlead.advice.target import Target
from fairlead.errors import AdviceError, UsageError
from fairlead.lab.catalogue.interpreters import Interpreter, free_threaded
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run.environment import environment
from fairlead.lab.run.runner import RunProgress
from fairlead.pools.choose import rules
from fairlead.record.advice import NAMES, Advice, AdvicePlan, Candidate, Kind, Work, in_workers

LOOK_SHARE = 0.05
"""Of the budget, for a round of first calls; there are two."""
FIRST_CALL_SHARE = 0.5
"""Of the budget: what does not return within that is taken never to return."""
FEWEST = 1.0
"""Seconds: a budget below this is none."""


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
        memory_mib: int | None = None,
        report: Report | None = None,
    ) -> None:
        if not FEWEST <= budget < float("inf"):
            raise UsageError(f"the budget must be at least {FEWEST:g} s, not {budget:g}")
        if max_calls is not None and max_calls < 4:
            raise UsageError(f"max_calls must be at least 4, not {max_calls}: two to look, two to compare")
        for kind in kinds or ():
            if kind not in KINDS:
                raise UsageError(f"there is no kind {kind!r}; there are {', '.join(KINDS)}")
        if memory_mib is not None and memory_mib < 1:
            raise UsageError(f"memory_mib must be at least 1, not {memory_mib}")
        self._target = target
        self._budget = budget
        self._max_calls = max_calls
        self._most = max_calls or UNBOUNDED
        self._kinds = kinds
        self._memory_mib = memory_mib
        self._report = report
        self._cores = machine.cores().usable
        self._told = 0

    def plan(self) -> AdvicePlan:
        """What ``run`` would do. The function is imported, and not called."""
        with Stop() as stop:
            bench = Bench(self._target, stop)
            answer = bench.run("plan", self._budget + PATIENCE_S)
            if isinstance(answer, Died):
                raise AdviceError(f"{self._target.label} cannot be imported: its process {answer.how}")
            requests = self._target.requests or answer["items"]
            facts = self._facts(answer, requests, None, self._free_threaded(stop, None))
        found, refused = ways(facts)
        return AdvicePlan(
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
            bench = Bench(self._target, stop)
            self._tell("looking at the first calls", 0, 0)
            look = self._look(bench)
            requests = self._target.requests or look["items"]
            work = _work(look)
            facts = self._facts(look, requests, work, self._free_threaded(stop, work))
            found, refused = ways(facts)
            states = [CandidateState(way, _name(way, look)) for way in found]
            halving = Halving(bench, stop, self._limits(look, requests, work), self._tell)
            halving.calls = look["calls"]
            halving.raised = dict(look["raised"])
            halving.process_s = max(halving.process_s, 2 * look["startup_s"])
            halving.run(states)
        work = replace(work, varies=halving.varies)
        figures = Figures(
            [one for one in states if one.way not in halving.left_out], work, requests, self._cores
        )
        candidates = figures.candidates()
        candidates += [_refused(kind, why, look) for kind, why in refused.items()]
        choice = choosing.choose(candidates, work, requests, self._cores, self._memory_mib)
        return Advice(
            target=self._target.label,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            python=look["interpreter"],
            cores=self._cores,
            gil=look["gil_here"],
            environment=environment(),
            requests=requests,
            items=look["items"],
            memory_mib=self._memory_mib,
            budget_s=self._budget,
            used_s=time.monotonic() - begin,
            calls=halving.calls,
            work=work,
            choice=choice,
            candidates=tuple(candidates),
            curves=figures.curves(),
            code=codegen.code(
                self._target, choice.kind, choice.workers,
                coroutines=facts.coroutines, requests=requests, items=look["items"],
            ),
            again=choosing.again(choice, work, self._cores),
            notes=(
                *choosing.notes(choice, work, candidates, halving.calls),
                *_left_out(halving.left_out),
                *_raised(halving.raised),
            ),
        )  # fmt: skip

    # before measuring

    def _facts(
        self, answer: dict[str, Any], requests: int, work: Work | None, free: Interpreter | None
    ) -> Facts:
        return Facts(
            cores=self._cores,
            gil=rules.has_gil(),
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
        if not rules.has_gil() or (self._kinds is not None and "free-threaded" not in self._kinds):
            return None
        if work is not None and (work.coroutines or not rules.gains_by_cores(work.gil)):
            return None
        return free_threaded(stop)

    def _look(self, bench: Bench) -> dict[str, Any]:
        limit = max(self._budget * FIRST_CALL_SHARE, FEWEST)
        answer = bench.run(
            "look",
            self._budget + limit + PATIENCE_S,
            call_limit_s=limit,
            look_s=self._budget * LOOK_SHARE,
            requests=self._target.requests,
            most_calls=self._most,
        )
        label = self._target.label
        if not isinstance(answer, Died):
            return answer
        how = "it took too long" if answer.late else f"its process {answer.how}"
        match answer.doing:
            case "call":
                where = f"when it was called with item {answer.item}"
                if answer.late:
                    raise AdviceError(
                        f"{label} did not return within {limit:.0f} s {where}: give items that take less "
                        "time, or a larger budget"
                    )
                raise AdviceError(
                    f"{label} ended its process {where} (it {answer.how}): give items for which it returns"
                )
            case "items":
                raise AdviceError(f"the items of {label} cannot be loaded: {how}")
            case "import":
                raise AdviceError(f"{label} cannot be imported: {how}")
        raise AdviceError(f"{label} could not be called: {how}")

    def _limits(self, look: dict[str, Any], requests: int, work: Work) -> Limits:
        return Limits(
            label=self._target.label,
            requests=requests,
            cores=self._cores,
            work=work,
            marks=look["fingerprints"],
            raises=bool(look["raised"]),
            budget_s=self._budget,
            end=self._end,
            most_calls=self._most,
        )

    def _tell(self, doing: str, number: int, to_come: int) -> None:
        if self._report is not None:
            left = max(0.0, self._end - time.monotonic())
            self._report(
                RunProgress(
                    doing=doing, round=number, done=self._told, to_come=to_come,
                    used_s=self._budget - left, left_s=left,
                )
            )  # fmt: skip
        self._told += 1


def _work(look: dict[str, Any]) -> Work:
    times = look["times"]
    return Work(
        looked_at=len(times),
        call_s=look["call_s"],
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
        varies=False,
    )


def _refused(kind: Kind, why: str, look: dict[str, Any]) -> Candidate:
    return Candidate(kind=kind, workers=0, interpreter=look["interpreter"], status="refused", reason=why)


def _left_out(ways: Sequence[Way]) -> list[str]:
    if not ways:
        return []
    said = ", ".join(f"{NAMES[way.kind]} with {in_workers(way.workers)}" for way in ways)
    return [f"Not measured, for the budget has no time for them: {said}."]


def _raised(raised: dict[int, str]) -> list[str]:
    if not raised:
        return []
    place = min(raised)
    others = len(raised) - 1
    more = f", and {others} other {'item' if others == 1 else 'items'} raised as well" if others else ""
    return [
        f"Item {place} raised {raised[place]}{more}: these calls count as they are. In the code below the "
        "first of them ends the rest, unless the function catches it."
    ]


def _name(way: Way, answer: dict[str, Any]) -> str:
    if way.interpreter is None:
        name: str = answer["interpreter"]
        return name
    return f"{way.interpreter.implementation} {way.interpreter.version} free-threaded"
