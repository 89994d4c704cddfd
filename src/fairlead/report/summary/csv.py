"""The summary as CSV (RFC 4180), a row for each size of each series, for spreadsheets and data frames.

The column ``kind`` says what a row is: "measured", or one that has its words in ``text``: "skipped" (of a
series
of which nothing was run), "missing" (what went wrong with some of its samples), and "claim" (what the run
settles: ``variant`` has the topic, ``value`` the ratio or exponent with its interval, ``verdict`` whether
it is
settled). Times are seconds, memory is KiB, an empty field means
"not measured". The fit of a series stands in each of its rows. Text that a spreadsheet would take for a
formula is preceded by an apostrophe (see OWASP, "CSV injection"); numbers are left as they are.
"""

from __future__ import annotations

from typing import Any

from fairlead.record.summary import Cell, Place, Series, Summary
from fairlead.report.common import names, plain
from fairlead.report.summary import claims


def render(summary: Summary) -> str:
    """The table with a head, lines ended by CR LF."""
    roster = names.Roster(summary.series)
    standings = {
        (id(place.series), ranking.n): place for ranking in summary.rankings for place in ranking.places
    }
    labels = {names.clean(named.label): named for named in roster}
    rows: list[tuple[Any, ...]] = []
    for claim in claims.ordered(summary):
        named = next(one for one in labels.values() if one.record == claim.interpreter)
        rest = _rest(
            variant=claim.topic,
            value=claim.value,
            value_low=claim.low,
            value_high=claim.high,
            threshold=claim.threshold,
            verdict=claim.verdict,
            text=claims.sentence(claim),
        )
        rows.append(("claim", claim.experiment, named.label, named.record.get("name"), *rest))
    for s in summary.series:
        named = roster.of(s)
        rows += [_row(s, c, named, standings.get((id(s), c.n))) for c in s.cells]
        told = [("skipped", s.skipped)] if s.skipped else []
        told += [("missing", failure) for failure in s.failures]
        rows += [
            (
                kind,
                s.experiment,
                named.label,
                named.record.get("name"),
                s.label,
                s.variant,
                *_rest(text=text)[2:],
            )
            for kind, text in told
        ]
    return plain.table(_COLUMNS, rows)


def _rest(**given: Any) -> list[Any]:
    """A row from ``variant`` on, empty but for what is given."""
    return [given.get(name, "") for name in _COLUMNS[_COLUMNS.index("variant") :]]


_COLUMNS = (
    "kind", "experiment", "interpreter", "name", "variant", "params", "n", "samples", "median_s", "low_s",
    "high_s",
    "iqr_s", "outliers", "modes_s", "factor", "cpu_s", "cpu_percent", "max_rss_kb", "sum_rss_kb",
    "ctx_voluntary", "ctx_involuntary", "foreign_share", "fit_exponent", "fit_low", "fit_high",
    "fit_model", "metrics", "standing", "times_fastest", "value", "value_low", "value_high", "threshold",
    "verdict", "text",
)  # fmt: skip


def _row(series: Series, cell: Cell, named: names.Named, place: Place | None) -> tuple[Any, ...]:
    fit = series.fit
    return (
        "measured", series.experiment, named.label, named.record.get("name"), series.label, cell.params,
        cell.n, len(cell.values), cell.median, cell.low, cell.high, cell.iqr, cell.outliers,
        " ".join(map(repr, cell.modes)), cell.factor, cell.cpu_s, cell.cpu_percent, cell.max_rss_kb,
        cell.sum_rss_kb, cell.ctx_voluntary, cell.ctx_involuntary, cell.foreign_share,
        fit.exponent, fit.low, fit.high, fit.model,
        cell.metrics, place.standing if place else None, place.times if place else None, *[""] * 6,
    )  # fmt: skip
