"""Runs side by side as CSV, a row for each cell that is held against that of another run.

Times are seconds; the rest is as in the CSV of a summary.
"""

from __future__ import annotations

from fairlead.record.comparison import Comparison
from fairlead.report.common import plain
from fairlead.report.comparison import sentences

_COLUMNS = (
    "experiment", "variant", "n", "base", "base_name", "base_on", "run", "run_name", "run_on",
    "median_base_s", "median_s", "samples_base", "samples", "runs_base", "runs", "ratio", "ratio_low",
    "ratio_high", "p", "change", "within", "advice",
)  # fmt: skip


def render(comparison: Comparison) -> str:
    """The table with a head, lines ended by CR LF."""
    named = {run.letter: run.name for run in comparison.runs}
    rows = []
    for series in comparison.series:
        on = {member.run: sentences.labelled(member.series) for member in series.members}
        rows += [
            (
                series.subject.id, series.variant, cell.n, cell.base, named[cell.base], on[cell.base],
                cell.run, named[cell.run], on[cell.run], cell.median_base, cell.median, cell.samples_base,
                cell.samples, cell.runs_base, cell.runs, cell.ratio, cell.low, cell.high, cell.p,
                cell.change, cell.within, cell.advice,
            )
            for cell in series.cells
        ]  # fmt: skip
    return plain.table(_COLUMNS, rows)
