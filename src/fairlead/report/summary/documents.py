"""The documents that a run repeats: their tables and ours side by side, with whose they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fairlead.record.document import Document, Table
from fairlead.record.summary import Cell, Series, Summary
from fairlead.report.common import console, names, units, words
from fairlead.report.summary import claims, published


@dataclass(frozen=True, slots=True)
class Beside:
    """A table of a document, and what was measured for it."""

    title: str
    says: str
    figures: published.FigureTable
    """Without a figure of theirs where the document prints none."""
    claims: tuple[str, ...]
    """What is claimed about it: verdict and sentence."""


def credit(document: Document) -> str:
    """ "Ilya Egorov: Performance, in the documentation of aiologic (CC-BY-4.0), https://..."."""
    licence = f" ({document.licence})" if document.licence else ""
    parts = [f"{document.author or 'Author not known'}: {document.title}{licence}", document.address]
    return ", ".join(filter(None, parts))


def repeats(summary: Summary, document: Document) -> bool:
    """Whether the run is of what the document shows, and of nothing else."""
    return {one.experiment for one in summary.series} == {table.experiment for table in document.tables}


def tables(summary: Summary, document: Document) -> list[Beside]:
    """Those of which anything was measured."""
    roster = names.Roster(summary.series)
    made = [_beside(summary, table, roster) for table in document.tables]
    return [one for one in made if one.figures.rows or one.claims]


def write(
    page: console.Page, summary: Summary, show: Callable[[console.Page, published.FigureTable], None]
) -> None:
    """For the terminal, if it is a run of a document; ``show`` writes a table of figures."""
    for document in summary.documents:
        if repeats(summary, document):
            page.line(credit(document), style="bold")
            for one in tables(summary, document):
                page.gap()
                page.line(one.title, style="bold")
                if one.says:
                    page.line(f"It says: {one.says}.", indent=2)
                show(page, one.figures)
                for claim in one.claims:
                    page.line(claim, indent=2)
            page.gap()


def _beside(summary: Summary, table: Table, roster: names.Roster) -> Beside:
    shown = [
        one
        for one in summary.series
        if one.experiment == table.experiment
        and any(all(one.variant.get(key) == value for key, value in its.items()) for its in table.settings)
    ]
    ids = {table.experiment, *(one.group for one in summary.subjects if one.id == table.experiment)}
    rows = [row for series in shown for row in _rows(summary, table, series, roster)]
    sources = {row.source for row in rows} - {""}
    figures = published.table(rows)
    if not figures.sources and len(sources) == 1:
        figures = replace(published.table([replace(row, source="") for row in rows]), sources=sources.pop())
    return Beside(
        title=table.title,
        says=table.says,
        figures=figures,
        claims=tuple(
            f"{claims.sign(claim)}: {claims.sentence(claim)}"
            for claim in summary.claims
            if claim.topic in table.claims and claim.experiment in ids
        ),
    )


def _rows(summary: Summary, table: Table, series: Series, roster: names.Roster) -> Iterator[published.Row]:
    """Each published figure beside ours: at its n; or, undivided, at the largest of each, where we measured
    at others or on another interpreter. All of ours where the document prints no figure."""
    measured = [cell for cell in series.cells if cell.values]
    if not measured:
        return
    subject = next(one for one in summary.subjects if one.id == series.experiment)
    case = names.variant(series)
    if len(list(roster)) > 1:
        case += f", {roster.of(series).label}"
    if table.labels:
        printed = tuple(one for one in subject.references if one.label in table.labels)
        subject = replace(subject, references=printed)
    beside = list(published.rows(subject, series, case))
    yield from beside
    if beside:
        return
    last = measured[-1]
    # what a document prints stands in its table, whatever it was measured on
    references = [one for one in subject.references if one.variant.items() <= series.variant.items()]
    for one in references:
        n, theirs = one.points[-1]
        yield published.Row(
            case=case,
            source=names.clean(one.label),
            metric=published.title(subject, one.metric),
            n=f"{n}, ours {last.n}",
            theirs=units.metric(theirs, one.unit),
            ours=units.metric(published.figure(last, one.metric), one.unit),
            ratio="",
        )
    if references:
        return

    def own(cell: Cell, what: str, ours: str) -> published.Row:
        return published.Row(case=case, source="", metric=what, n=str(cell.n), theirs="", ours=ours, ratio="")

    yield from (own(cell, subject.value_name, words.cell(cell)) for cell in measured)
    for metric in words.further(subject, [last]):
        yield own(last, names.clean(metric.title), units.metric(last.metrics[metric.name], metric.unit))
