"""Reports for the terminal: plain characters, 80 columns, and the answer at the end, where the eye is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from fairlead.record.gil_trace import GilTrace
from fairlead.record.summary import Cell, Metric, Ranking, Series, Subject, Summary
from fairlead.report import answers, battle, console, families, names, units, words
from fairlead.report.headline import headline

if TYPE_CHECKING:
    from rich.table import Table


def render(summary: Summary, *, width: int = 80, colour: bool = False) -> str:
    """Each family's tables, with fits and warnings, then all fits, then the answers, then the headline.

    Args:
        width: columns to fit into; below about 70 the tables fold their cells.
        colour: write the terminal's colour codes. Without them the result is plain text.

    Raises:
        MissingExtra: rich is not installed.
    """
    page = console.Page(width, colour)
    roster = names.Roster(summary.series)
    shown = families.families(summary)
    for family in shown:
        page.line(family.title.upper(), style="bold")
        page.gap()
        for topic in family.topics:
            _topic(page, topic, roster)
    if summary.rankings:
        page.line(words.STANDINGS)
        page.gap()
    if summary.problems:
        page.line("Left out", style="bold")
        for problem in summary.problems:
            page.line(names.clean(problem), indent=2)
        page.gap()
    sections = [one for family in shown for topic in family.topics for one in topic.sections()]
    growing = [(subject, series) for subject, series in sections if subject.growth]
    if any(words.measured(one) for _, series in growing for one in series):
        page.table(_overview(growing, roster))
        page.gap()
    for topic_name, sentence in answers.lines(answers.answers(summary)):
        page.line(f"{topic_name}: {sentence}", indent=2)
    page.gap()
    page.line(str(headline(summary)), style="bold")
    return page.text()


def _topic(page: console.Page, topic: families.Topic, roster: names.Roster) -> None:
    """An experiment with a table for each series, or a work with one for each interpreter."""
    if not topic.as_a_whole:
        for subject, series in topic.sections():
            page.line(f"{names.clean(subject.id)}  {names.clean(subject.title)}", style="bold")
            for one in series:
                _series(page, subject, one, roster)
        return
    page.line(f"{names.clean(topic.id)}  {topic.title}", style="bold")
    for ranking in topic.rankings:
        _ranking(page, topic, ranking, roster)
    for line, cases in _alike(topic, words.warnings, roster):
        page.line(f"! {cases}: {line}", indent=2, style="yellow")
    for line, cases in _alike(topic, _missing, roster):
        page.line(f"missing: {cases}: {line}", indent=2, style="red")
    page.gap()


def _missing(series: Series) -> Iterable[str]:
    yield from [names.clean(series.skipped)] if series.skipped else []
    yield from map(names.clean, series.failures)
    yield from (f"{name}: {names.clean(reason)}" for name, reason in series.not_measured.items())


def _alike(
    topic: families.Topic, told: Callable[[Series], Iterable[str]], roster: names.Roster
) -> Iterator[tuple[str, str]]:
    """Each line that is told of a work's series, once, with all that it is told of."""
    cases: dict[tuple[str, str], list[str]] = {}
    for one in topic.series:
        for line in told(one):
            cases.setdefault((line, roster.of(one).label), []).append(topic.case(one))
    for (line, who), found in cases.items():
        yield line, f"{', '.join(found)} on {who}"


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


def _ranking(page: console.Page, topic: families.Topic, ranking: Ranking, roster: names.Roster) -> None:
    page.line(words.ranking(ranking, roster), indent=2)
    further = words.further(topic.subject)
    compared = any(metric.name == "speed_up" for metric in further)
    heads = [names.clean(metric.title) for metric in further if metric.name not in _SAID]
    heads += [] if compared else ["CPU", "memory"]
    table = console.table("<case", "wall", *heads, "<standing")
    for place in ranking.places:
        cell = place.cell
        figures = [
            units.metric(cell.metrics.get(metric.name), metric.unit)
            for metric in further
            if metric.name not in _SAID
        ]
        if not compared:
            figures += [
                units.percent(None if cell.cpu_percent is None else cell.cpu_percent / 100),
                units.memory(cell.sum_rss_kb),
            ]
        console.add_row(
            table,
            names.clean(place.case),
            units.seconds(cell.median),
            *figures,
            words.standing(place),
        )
    page.table(table, indent=2)
    page.gap()


_SAID = {"wrong_answers"}
"""Metrics that the standing says."""


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
        if any(map(words.measured, series)):
            console.add_row(table, names.clean(subject.id))
        for s in filter(words.measured, series):
            grows = words.power(s.fit.exponent), words.bounds(s.fit.low, s.fit.high)
            console.add_row(table, _who(s, roster), *grows, s.fit.model, s.fit.verdict, indent=2)
    return table


def _who(series: Series, roster: names.Roster) -> str:
    return f"{roster.of(series).label}{f', {names.clean(series.label)}' if series.label else ''}"
