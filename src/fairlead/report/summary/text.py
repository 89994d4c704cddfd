"""Reports for the terminal: 80 columns, a line for each claim, and all else on demand, before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from fairlead.record.gil_trace import GilTrace
from fairlead.record.summary import Cell, Claim, Metric, Ranking, Series, Subject, Summary
from fairlead.report.common import console, names, units, words
from fairlead.report.summary import claims, documents, published, sections
from fairlead.report.summary.pictures import gil_timeline

if TYPE_CHECKING:
    from rich.table import Table


def render(summary: Summary, *, width: int = 80, colour: bool = False, detail: int = 0) -> str:
    """The machine, what disturbed the run, and a line for each claim.

    Args:
        width: columns to fit into; below about 70 the tables fold their words.
        colour: write the terminal's colour codes. Without them the result is plain text.
        detail: 1 puts the tables before them, how each series grows and what was published; 2 also the cells.
            A summary without claims has tables in any case.

    Raises:
        MissingExtraError: rich is not installed.
    """
    page = console.Page(width, colour)
    roster = names.Roster(summary.series)
    found = claims.ordered(summary)
    unclaimed = not found and any(map(words.measured, summary.series))
    if detail or unclaimed:
        tables(page, summary, roster, cells=detail > 1)
    documents.write(page, summary, _theirs)
    if summary.series:
        page.line(claims.machine(summary))
        page.line(claims.conditions(summary))
    shown = found if detail else claims.main(found)
    for interpreter in roster:
        own = [claim for claim in shown if claim.interpreter == interpreter.record]
        if own:
            if len(roster) > 1:
                page.line(interpreter.label, style="bold")
            page.columns(_HEADS, [_claim(claim) for claim in own])
    if contrary := [claim for claim in shown if claim.verdict == "contradicts the source"]:
        labels = dict.fromkeys(names.clean(one.label) for claim in contrary for one in claim.published)
        page.line(f"contrary: settled, against what was published for {'; '.join(labels)}")
    if not shown and not unclaimed:
        page.line(claims.headline(summary), style="bold")
        for reason in _reasons(summary)[:_REASONS]:
            page.line(reason, indent=2)
    left = [claims.tally(found)] if found else []
    left += [f"{len(found) - len(shown)} more with -v"] if len(found) > len(shown) else []
    left += [f"{count} series incomplete (-v)"] if (count := _lost(summary)) else []
    if lost := len(summary.problems):
        left.append(f"{lost} {'line' if lost == 1 else 'lines'} could not be read")
    if left:
        page.line("; ".join(left))
    return page.text()


_REASONS = 5
"""So many reasons are told where there is nothing else to tell."""


def _reasons(summary: Summary) -> list[str]:
    """Why series were not, or not wholly, measured: each reason once."""
    told = [reason for one in summary.series for reason in (one.skipped, *one.failures) if reason]
    return list(dict.fromkeys(map(names.clean, told)))


def _lost(summary: Summary) -> int:
    return sum(bool(one.skipped or one.failures) for one in summary.series)


_HEADS = ("verdict", "claim", "ours [interval]", "times", "published")


def _claim(claim: Claim) -> tuple[str, ...]:
    return (
        claims.sign(claim),
        names.clean(claim.topic),
        claims.ours(claim),
        claims.sides(claim),
        claims.published(claim),
    )


def tables(page: console.Page, summary: Summary, roster: names.Roster, *, cells: bool) -> None:
    """Each family's experiments: claims in full, how each series grows, rankings, and what was published."""
    shown = sections.families(summary)
    for family in shown:
        page.line(family.title.upper(), style="bold")
        page.gap()
        for topic in family.topics:
            _topic(page, topic, summary, roster, cells)
    if summary.rankings:
        page.line(words.STANDINGS)
        page.gap()
    if summary.problems:
        page.line("Left out", style="bold")
        for problem in summary.problems:
            page.line(names.clean(problem), indent=2)
        page.gap()


def _topic(
    page: console.Page, topic: sections.Topic, summary: Summary, roster: names.Roster, cells: bool
) -> None:
    """An experiment with its series, or a work with a ranking for each interpreter."""
    page.line(f"{names.clean(topic.id)}  {topic.title}", style="bold")
    ids = {topic.id, *(subject.id for subject in topic.subjects)}
    for claim in claims.ordered(summary):
        if claim.experiment in ids:
            page.line(f"{claims.sign(claim)}: {claims.sentence(claim)}", indent=2)
            if claim.verdict == "open":
                page.line(claims.why_open(claim), indent=4)
    if not topic.as_a_whole:
        for subject, series in topic.sections():
            for one in series:
                _series(page, subject, one, roster, cells)
        page.gap()
        return
    for ranking in topic.rankings:
        _ranking(page, topic, ranking, roster)
    for line, cases in _alike(topic, words.notes, roster):
        page.line(f"! {cases}: {line}", indent=2, style="yellow")
    for line, cases in _alike(topic, _missing, roster):
        page.line(f"missing: {cases}: {line}", indent=2, style="red")
    page.gap()


def _missing(series: Series) -> Iterable[str]:
    yield from [names.clean(series.skipped)] if series.skipped else []
    yield from map(names.clean, series.failures)
    yield from (f"{name}: {names.clean(reason)}" for name, reason in series.not_measured.items())


def _alike(
    topic: sections.Topic, told: Callable[[Series], Iterable[str]], roster: names.Roster
) -> Iterator[tuple[str, str]]:
    """Each line that is told of a work's series, once, with all that it is told of."""
    cases: dict[tuple[str, str], list[str]] = {}
    for one in topic.series:
        for line in told(one):
            cases.setdefault((line, roster.of(one).label), []).append(topic.case(one))
    for (line, label), found in cases.items():
        yield line, f"{', '.join(found)} on {label}"


def _series(page: console.Page, subject: Subject, series: Series, roster: names.Roster, cells: bool) -> None:
    measured = [cell for cell in series.cells if cell.values]
    grows = f": {words.fit(series.fit)}" if measured and subject.growth else ""
    page.line(f"{_subject(series, roster)}{grows}", indent=2)
    if measured and cells:
        page.table(_cells(subject, series.cells), indent=4)
    elif measured:
        ends = dict.fromkeys((measured[0].n, measured[-1].n))
        by_n = {cell.n: cell for cell in measured}
        size = names.clean(subject.size_name)
        page.line("; ".join(f"{n} {size}: {words.cell(by_n[n])}" for n in ends), indent=4)
    if measured:
        _published(page, subject, series)
    if series.trace:
        _battle(page, series.trace)
    if series.skipped:
        page.line(f"skipped: {names.clean(series.skipped)}", indent=4, style="yellow")
    for failure in series.failures:
        page.line(f"missing: {names.clean(failure)}", indent=4, style="red")
    for note in words.notes(series):
        page.line(note, indent=4, style="yellow")


def _published(page: console.Page, subject: Subject, series: Series) -> None:
    """Theirs, ours and the ratio, in one table."""
    for reference in words.references(subject, series):
        told = filter(None, (words.reference(reference), words.reference_place(reference, series)))
        page.line(f"published {'; '.join(told)}", indent=4)
    _theirs(page, published.table(list(published.rows(subject, series))))


def _theirs(page: console.Page, found: published.FigureTable) -> None:
    """Theirs and ours, and whose they are."""
    if found.rows:
        if found.sources:
            page.line(f"published for {found.sources}", indent=4)
        table = console.table(*(f"<{head}" if head in published.LEFT else head for head in found.heads))
        for row in found.rows:
            console.add_row(table, *row)
        page.table(table, indent=4)


def _battle(page: console.Page, trace: GilTrace) -> None:
    for sentence in gil_timeline.summary(trace):
        page.line(sentence, indent=4)
    page.gap()
    page.lines(gil_timeline.strip(trace), indent=4)
    page.line('"#" holds the GIL, "." waits for it', indent=4)
    page.gap()
    table = console.table("time", "<thread", "<event", "<")
    for row in gil_timeline.events(trace):
        console.add_row(table, *row)
    page.table(table, indent=4)
    if more := len(trace.events) + trace.left_out - len(gil_timeline.events(trace)):
        page.line(f"... and {units.count(more)} more", indent=4)
    page.gap()


def _ranking(page: console.Page, topic: sections.Topic, ranking: Ranking, roster: names.Roster) -> None:
    page.line(words.ranking(ranking, topic.subject, roster), indent=2)
    further = words.further(topic.subject, [place.cell for place in ranking.places])
    compared = any(metric.name == "speed_up" for metric in further)
    heads = [names.clean(metric.title) for metric in further if metric.name not in _SAID]
    heads += [] if compared else ["CPU", "memory"]
    table = console.table("<case", words.took(topic.subject), *heads, "<standing")
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
    subjects = {subject.id: subject for subject in topic.subjects}
    rows = [
        row
        for place in ranking.places
        for row in published.rows(subjects[place.series.experiment], place.series, place.case)
    ]
    _theirs(page, published.table(rows))
    page.gap()


_SAID = {"wrong_answers"}
"""Metrics that the standing says."""


def _cells(subject: Subject, cells: Sequence[Cell]) -> Table:
    further = words.further(subject, cells)
    heads = [names.clean(metric.title) for metric in further]
    heads = ["factor", "CPU", "switches", *heads] if subject.growth else heads
    table = console.table(
        names.clean(subject.size_name), f"<{names.clean(subject.value_name)}", "runs", *heads
    )
    for cell in cells:
        console.add_row(
            table, str(cell.n), words.cell(cell), str(len(cell.values)), *_figures(subject, cell, further)
        )
    return table


def _figures(subject: Subject, cell: Cell, further: Sequence[Metric]) -> Iterable[str]:
    """How it grows, if that is the question, and what the experiment measures besides its time."""
    if subject.growth:
        yield from (units.factor(cell.factor), units.seconds(cell.cpu_s), units.count(words.switches(cell)))
    yield from (units.metric(cell.metrics.get(metric.name), metric.unit) for metric in further)


def _subject(series: Series, roster: names.Roster) -> str:
    return f"{roster.of(series).label}{f', {names.clean(series.label)}' if series.label else ''}"
