"""What is measured before the first sample of a run: how large tasks have to be here, whether sizes fit, what
a yield is.

**Tasks.** An experiment whose claims hold for tasks of some length only declares that its work is calibrated
(``registry.Calibration``). The first interpreter of the run that can measures it at a few small values; the
value is the same for all interpreters.

**Sizes.** The first sample of a series has nothing to be predicted from. Where the user names sizes, the
smallest one can be thousands of times the experiment's own. So pilots are measured first, from the
experiment's smallest size upwards, until either the named size would fit even if all of the time grew in step
with n, or the time has grown enough for its slope to tell what the named size takes.

**Yields.** ``time.sleep(0)`` is a real sleep of some 70 microseconds on CPython from 3.11 on, a bare system
call before, and no switch at all under SCHED_RR, where the thread then spins for its whole slice. What work
"sleep0" means in a sample can only be read together with that.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fairlead.errors import UsageError
from fairlead.lab.catalogue import registry
from fairlead.lab.catalogue.identify import how_it_ended
from fairlead.lab.catalogue.interpreters import Interpreter
from fairlead.lab.catalogue.registry import Calibration
from fairlead.lab.isolation import subprocess_runner
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run.environment import environment
from fairlead.lab.run.measure import LOOK, measure
from fairlead.lab.run.plan import Plan, PlannedSeries, RunOptions, make_plan
from fairlead.lab.run.runner import Sampler
from fairlead.lab.run.sampling import PlannedCell
from fairlead.record.sample import Sample, parse

_STOPPED = "stopped before the first sample; nothing was measured"

_TELLING = 0.1
"""So much of a calibrated sample's seconds tells what the whole takes: what it costs to begin is in both of
two samples, and falls out."""
_AGAIN = 3
"""The quickest of so many samples counts: what disturbs one makes it longer."""

_FAR = 4
"""Up to so many times an experiment's own smallest size there is nothing to fear."""
_STEP = 8
"""From one pilot's size to the next."""
_GROWN = 2
"""Times as long as the first pilot, the slope counts: what a start or other programs take is less."""
_PROGRAM = registry.DIRECTORY / "probe_yield.py"
_TIMEOUT_S = 15.0


def prepared(options: RunOptions, interpreters: Sequence[Interpreter], stop: Stop) -> Plan:
    """The plan of a run here and now.

    Raises:
        UsageError: an unknown experiment, parameter or core, or sizes that do not fit the budget.
        RunInterruptedError: ``stop`` was set meanwhile.
    """
    plan = make_plan(options, interpreters, environment(), subprocess_runner.real_time_refused())
    plan = calibrated(plan, measure, stop, {name for name, _ in options.parameters})
    if options.sizes is not None:
        check_sizes(plan, measure, stop)
    return with_yield_probes(plan, stop)


# ---- how large tasks have to be


def calibrated(plan: Plan, measure: Sampler, stop: Stop, given: set[str]) -> Plan:
    """The plan with the value of each calibrated parameter that fits this machine.

    Parameters that were ``given`` by the user stay as they are, and so does one whose pilots fail.

    Raises:
        RunInterruptedError: ``stop`` was set meanwhile.
    """
    found: dict[tuple[str, str], Any] = {}
    series = []
    for one in plan.series:
        how = registry.catalogue()[one.experiment].calibrated
        if how is not None and not one.skipped and how.parameter not in given:
            key = str(how.of.get("experiment", one.experiment)), how.parameter
            if key not in found:
                found[key] = _fitting(plan, key[0], how, measure, stop)
            if found[key] is not None:
                one = replace(one, params=one.params | {how.parameter: found[key]})
        series.append(one)
    return replace(plan, series=tuple(series))


def _fitting(plan: Plan, name: str, how: Calibration, measure: Sampler, stop: Stop) -> Any:
    """The least choice with which a sample takes as long as it should; None if it cannot be known."""
    experiment = registry.catalogue()[name]
    able = [one for one in plan.interpreters if experiment.runs_on(one) is None]
    if not able:
        return None
    first, *others = experiment.parameters[how.parameter].choices
    params = {key: parameter.value("quick") for key, parameter in experiment.parameters.items()}
    params |= {key: value for key, value in how.of.items() if key != "experiment"}
    n = experiment.sizes_for("quick", able[0])[0]

    def took(value: Any, times: int = 1) -> float | None:
        series = PlannedSeries(
            experiment=name,
            params=params | {how.parameter: value, "policy": "other", "cores": "all"},
            interpreter=able[0].name,
            sizes=(n,),
            cpus=tuple(plan.environment["affinity"]),
            timeout_s=experiment.timeout_s,
        )
        pilot = _Pilot(plan, series, able[0], measure, stop)
        samples = [pilot(n) for _ in range(times)]
        used = [one.user_s + one.sys_s for one in samples if one.user_s is not None and one.sys_s is not None]
        return min(used, default=None)

    least_s = took(first, _AGAIN)
    value, more_s = first, least_s
    for value in others[::2]:
        more_s = took(value)
        if more_s is None or more_s >= _TELLING * how.seconds:
            break
    more_s = took(value, _AGAIN)
    if least_s is None or more_s is None or more_s <= least_s:
        return None
    each_s = (more_s - least_s) / (value - first)
    enough = [one for one in (first, *others) if least_s + each_s * (one - first) >= how.seconds]
    return enough[0] if enough else others[-1]


# ---- whether sizes fit


def check_sizes(plan: Plan, measure: Sampler, stop: Stop) -> None:
    """Measure pilots of what was given sizes far beyond the experiment's own, and estimate.

    Raises:
        UsageError: one sample of the smallest size takes longer than the whole budget, or cannot be taken.
        RunInterruptedError: ``stop`` was set meanwhile.
    """
    interpreters = {interpreter.name: interpreter for interpreter in plan.interpreters}
    seen: set[tuple[str, str]] = set()
    for series in plan.series:
        interpreter = interpreters[series.interpreter]
        own = registry.catalogue()[series.experiment].sizes_for("quick", interpreter)[0]
        key = (series.experiment, series.interpreter)
        if series.skipped or key in seen or series.sizes[0] <= _FAR * own:
            continue
        seen.add(key)
        _check(series, own, _Pilot(plan, series, interpreter, measure, stop))


class _Pilot:
    """Measures one series once at a size, for no longer than a sample of it may take."""

    def __init__(
        self, plan: Plan, series: PlannedSeries, interpreter: Interpreter, measure: Sampler, stop: Stop
    ) -> None:
        self.budget_s = plan.budget_s
        self.limit_s = min(series.timeout_s, plan.budget_s)
        self._plan = plan
        self._series = series
        self._interpreter = interpreter
        self._measure = measure
        self._stop = stop

    def __call__(self, size: int) -> Sample:
        series = replace(self._series, sizes=(size,), timeout_s=self.limit_s)
        sample = self._measure(
            PlannedCell(series, size),
            self._interpreter,
            self._plan.environment,
            f"{self._plan.run}.pilot{size}",
            self._stop,
        )
        self._stop.check(_STOPPED)
        assert sample is not None, "only a stop ends a pilot without a sample"
        return sample


def _check(series: PlannedSeries, own: int, pilot: _Pilot) -> None:
    """Refuse the smallest size of a series if it does not fit."""
    named = series.sizes[0]
    before, before_s, first_s = 0, 0.0, 0.0
    size = own
    while size < named:
        sample = pilot(size)
        took_s = sample.elapsed_s or 0.0
        too_long = sample.status == "timeout"
        if too_long and size == own:
            raise UsageError(
                f"{series.experiment} is not done within {pilot.limit_s:g} s with n={own} either: "
                "give a larger --budget"
            )
        if not too_long and sample.status != "ok":
            if size == own:
                return  # not for its size; the run says what for
            reason = (sample.reason or sample.status).partition(LOOK)[0]
            raise UsageError(
                f"{series.experiment} cannot be measured with n={named}, nor with n={size} ({reason}): "
                "give smaller --sizes"
            )
        if not too_long and took_s * named / size <= pilot.limit_s:
            return
        first_s = first_s or took_s
        if too_long or took_s >= _GROWN * first_s:
            needed_s = took_s + (took_s - before_s) / (size - before) * (named - size)
            if too_long or needed_s > pilot.limit_s:
                raise UsageError(_refusal(series, needed_s, (size, took_s), pilot.budget_s))
            return
        before, before_s = size, took_s
        size *= _STEP


def _refusal(series: PlannedSeries, needed_s: float, seen: tuple[int, float], budget_s: float) -> str:
    size, took_s = seen
    estimate = (
        f"one sample of {series.experiment} with n={series.sizes[0]} takes {needed_s:.0f} s or more "
        f"(n={size} took {took_s:.2g} s)"
    )
    if needed_s > series.timeout_s:
        return f"{estimate}, and is ended after {series.timeout_s:g} s: give smaller --sizes"
    return (
        f"{estimate}, and the budget is {budget_s:g} s: "
        f"give smaller --sizes, or --budget {2 * needed_s:.0f}s or more"
    )


# ---- what a yield is


def yield_probe(interpreter: Interpreter, policy: str, stop: Stop) -> dict[str, Any]:
    """What the probe prints on an interpreter under a scheduling policy.

    For "sleep0" and "yield" each, the microseconds of a call alone and beside a rival, and whether it
    ``yields`` (None where that cannot be told). A probe that fails gives ``{"failed": reason}``.

    Raises:
        RunInterruptedError: ``stop`` was set meanwhile.
    """
    try:
        outcome = subprocess_runner.run(
            [interpreter.path, str(_PROGRAM), "{}"],
            env=subprocess_runner.clean_environment(free_threaded=interpreter.free_threaded),
            timeout_s=_TIMEOUT_S,
            mark=uuid.uuid4().hex,
            stop=stop,
            policy=policy,
        )
    except OSError as error:
        return {"failed": str(error.strerror)}
    stop.check(_STOPPED)
    if outcome.ended == "timeout" or outcome.returncode != 0:
        return {"failed": how_it_ended(outcome)}
    try:
        answer = parse(outcome.stdout)
    except ValueError:
        answer = None
    return answer if isinstance(answer, dict) else {"failed": "printed no result"}


def with_yield_probes(plan: Plan, stop: Stop) -> Plan:
    """The plan with the yield probe of every interpreter and policy in it, in its environment.

    Raises:
        RunInterruptedError: ``stop`` was set meanwhile.
    """
    found: dict[str, dict[str, Any]] = {}
    interpreters = {interpreter.name: interpreter for interpreter in plan.interpreters}
    for name, policy in dict.fromkeys((s.interpreter, s.policy) for s in plan.series if not s.skipped):
        found.setdefault(name, {})[policy] = yield_probe(interpreters[name], policy, stop)
    return replace(plan, environment={**plan.environment, "yield_probe": found})
