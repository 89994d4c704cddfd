"""Runs side by side, for the terminal: plain characters, 80 columns, and the sum of it all at the end."""

from __future__ import annotations

from itertools import groupby

from fairlead.record.comparison import CellChange, Comparison, SeriesChange
from fairlead.report.common import console, names, units, words
from fairlead.report.comparison import sentences


def render(comparison: Comparison, *, width: int = 80, colour: bool = False) -> str:
    """A table of the runs, one for each series that two of them have, then the rest, then the sum.

    Args:
        width: columns to fit into.
        colour: write the terminal's colour codes.

    Raises:
        MissingExtraError: rich is not installed.
    """
    page = console.Page(width, colour)
    _runs(page, comparison)
    page.line(
        "a ratio is of geometric means, a run's over that of the first run that has the cell, with its 95 % "
        "interval; within 10 %: as a whole between 1 / 1.1 and 1.1"
    )
    for line in sentences.differing(comparison):
        page.line(f"! {line}", style="yellow")
    page.gap()
    for subject, group in groupby(comparison.series, key=lambda series: series.subject):
        page.line(f"{names.clean(subject.id)}  {names.clean(subject.title)}", style="bold")
        for series in group:
            _series(page, series)
    if comparison.unmatched:
        page.line("Only in one of them", style="bold")
        for one in comparison.unmatched:
            page.line(sentences.unmatched(one), indent=2)
        page.gap()
    if comparison.problems:
        page.line("To be known", style="bold")
        for problem in comparison.problems:
            page.line(names.clean(problem), indent=2)
        page.gap()
    for sentence in sentences.tally(comparison):
        page.line(sentence, style="bold")
    return page.text()


def _runs(page: console.Page, comparison: Comparison) -> None:
    table = console.table("<run", "<", "<machine", "cores", "samples", "<begun")
    for run in comparison.runs:
        console.add_row(
            table,
            run.letter,
            names.shorten(names.clean(run.name), 32),
            names.value(run.environment.get("hostname")),
            names.value(run.environment.get("cores")),
            units.count(run.samples),
            names.moment(run.started) if run.started else units.NOTHING,
        )
    page.table(table)


def _series(page: console.Page, series: SeriesChange) -> None:
    page.line(sentences.participants(series), indent=2)
    table = console.table("n", "<run", "median", "ratio", "<", "p", "<change")
    for n, group in groupby(series.cells, key=lambda cell: cell.n):
        cells = list(group)
        console.add_row(table, str(n), cells[0].base, units.seconds(cells[0].median_base), *[""] * 4)
        for cell in cells:
            console.add_row(table, "", cell.run, units.seconds(cell.median), *_change(cell))
    page.table(table, indent=2)
    if series.subject.growth:
        for member in series.members:
            page.line(f"{member.run} {words.fit(member.series.fit)}", indent=4)
    for line in sentences.undecided(series):
        page.line(f"! {line}", indent=4, style="yellow")
    page.gap()


def _change(cell: CellChange) -> tuple[str, ...]:
    return (
        units.digits(cell.ratio),
        units.interval(cell.low, cell.high),
        words.p_value(cell.p),
        sentences.called(cell),
    )
