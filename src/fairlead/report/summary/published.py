"""Published figures beside ours: theirs, ours and the ratio, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from string import ascii_lowercase

from fairlead.record.summary import Cell, Reference, Series, Subject
from fairlead.report.common import names, units, words

_TITLES = {"elapsed": "wall", "cpu_percent": "CPU of one core", "max_rss_kb": "largest process"}
"""What figures are called that every experiment has."""


_NOT_STATED = "not stated"
_VOID = ("", _NOT_STATED)
LEFT = ("case", "published for", "figure")
"""Heads of columns of words."""


@dataclass(frozen=True, slots=True)
class Row:
    """One published figure, or one between two of them, and ours."""

    case: str
    """Which way of doing a work; empty where there is only one."""
    source: str
    metric: str
    n: str
    """"100"; "about 110" where theirs lies between two published sizes; "not stated"."""
    theirs: str
    ours: str
    ratio: str
    """Ours over theirs; empty where n is not stated, so that the two cannot be divided."""


@dataclass(frozen=True, slots=True)
class FigureTable:
    """Theirs beside ours: no column is empty throughout."""

    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    sources: str
    """Which source is in which column, "a: CPython 3.9.1, 10 cores; b: ..."; empty where each row says it."""


def filled(
    heads: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The columns in which some row has anything."""
    kept = [i for i in range(len(heads)) if any(row[i] not in _VOID for row in rows)]
    return tuple(heads[i] for i in kept), [tuple(row[i] for i in kept) for row in rows]


def table(rows: Sequence[Row]) -> FigureTable:
    """A row for each figure; where no source says what n was, no ratio, and a column for each source."""
    heads: tuple[str, ...] = ("case", "published for", "figure", "n", "theirs", "ours", "ratio")
    cells: list[tuple[str, ...]] = [astuple(row) for row in rows]
    sources: dict[str, str] = {}
    if all(row.n == _NOT_STATED for row in rows):
        sources = dict(zip(dict.fromkeys(row.source for row in rows), ascii_lowercase, strict=False))
        theirs: dict[tuple[str, str, str], dict[str, str]] = {}
        for row in rows:
            theirs.setdefault((row.case, row.metric, row.ours), {})[row.source] = row.theirs
        heads = ("case", "figure", *sources.values(), "ours")
        cells = [
            (case, what, *(of.get(one, "") for one in sources), ours)
            for (case, what, ours), of in theirs.items()
        ]
    return FigureTable(
        *filled(heads, cells),
        sources="; ".join(f"{letter}: {source}" for source, letter in sources.items()),
    )


def rows(subject: Subject, series: Series, case: str = "") -> Iterator[Row]:
    """Every published figure of the series at a size that was measured here, or at the largest in its range.

    Where the source does not say how large n was, only what stands beside it can be compared: the ratio to
    the other rows of the same source.
    """
    measured = [cell for cell in series.cells if cell.values]
    for reference in words.published(subject, series):
        what = title(subject, reference.metric)
        for n, theirs, cell, exact in _pairs(reference, measured):
            ours = figure(cell, reference.metric)
            if ours is not None:
                yield Row(
                    case=names.clean(case),
                    source=names.clean(reference.label),
                    metric=what,
                    n=(str(n) if exact else f"about {n}") if n else _NOT_STATED,
                    theirs=units.metric(theirs, reference.unit),
                    ours=units.metric(ours, reference.unit),
                    ratio=units.factor(ours / theirs) if n and theirs else "",
                )


def figure(cell: Cell, metric: str) -> float | None:
    """Ours, in the unit of a reference."""
    match metric:
        case "elapsed":
            return cell.median
        case "cpu_percent":
            return None if cell.cpu_percent is None else cell.cpu_percent / 100
        case "max_rss_kb":
            return cell.max_rss_kb
        case _:
            return cell.metrics.get(metric)


def title(subject: Subject, metric: str) -> str:
    """What the figures of a reference are called in a table."""
    titles = {one.name: one.title for one in subject.metrics}
    if metric == "elapsed" and subject.value_name != "elapsed":
        return subject.value_name
    return names.clean(titles.get(metric, _TITLES.get(metric, metric)))


def _pairs(reference: Reference, cells: Sequence[Cell]) -> Iterator[tuple[int, float, Cell, bool]]:
    """(n, theirs, our cell, whether theirs was published for just this n)."""
    if not cells:
        return
    points = dict(reference.points)
    if 0 in points:
        yield 0, points[0], cells[-1], True
        return
    exact = [cell for cell in cells if cell.n in points]
    for cell in exact:
        yield cell.n, points[cell.n], cell, True
    if not exact:
        for cell in reversed(cells):
            if (between := reference.at(cell.n)) is not None:
                yield cell.n, between, cell, False
                return
