"""Reports for the terminal: plain characters, 80 columns, and the answer at the end, where the eye is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.record.gil_trace import GilTrace
from fairlead.record.summary import Cell, Metric, Ranking, Series, Subject, Summary
from fairlead.report import battle, console, names, units, words
from fairlead.report.headline import headline

if TYPE_CHECKING:
    from rich.table import Table


def render(summary: Summary, *, width: int = 80, colour: bool = False) -> str:
    """The summary as a table, a fit line and warnings for each series, then all fits, then the headline.

    Args:
        width: columns to fit into; below about 70 the tables fold their cells.
        colour: write the terminal's colour codes. Without them the result is plain text.

    Raises:
        MissingExtra: rich is not installed.
    """
    page = console.Page(width, colour)
    roster = names.Roster(summary.series)
    sections = words.subjects(summary)
    for subject, series in sections:
        page.line(f"{names.clean(subject.id)}  {names.clean(subject.title)}", style="bold")
        for s in series:
            _series(page, subject, s, roster)
    for ranking in summary.rankings:
        _ranking(page, ranking, roster)
    if summary.rankings:
        page.line(words.STANDINGS)
        page.gap()
    if summary.problems:
        page.line("Left out", style="bold")
        for problem in summary.problems:
            page.line(names.clean(problem), indent=2)
        page.gap()
    if growing := [(subject, series) for subject, series in sections if subject.growth]:
        page.table(_overview(growing, roster))
        page.gap()
    page.line(str(headline(summary)), style="bold")
    return page.text()


def _series(page: console.Page, subject: Subject, series: Series, roster: names.Roster) -> None:
    page.line(_who(series, roster), indent=2)
    if words.measured(series):
        page.table(_cells(subject, series.cells), indent=4)
        if subject.growth:
            page.line(words.fit(series.fit), indent=4, style="bold")
        for reference in words.references(subject, series):
            page.line(f"reference {words.reference(reference, series.fit)}", indent=4)
    if series.trace:
        _battle(page, series.trace)
    if series.skipped:
        page.line(f"skipped: {names.clean(series.skipped)}", indent=4, style="yellow")
    for failure in series.failures:
        page.line(f"missing: {names.clean(failure)}", indent=4, style="red")
    for warning in words.warnings(series):
        page.line(f"! {warning}", indent=4, style="yellow")
    page.gap()


def _battle(page: console.Page, trace: GilTrace) -> None:
    for sentence in battle.summary(trace):
        page.line(sentence, indent=4)
    page.gap()
    page.lines(battle.strip(trace), indent=4)
    page.line('"#" holds the GIL, "." waits for it', indent=4)
    page.gap()
    table = console.table("time", "<thread", "<event", "<")
    for row in battle.events(trace):
        console.add_row(table, *row)
    page.table(table, indent=4)
    if more := len(trace.events) + trace.left_out - len(battle.events(trace)):
        page.line(f"... and {units.count(more)} more", indent=4)
    page.gap()


def _ranking(page: console.Page, ranking: Ranking, roster: names.Roster) -> None:
    page.line(words.ranking(ranking, roster), style="bold")
    table = console.table("<case", "wall", "<", "user", "system", "CPU", "memory", "<verdict")
    for place in ranking.places:
        cell = place.cell
        console.add_row(
            table,
            names.clean(place.case),
            units.seconds(cell.median),
            units.interval(cell.low, cell.high, cell.median),
            units.seconds(cell.metrics.get("user_s")),
            units.seconds(cell.metrics.get("system_s")),
            units.percent(None if cell.cpu_percent is None else cell.cpu_percent / 100),
            units.memory(cell.sum_rss_kb),
            words.standing(place),
        )
    page.table(table, indent=2)
    page.gap()


def _cells(subject: Subject, cells: Sequence[Cell]) -> Table:
    further = words.further(subject)
    heads = [names.clean(metric.title) for metric in further] or ["factor", "CPU", "switches"]
    table = console.table(
        names.clean(subject.size_name), names.clean(subject.value_name), "<", *heads, "<verdict"
    )
    for cell in cells:
        several = len(cell.modes) > 1
        console.add_row(
            table,
            str(cell.n),
            units.seconds(cell.modes[0]) if several else units.seconds(cell.median),
            f"or {units.seconds(cell.modes[-1])}"
            if several
            else units.interval(cell.low, cell.high, cell.median),
            *_figures(cell, further),
            cell.verdict,
        )
    return table


def _figures(cell: Cell, further: Sequence[Metric]) -> Sequence[str]:
    """What an experiment measures besides its time; of one that measures nothing else, what all have."""
    if further:
        return [units.metric(cell.metrics.get(metric.name), metric.unit) for metric in further]
    return units.factor(cell.factor), units.seconds(cell.cpu_s), units.count(words.switches(cell))


def _overview(sections: Sequence[tuple[Subject, Sequence[Series]]], roster: names.Roster) -> Table:
    table = console.table("<experiment, interpreter", "<grows as", "<", "<model", "<verdict")
    for subject, series in sections:
        console.add_row(table, names.clean(subject.id))
        for s in series:
            fit, cells = s.fit, ["", "", "", words.absence(s)]
            if words.measured(s):
                cells = [words.power(fit.exponent), words.bounds(fit.low, fit.high), fit.model, fit.verdict]
            console.add_row(table, _who(s, roster), *cells, indent=2)
    return table


def _who(series: Series, roster: names.Roster) -> str:
    return f"{roster.of(series).label}{f', {names.clean(series.label)}' if series.label else ''}"
