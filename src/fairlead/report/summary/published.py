"""Published figures beside ours: theirs, ours and the ratio, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairlead.record.summary import Cell, Reference, Series, Subject
from fairlead.report.common import names, units, words

_TITLES = {"elapsed": "wall", "cpu_percent": "CPU, one core is 100 %", "max_rss_kb": "largest process"}
"""What figures are called that every experiment has."""


@dataclass(frozen=True, slots=True)
class Row:
    """One published figure, or one between two of them, and ours."""

    source: str
    metric: str
    n: str
    """"100"; "about 110" where theirs lies between two published sizes; "not stated"."""
    theirs: str
    ours: str
    ratio: str
    """Ours over theirs; empty where n is not stated, so that the two cannot be divided."""


def rows(subject: Subject, series: Series) -> Iterator[Row]:
    """Every published figure of the series at a size that was measured here, or at the largest in its range.

    Where the source does not say how large n was, only what stands beside it can be compared: the ratio to
    the other rows of the same source.
    """
    measured = [cell for cell in series.cells if cell.values]
    for reference in words.published(subject, series):
        title = _title(subject, reference.metric)
        for n, theirs, cell, exact in _pairs(reference, measured):
            ours = figure(cell, reference.metric)
            if ours is not None:
                yield Row(
                    source=names.clean(reference.label),
                    metric=title,
                    n=(str(n) if exact else f"about {n}") if n else "not stated",
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


def _title(subject: Subject, metric: str) -> str:
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
