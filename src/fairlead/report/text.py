"""Reports for the terminal: plain characters, 80 columns, and the answer at the end, where the eye is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from fairlead.record.comparison import CellChange, Comparison, SeriesChange, Unmatched
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


def render_comparison(comparison: Comparison, *, width: int = 80, colour: bool = False) -> str:
    """Two runs side by side: a table for each series that both have, then the rest, then the sum of it all.

    Args:
        width: columns to fit into.
        colour: write the terminal's colour codes.

    Raises:
        MissingExtra: rich is not installed.
    """
    page = console.Page(width, colour)
    page.line("a is the base, b is compared with it; a ratio is b / a with its 95 % interval")
    for name in comparison.differing:
        one, other = comparison.environment_a.get(name), comparison.environment_b.get(name)
        values = f"{names.value(one)} in a, {names.value(other)} in b"
        page.line(f"! {names.clean(name)} differs: {values}; compare exponents, not times", style="yellow")
    page.gap()
    for experiment, group in groupby(comparison.series, key=lambda s: (s.experiment, s.title)):
        page.line("  ".join(map(names.clean, experiment)), style="bold")
        for series in group:
            _change(page, series)
    if comparison.unmatched:
        page.line("Only in one of them", style="bold")
        for one in comparison.unmatched:
            page.line(_unmatched(one), indent=2)
        page.gap()
    if comparison.problems:
        page.line("To be known", style="bold")
        for problem in comparison.problems:
            page.line(names.clean(problem), indent=2)
        page.gap()
    page.line(words.tally(comparison), style="bold")
    return page.text()


def _change(page: console.Page, series: SeriesChange) -> None:
    one = _labelled(series.interpreter_a, series.label_a)
    other = _labelled(series.interpreter_b, series.label_b)
    paths = [names.value(i.get("path")) for i in (series.interpreter_a, series.interpreter_b)]
    if one == other and paths[0] != paths[1]:
        one, other = f"{one} ({paths[0]})", f"{other} ({paths[1]})"
    page.line(one if one == other else f"a: {one}; b: {other}", indent=2)
    table = console.table("n", "a", "b", "ratio", "<", "p", "<change")
    for cell in series.cells:
        times = units.seconds(cell.median_a), units.seconds(cell.median_b)
        ratio = f"{cell.ratio:.2f}", words.bounds(cell.low, cell.high)
        console.add_row(table, str(cell.n), *times, *ratio, words.p_value(cell.p), cell.change)
    page.table(table, indent=4)
    page.line(f"a {words.fit(series.fit_a)}", indent=4)
    page.line(f"b {words.fit(series.fit_b)}", indent=4)
    for what, cells in _advised(series.cells).items():
        page.line(f"! n = {', '.join(str(c.n) for c in cells)}: {what}", indent=4, style="yellow")
    page.gap()


def _advised(cells: Sequence[CellChange]) -> dict[str, list[CellChange]]:
    advised: dict[str, list[CellChange]] = {}
    for cell in cells:
        if cell.advice:
            advised.setdefault(names.clean(cell.advice), []).append(cell)
    return advised


def _unmatched(one: Unmatched) -> str:
    sizes = f"n = {', '.join(map(str, one.sizes))}" if one.sizes else "not measured"
    return f"{one.run}: {names.clean(one.experiment)}, {_labelled(one.interpreter, one.label)}: {sizes}"


def _labelled(interpreter: dict[str, Any], label: str) -> str:
    return f"{names.label(interpreter)}{f', {names.clean(label)}' if label else ''}"
