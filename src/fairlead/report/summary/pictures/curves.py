"""The curves of one variant of one experiment as plain data; ``plot`` draws them.

What is drawn is decided here, where it stands in ``plot``, how it looks in ``page.css``. Every text is
escaped already.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from fairlead.record.summary import Cell, Fit, Reference, Series, Subject
from fairlead.report.common import names, units, words

_STEPS = 48
_LEGEND = 38
_DECADES_WITH_STEPS = 3.5
_GROWTH: dict[str, Callable[[float], float]] = {
    "1": lambda _: 1.0,
    "n": lambda n: n,
    "n log n": lambda n: n * math.log(n),
    "n^2": lambda n: n * n,
}


def panel(subject: Subject, series: Sequence[Series], roster: names.Roster) -> dict[str, Any] | None:
    """The data of one plot: a curve for each of ``series``, the references, and the view.

    None when not one of the series has a value, for then there is nothing to draw.
    """
    curves = [_curve(s, roster.of(s)) for s in series if words.measured(s)]
    if not curves:
        return None
    known = [words.references(subject, s) for s in series]
    references = [_reference(r) for r in subject.references if r.points and any(r in some for some in known)]
    return {
        "size": escape(names.clean(subject.size_name)),
        "sizes": sorted({x for c in curves for x in c["raw"]["x"]}),
        "curves": curves,
        "references": references,
        "view": _log_view(curves, references),
    }


def _curve(series: Series, interpreter: names.Named) -> dict[str, Any]:
    measured = [c for c in series.cells if c.median is not None]
    return {
        "name": escape(interpreter.label),
        "index": interpreter.index,
        "raw": {
            "x": [c.n for c in series.cells for _ in c.values],
            "y": [v for c in series.cells for v in c.values],
        },
        "median": {
            "x": [c.n for c in measured],
            "y": [c.median for c in measured],
            "up": [_distance(c.median, c.high) for c in measured],
            "down": [_distance(c.low, c.median) for c in measured],
            "text": [_hover(c) for c in measured],
        },
        "modes": {
            "x": [c.n for c in measured for m in c.modes if len(c.modes) > 1],
            "y": [m for c in measured for m in c.modes if len(c.modes) > 1],
        },
        "fit": (fitted := _fitted(series.fit, [c.n for c in measured])),
        "legend": f"{escape(names.shorten(interpreter.label, _LEGEND))}: ours, "
        + (f"line: {words.model(series.fit)}" if fitted["x"] else "no model fits"),
    }


def _distance(low: float | None, high: float | None) -> float:
    return 0.0 if low is None or high is None else max(0.0, high - low)


def _hover(cell: Cell) -> str:
    return f"n = {cell.n}: {words.cell(cell)} ({units.runs(len(cell.values))})"


def _fitted(fit: Fit, sizes: Sequence[int]) -> dict[str, list[float]]:
    growth = _GROWTH.get(fit.model)
    if growth is None or fit.coefficients is None or len(sizes) < 2 or min(sizes) < 1:
        return {"x": [], "y": []}
    intercept, slope = fit.coefficients
    points = [(n, intercept + slope * growth(n)) for n in _spread(min(sizes), max(sizes))]
    # on log axes a curve through an intercept below zero has no picture where it is not positive
    return {"x": [n for n, t in points if t > 0], "y": [t for _, t in points if t > 0]}


def _spread(low: float, high: float) -> list[float]:
    return [low * (high / low) ** (i / (_STEPS - 1)) for i in range(_STEPS)]


def _reference(reference: Reference) -> dict[str, Any]:
    """The published points, and a line that is a power of n between each two of them."""
    points = sorted((n, t) for n, t in reference.points if n > 0 and t > 0)
    line: list[tuple[float, float]] = [points[0]] if points else []
    for (n0, t0), (n1, t1) in pairwise(points):
        exponent = math.log(t1 / t0) / math.log(n1 / n0) if n1 > n0 else 0.0
        line += [(n, t0 * (n / n0) ** exponent) for n in _spread(n0, n1)[1:]]
    return {
        "name": escape(names.clean(reference.label)),
        "legend": f"published: {escape(names.shorten(names.clean(reference.label), _LEGEND + 7))}",
        "points": {
            "x": [n for n, _ in points],
            "y": [t for _, t in points],
            "text": [f"n = {n}: {units.seconds(t)}" for n, t in points],
        },
        "line": {"x": [n for n, _ in line], "y": [t for _, t in line]},
    }


def _extent(curves: Sequence[dict[str, Any]], axis: str) -> tuple[float, float]:
    values = [v for c in curves for v in c["raw"][axis]]
    return min(values), max(values)


def _log_view(curves: Sequence[dict[str, Any]], references: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """In powers of ten: the sizes measured, and what the references say of these."""
    left, right = _extent(curves, "x")
    shown = [v for c in curves for v in c["raw"]["y"] if v > 0]
    for r in references:
        shown += [t for n, t in zip(r["line"]["x"], r["line"]["y"], strict=True) if left <= n <= right]
    low, high = (min(shown), max(shown)) if shown else (0.1, 1.0)
    x, y = _padded(max(left, 1), max(right, 1), 0.06), _padded(low, high, 0.08)
    steps = (1, 2, 5) if y[1] - y[0] < _DECADES_WITH_STEPS else (1,)
    ticks = list(_round_numbers(10 ** y[0], 10 ** y[1], steps))
    return {"x": x, "y": y, "ticks": ticks, "labels": [units.tick(v) for v in ticks]}


def _round_numbers(low: float, high: float, steps: Sequence[int] = (1, 2, 5)) -> Iterator[float]:
    """1, 2, 5, 10, 20 ... and their fractions, from ``low`` to ``high``."""
    for decade in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        yield from (v for v in (step * 10.0**decade for step in steps) if low <= v <= high)


def _padded(low: float, high: float, share: float) -> list[float]:
    start, end = math.log10(low), math.log10(high)
    margin = max((end - start) * share, 0.05)
    return [start - margin, end + margin]
