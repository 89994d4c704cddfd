"""Runs side by side as JSON for other programs: a stable format.

``version``
    4. It grows when a field changes its meaning or goes; a new field alone does not change it.
``runs``
    Each with its ``letter`` ("a", "b" ...), ``name``, ``environment``, ``samples``, ``runs`` (repetitions)
    and ``started``.
``series``
    One object for each series that two runs or more have: ``experiment``, ``title``, ``variant`` (its
    parameters), ``members`` (for each run that has it ``run``, ``label``, ``interpreter`` and ``fit``, as in
    a summary), and ``cells``: ``n``, ``base`` (the first run that has it), ``run``, ``median_base`` and
    ``median`` (seconds), ``samples_base``, ``samples``, ``runs_base``, ``runs`` (repetitions), ``ratio`` (of
    geometric means, run / base) with ``low`` and ``high`` (95 %: over repetitions from three a side on, else
    of just these samples), ``p`` (corrected, with what repetitions differ by), ``change`` ("faster",
    "slower", "within" or "undecided"), ``within`` (1.1, 1.25 or 1.5: the interval lies between 1 over it and
    it) and ``advice``.
``wholes``
    For each two runs with three series or more in common: ``base``, ``run``, ``series`` (how many),
    ``ratio`` with ``low`` and ``high`` (95 %), and ``speed`` (how many times as long the fixed loop took;
    null for two machines).
``unmatched``
    What one run alone has: ``run``, ``experiment``, ``variant``, ``label``, ``interpreter``, ``sizes``.
``differing``
    The names of what differs between the machines.
``problems``
    What was left out of the runs.

Numbers and text are as in a summary.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fairlead.record.comparison import Comparison, SeriesChange
from fairlead.report.common.plain import finite_json

VERSION = 4


def render(comparison: Comparison) -> str:
    """The comparison in the format above, indented, with a line end at the end."""
    return finite_json(
        {
            "version": VERSION,
            "runs": [asdict(run) for run in comparison.runs],
            "series": [_series(series) for series in comparison.series],
            "wholes": [asdict(one) for one in comparison.wholes],
            "unmatched": [asdict(one) for one in comparison.unmatched],
            "differing": comparison.differing,
            "problems": comparison.problems,
        }
    )


def _series(series: SeriesChange) -> dict[str, Any]:
    return {
        "experiment": series.subject.id,
        "title": series.subject.title,
        "variant": series.variant,
        "members": [
            {
                "run": member.run,
                "label": member.series.label,
                "interpreter": member.series.interpreter,
                "fit": asdict(member.series.fit),
            }
            for member in series.members
        ],
        "cells": [asdict(cell) for cell in series.cells],
    }
