"""Carrying out a plan: every sample in isolation, written down at once, in an order that noise cannot bend.

Three clocks run. The budget is what the user gave. What a continued run has used is the cost of the samples
that its file holds. And trying noisy samples again may take a fifth of the budget, no more: a machine that is
never quiet gives flagged samples, not an endless run.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from fairlead.errors import OutputError, UsageError
from fairlead.lab.catalogue import registry
from fairlead.lab.catalogue.identify import identify
from fairlead.lab.catalogue.interpreters import Interpreter
from fairlead.lab.isolation import subprocess_runner
from fairlead.lab.isolation.other_load import Meter
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run.measure import measure
from fairlead.lab.run.plan import FILE_NAME, REQUEST_NAME, Plan
from fairlead.lab.run.sampling import PlannedCell, PlannedSample, SampleOrder
from fairlead.record import results
from fairlead.record.sample import DISTURBED, Sample

ATTEMPTS = 3
"""How often one sample is tried at most when others disturb it."""

_RETRY_SHARE = 0.2
_PATIENCE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """Where a run stands."""

    doing: str
    """The cell that is being measured: experiment, size and interpreter."""
    round: int
    done: int
    """Samples taken, those of an earlier part of the run included."""
    to_come: int
    """Samples still to be taken, as far as it is known; 0 in the first round, which finds it out."""
    used_s: float
    """Seconds that the run has taken, those of an earlier part included."""
    left_s: float
    """Seconds that it will still take, as far as it is known."""
    said: str = ""
    """A line for the user, that does not pass with the step: what the budget leaves open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTotals:
    """What a run ended with."""

    directory: Path
    samples: int
    failures: tuple[Sample, ...]
    """The samples that are neither measured nor skipped."""


class Sampler(Protocol):
    """Takes one sample; ``measure.measure`` outside of tests."""

    def __call__(
        self, cell: PlannedCell, interpreter: Interpreter, environment: dict[str, Any], mark: str, stop: Stop
    ) -> Sample | None: ...


def begin(plan: Plan, directory: Path) -> None:
    """Make a directory for a new run and put its plan there.

    Raises:
        UsageError: the directory holds a run already.
        OutputError: it cannot be made or written to.
    """
    check_free(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{directory}: cannot be made ({error.strerror}); choose another --out") from error
    plan.save(directory)


def check_free(directory: Path) -> None:
    """Refuse a directory that holds a run, or one that is waiting for its plan.

    Raises:
        UsageError: it does.
    """
    if any((directory / name).exists() for name in (FILE_NAME, results.FILE_NAME, REQUEST_NAME)):
        raise UsageError(f"{directory} holds a run: continue it with --resume, or choose another --out")


def continued(
    directory: Path,
    environment: dict[str, Any],
    stop: Stop,
    identify: Callable[[str, Stop], dict[str, Any]] = identify,
) -> Plan:
    """The plan of a run that is to go on here and now.

    Raises:
        RecordError: there is none to continue, or it is damaged.
        UsageError: it was begun in a different environment (another machine, other cores or quota), or one
            of its interpreters or of the user's experiments is another one now; its samples could not be put
            beside those to come.
        InterpreterFailedError: one of its interpreters cannot be run any more.
        RunInterruptedError: ``stop`` was set meanwhile.
    """
    plan = Plan.load(directory)
    for file in map(Path, plan.files):
        if not file.exists() or file.read_bytes() != (directory / registry.KEPT / file.name).read_bytes():
            raise UsageError(f"{file} has changed since {directory} was begun, or is gone: begin a new run")
        registry.add(file)
    environment = {"beside": plan.environment.get("beside"), **environment}
    for name in results.FINGERPRINT:
        if plan.environment.get(name) != environment.get(name):
            before, now = plan.environment.get(name), environment.get(name)
            raise UsageError(f"{directory} was begun with {name} {before}, here it is {now}: begin a new run")
    for interpreter in plan.interpreters:
        known = interpreter.as_record()
        if any(known[name] != value for name, value in identify(interpreter.path, stop).items()):
            raise UsageError(f"{interpreter.path} has changed since {directory} was begun: begin a new run")
    return plan


def run(
    plan: Plan,
    directory: Path,
    *,
    stop: Stop,
    report: Callable[[RunProgress], None],
    measure: Sampler = measure,
    meter: Meter | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> RunTotals:
    """Carry out a plan, or what is left of it, in a directory made by ``begin``.

    Nothing that the results file holds is measured again. What an earlier part of the run left behind
    when it was killed is ended first.

    Raises:
        RunInterruptedError: ``stop`` was set; nothing that was started is alive, and every finished sample
            is kept.
        OutputError: the results cannot be written; the finished samples are kept.
        RecordError: the results so far cannot be read.
    """
    ended: list[_Run] = []
    with results.ResultsWriter(directory / results.FILE_NAME) as writer:
        for number, one in enumerate(runs := tuple(plan.runs()), 1):
            subprocess_runner.sweep(one.run)
            ended.append(_Run(one, directory, writer, stop, report, measure, meter or Meter(), clock))
            ended[-1].carry_out(f"run {number} of {len(runs)}" if len(runs) > 1 else "")
    return RunTotals(
        directory=directory,
        samples=sum(one.done for one in ended),
        failures=tuple(sample for one in ended for sample in one.failures),
    )


class _Run:
    def __init__(
        self,
        plan: Plan,
        directory: Path,
        writer: results.ResultsWriter,
        stop: Stop,
        report: Callable[[RunProgress], None],
        measure: Sampler,
        meter: Meter,
        clock: Callable[[], float],
    ) -> None:
        self._plan = plan
        self._directory = directory
        self._writer = writer
        self._stop = stop
        self._report = report
        self._measure = measure
        self._meter = meter
        self._clock = clock
        self._interpreters = {interpreter.name: interpreter for interpreter in plan.interpreters}
        self._used_before_s = 0.0
        self._began_s = clock()
        self._retries_left_s = _RETRY_SHARE * plan.budget_s
        self._order = SampleOrder(plan.series, plan.budget_s, self._used_s)
        self.done = 0
        self.failures: list[Sample] = []
        self._dropped: dict[PlannedCell, Sample] = {}

    def carry_out(self, which: str) -> None:
        self._say(which)
        self._take_over()
        if before := self.done:
            left_s = max(0.0, self._plan.budget_s - self._used_before_s)
            used = f"{self._used_before_s:.0f} s of the budget of {self._plan.budget_s:g} s were used"
            self._say(f"{used}, {left_s:.0f} s are left")
        told = False
        for planned in self._order.planned():
            if planned.round and not told:
                told = True
                self._say(self._order.shortfall())
            if planned.round in planned.cell.samples:
                continue
            self._stop.check(self._farewell())
            self._report_progress(planned)
            if planned.skip and (dropped := self._dropped.get(planned.cell)):
                self._count(planned.cell, dropped)
                continue
            sample = self._skipped(planned) if planned.skip else self._attempts(planned)
            self._writer.write(sample)
            self._count(planned.cell, sample)
        if not told:
            self._say(self._order.shortfall())
        if before and before == self.done:
            self._say(f"nothing was measured: {left_s:.0f} s do not suffice; give a larger --budget")

    def _take_over(self) -> None:
        """Put the samples of an earlier part of this run where they belong."""
        cells = {}
        for sizes in self._order.series:
            for cell in reversed(sizes):
                # a series that is skipped as a whole has one sample, without a size
                for params in (cell.series.params, {"n": cell.n, **cell.series.params}):
                    cells[self._key(cell, params)] = cell
        for sample in results.read_results(self._directory, empty_ok=True).samples:
            key = results.cell_key(sample.experiment, sample.params, sample.interpreter, sample.environment)
            if key not in cells or sample.run not in (None, self._plan.run):
                continue
            if sample.status == "skipped" and "n" in sample.params:
                # what did not fit may fit now: the budget can be a larger one
                self._dropped[cells[key]] = sample
            else:
                self._count(cells[key], sample)
                self._used_before_s += (sample.elapsed_s or 0.0) * (1 + sample.attempt)

    def _key(self, cell: PlannedCell, params: dict[str, Any]) -> str:
        record = self._interpreter(cell).as_record()
        return results.cell_key(cell.series.experiment, params, record, self._environment(cell))

    def _count(self, cell: PlannedCell, sample: Sample) -> None:
        cell.samples[sample.round] = sample
        self.done += sample.status != "skipped"
        if sample.status not in ("ok", "skipped"):
            self.failures.append(sample)

    def _skipped(self, planned: PlannedSample) -> Sample:
        series = planned.cell.series
        return Sample(
            experiment=series.experiment,
            params=series.params if series.skipped else {"n": planned.cell.n, **series.params},
            interpreter=self._interpreter(planned.cell).as_record(),
            environment=self._environment(planned.cell),
            status="skipped",
            reason=planned.skip,
            run=self._plan.run,
        )

    def _attempts(self, planned: PlannedSample) -> Sample:
        """Measure; if others disturbed it, again when it is quieter: a quiet sample takes its place.

        Where none is quiet the first counts, and not the least disturbed. In one of its two outcomes a probe
        may leave others less, so that this would choose between the two.
        """
        first = self._attempt(planned)
        self._stop.check(self._farewell())
        assert first is not None, "only a stop ends an attempt without a sample"
        best, thrown_back = first, 0
        began_s = self._clock()
        while thrown_back + 1 < ATTEMPTS and best.status == "ok" and (best.foreign_share or 0.0) > DISTURBED:
            spare_s = self._retries_left_s - (self._clock() - began_s) - (first.elapsed_s or 0.0)
            if spare_s <= 0:
                break
            self._meter.wait_for_quiet(min(_PATIENCE_S, spare_s), self._stop)
            again = self._attempt(planned)
            if again is None:
                break
            thrown_back += 1
            if again.status == "ok" and (again.foreign_share or 0.0) <= DISTURBED:
                best = again
        if thrown_back:
            self._retries_left_s -= self._clock() - began_s
        return replace(best, run=self._plan.run, round=planned.round, attempt=thrown_back)

    def _attempt(self, planned: PlannedSample) -> Sample | None:
        self._meter.begin()
        mark = f"{self._plan.run}.beside"  # which begins with that of no sample, whose end would be theirs
        with subprocess_runner.busy(
            self._plan.environment.get("beside", 0), planned.cell.series.cpus, mark=mark
        ):
            sample = self._measure(
                planned.cell,
                self._interpreter(planned.cell),
                self._environment(planned.cell),
                f"{self._plan.run}.{self.done}",
                self._stop,
            )
        if sample is None:
            return None
        foreign = self._meter.end()
        return replace(
            sample,
            foreign_share=foreign,
            stolen_share=self._meter.stolen_share,
            throttled_s=self._meter.throttled_s,
            spin_s=self._meter.spin_s,
        )

    def _interpreter(self, cell: PlannedCell) -> Interpreter:
        return self._interpreters[cell.series.interpreter]

    def _environment(self, cell: PlannedCell) -> dict[str, Any]:
        series = cell.series
        probes = self._plan.environment.get("yield_probe", {}).get(series.interpreter, {})
        own = {
            "policy": series.policy,
            "affinity": list(series.cpus),
            "yield_probe": probes.get(series.policy),
        }
        return {**self._plan.environment, **own}

    def _used_s(self) -> float:
        return self._used_before_s + self._clock() - self._began_s

    def _report_progress(self, planned: PlannedSample) -> None:
        series = planned.cell.series
        to_come, left_s = self._order.outlook()
        self._report(
            RunProgress(
                doing=f"{series.experiment} n={planned.cell.n} on {series.interpreter}",
                round=planned.round,
                done=self.done,
                to_come=to_come,
                used_s=self._used_s(),
                left_s=left_s,
            )
        )

    def _say(self, line: str | None) -> None:
        if line:
            used_s, left_s = self._used_s(), self._order.outlook()[1]
            self._report(
                RunProgress(
                    doing="", round=0, done=self.done, to_come=0, used_s=used_s, left_s=left_s, said=line
                )
            )

    def _farewell(self) -> str:
        count = self._writer.count
        kept = f"{count} sample{'s' * (count != 1)} kept in {self._directory}"
        command = shlex.join(["fairlead", "lab", "run", "--resume", "--out", str(self._directory)])
        return f"stopped: {kept}; continue with: {command}"
