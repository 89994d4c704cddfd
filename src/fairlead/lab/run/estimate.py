"""Refusing sizes that no sample of which fits the budget, before one is begun.

The first sample of a series has nothing to be predicted from. Where the user names sizes, the smallest one
can be thousands of times the experiment's own; so that one is measured first, at its smallest size, and what
the named one takes is worked out as if the time grew in step with n, which is the least that it does.
"""

from __future__ import annotations

from dataclasses import replace

from fairlead.errors import UsageError
from fairlead.lab.catalogue import registry
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run.plan import Plan, PlannedSeries
from fairlead.lab.run.runner import Sampler
from fairlead.lab.run.sampling import PlannedCell

_FAR = 4
"""Up to so many times an experiment's own smallest size there is nothing to fear."""


def check_sizes(plan: Plan, measure: Sampler, stop: Stop) -> None:
    """Measure once what was given sizes far beyond the experiment's own, and estimate.

    Raises:
        UsageError: one sample of the smallest size takes longer than the whole budget.
        RunInterruptedError: ``stop`` was set meanwhile.
    """
    interpreters = {interpreter.name: interpreter for interpreter in plan.interpreters}
    seen: set[tuple[str, str]] = set()
    for series in plan.series:
        experiment = registry.catalogue()[series.experiment]
        own = experiment.sizes_for("quick", interpreters[series.interpreter])[0]
        key = (series.experiment, series.interpreter)
        if series.skipped or key in seen or series.sizes[0] <= _FAR * own or not experiment.subject.growth:
            continue
        seen.add(key)
        pilot = replace(series, sizes=(own,))
        sample = measure(
            PlannedCell(pilot, own),
            interpreters[series.interpreter],
            plan.environment,
            f"{plan.run}.pilot",
            stop,
        )
        stop.check("stopped before the first sample; nothing was measured")
        if sample is None or sample.status != "ok" or sample.wall_s is None:
            continue
        _refuse(series, own, sample.wall_s, plan.budget_s)


def _refuse(series: PlannedSeries, own: int, took_s: float, budget_s: float) -> None:
    size = series.sizes[0]
    needed_s = took_s * size / own
    if needed_s > budget_s:
        raise UsageError(
            f"one sample of {series.experiment} with n={size} takes {needed_s:.0f} s at least "
            f"(n={own} took {took_s:.2g} s), and the budget is {budget_s:g} s: "
            f"give smaller --sizes, or --budget {2 * needed_s:.0f}s or more"
        )
