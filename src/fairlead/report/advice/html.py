"""An advice as one HTML page: the answer, the curve over workers, the table, and code to paste.

The page loads nothing and runs nothing: the curve is drawn here, as SVG whose colours the style sheet gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from fairlead.record.advice import NAMES, Advice, Curve, headline
from fairlead.report.advice import text
from fairlead.report.common import names, units
from fairlead.report.common.assets import page

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 62, 150, 16, 46
"""Around the field, in the units of the picture."""
COLOURS = {"threads": "c0", "processes": "c1", "interpreters": "c2", "async": "c3"}


def render(advice: Advice) -> str:
    """The page, for light and dark, from 360 pixels of width upwards.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    work = advice.work
    return page(
        "advice.html",
        f"Advice for {names.clean(advice.target)}",
        styles=["advice.css"],
        advice=advice,
        headline=names.clean(headline(advice)),
        subject=names.clean(text.subject(advice)),
        made=names.moment(advice.made),
        caveats=text.caveats(advice),
        rows=[(one, text.row(one, advice)) for one in advice.candidates if one.total_s is not None],
        reasons=[(text.label(one, advice), one) for one in advice.candidates if one.reason],
        picture=_picture(advice),
        shares=[
            ("gil", "on a core, with the GIL", work.gil),
            ("free", "on a core, without the GIL", work.free),
            ("waiting", "waiting", work.waiting),
        ],
        code="\n".join(map(text.plain, advice.code.splitlines())),
    )


@dataclass(frozen=True, slots=True)
class Line:
    """One kind in the picture."""

    name: str
    colour: str
    points: tuple[tuple[float, float, str], ...]
    """(x, y, what it says)"""
    path: str
    """From point to point."""
    label: tuple[float, float]


@dataclass(frozen=True, slots=True)
class SpeedupChart:
    """Speed-up over workers, both axes in powers of two."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    lines: tuple[Line, ...]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]
    one: float
    """The height of a speed-up of one."""


def _picture(advice: Advice) -> SpeedupChart | None:
    curves = [curve for curve in advice.curves if len(curve.points) > 1]
    if not curves:
        return None
    ups = [x / curve.points[0][1] for curve in curves for _, x in curve.points]
    most = max(n for curve in curves for n, _ in curve.points)
    low, high = min(0.0, math.log2(min(ups))), max(1.0, math.log2(max(ups)))
    low = max(low, high - 12)
    span = math.log2(most) or 1.0

    def x(workers: float) -> float:
        return round(LEFT + math.log2(workers) / span * (WIDTH - LEFT - RIGHT), 1)

    def y(up: float) -> float:
        share = (math.log2(max(up, 2**low)) - low) / (high - low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    lines = [_line(curve, x, y) for curve in curves]
    step = max(1, math.ceil((high - low) / 6))
    marks = range(math.ceil(low / step) * step, math.floor(high) + 1, step)
    counts = sorted({n for curve in curves for n, _ in curve.points})
    return SpeedupChart(
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        right=WIDTH - RIGHT,
        top=TOP,
        bottom=HEIGHT - BOTTOM,
        lines=tuple(_apart(lines)),
        across=tuple((x(n), str(n)) for n in counts),
        up=tuple((y(2.0**mark), units.factor(2.0**mark) if mark < 0 else f"x{2**mark}") for mark in marks),
        one=y(1.0),
    )


def _line(curve: Curve, x: Callable[[float], float], y: Callable[[float], float]) -> Line:
    first = curve.points[0][1]
    points = tuple((x(n), y(rate / first), f"{n}: {units.factor(rate / first)}") for n, rate in curve.points)
    return Line(
        name=NAMES[curve.kind], colour=COLOURS.get(curve.kind, "c7"), points=points,
        path=" ".join(f"{px},{py}" for px, py, _ in points), label=(points[-1][0] + 10, points[-1][1]),
    )  # fmt: skip


def _apart(lines: list[Line]) -> list[Line]:
    """The same with their names a line's height from each other."""
    placed = []
    lowest = -math.inf
    for line in sorted(lines, key=lambda one: one.label[1]):
        height = max(line.label[1], lowest + 16)
        lowest = height
        placed.append(replace(line, label=(line.label[0], height)))
    return placed
