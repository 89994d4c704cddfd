"""Refusing sizes that no sample of which fits the budget, before one is begun.

The first sample of a series has nothing to be predicted from. Where the user names sizes, the smallest one
can be thousands of times the experiment's own. So pilots are measured first, from the experiment's smallest
size upwards, until either the named size would fit even if all of the time grew in step with n, or the time
has grown enough for its slope to tell what the named size takes.
"""

from __future__ import annotations

from dataclasses import replace

from fairlead.errors import UsageError
from fairlead.lab.catalogue import registry
from fairlead.lab.catalogue.interpreters import Interpreter
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run.measure import LOOK
from fairlead.lab.run.plan import Plan, PlannedSeries
from fairlead.lab.run.runner import Sampler
from fairlead.lab.run.sampling import PlannedCell
from fairlead.record.sample import Sample

_FAR = 4
"""Up to so many times an experiment's own smallest size there is nothing to fear."""
_STEP = 8
"""From one pilot's size to the next."""
_GROWN = 2
"""Times as long as the first pilot, the slope counts: what a start or other programs take is less."""


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
        self._stop.check("stopped before the first sample; nothing was measured")
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
