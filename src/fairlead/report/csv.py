"""The summary as CSV (RFC 4180), a row for each size of each series, for spreadsheets and data frames.

Times are seconds, memory is KiB, an empty field means "not measured". The fit of a series stands in each of
its rows. Series of which nothing was run have no row. Text that a spreadsheet would take for a formula is
preceded by an apostrophe (see OWASP, "CSV injection"); numbers are left as they are.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any

from fairlead.record.summary import Cell, Series, Summary
from fairlead.report import names

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def render(summary: Summary) -> str:
    """The table with a head, lines ended by CR LF."""
    roster = names.Roster(summary.series)
    return table(_COLUMNS, [_row(s, c, roster.of(s)) for s in summary.series for c in s.cells])


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows of plain things below a head, each field made safe for spreadsheets; lines ended by CR LF."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([[_field(thing) for thing in row] for row in rows])
    return out.getvalue()


_COLUMNS = (
    "experiment", "interpreter", "name", "variant", "params", "n", "samples", "median_s", "low_s", "high_s",
    "iqr_s", "outliers", "modes_s", "factor", "cpu_s", "cpu_percent", "max_rss_kb", "sum_rss_kb",
    "ctx_voluntary", "ctx_involuntary", "foreign_share", "verdict", "advice", "fit_exponent", "fit_low",
    "fit_high", "fit_model", "fit_verdict", "metrics",
)  # fmt: skip


def _row(series: Series, cell: Cell, who: names.Named) -> tuple[Any, ...]:
    fit = series.fit
    return (
        series.experiment, who.label, who.record.get("name"), series.label, cell.params, cell.n,
        len(cell.values), cell.median, cell.low, cell.high, cell.iqr, cell.outliers,
        " ".join(map(repr, cell.modes)), cell.factor, cell.cpu_s, cell.cpu_percent, cell.max_rss_kb,
        cell.sum_rss_kb, cell.ctx_voluntary, cell.ctx_involuntary, cell.foreign_share,
        cell.verdict, cell.advice, fit.exponent, fit.low, fit.high, fit.model, fit.verdict,
        cell.metrics,
    )  # fmt: skip


def _field(thing: Any) -> str | float | int:
    match thing:
        case None:
            return ""
        case float():
            return thing if math.isfinite(thing) else ""
        case int():
            return thing
        case dict():
            return _safe(json.dumps(thing, sort_keys=True, default=str))
        case _:
            return _safe(str(thing))


def _safe(text: str) -> str:
    line = names.clean(text)
    return f"'{line}" if line.startswith(_FORMULA_STARTS) else line
