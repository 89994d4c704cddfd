"""A curve of times over sizes, drawn: one picture in SVG, with colours from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT = 560.0, 330.0
_LEFT, _RIGHT, _TOP, _BOTTOM, _LEGEND = 62.0, 14.0, 12.0, 44.0, 19.0
MARKS = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
    "M-4.5-4.5h9v9h-9z",
    "M0-6.5L6.5 0L0 6.5L-6.5 0z",
    "M0-6L6 5H-6z",
    "M0 6L6-5H-6z",
    "M-2-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
    "M-6-3.2L-3.2-6L0-2.8L3.2-6L6-3.2L2.8 0L6 3.2L3.2 6L0 2.8L-3.2 6L-6 3.2L-2.8 0z",
    "M0-7L1.7-2.2L6.7-2.2L2.7 .9L4.1 5.7L0 2.8L-4.1 5.7L-2.7 .9L-6.7-2.2L-1.7-2.2z",
)
"""The interpreters' marks, in plots and tables."""


def svg(panel: dict[str, Any], label: str) -> str:
    """A panel of ``figures`` on two logarithmic axes, where a power of n is a straight line.

    Args:
        panel: the data.
        label: what the picture shows, for readers who cannot see it.
    """
    view = panel["view"]
    (left, right), (low, high) = view["x"], view["y"]
    legend = list(_legend(panel))
    height = HEIGHT + 6 + len(legend) * _LEGEND

    def x(n: float) -> float:
        return float(_LEFT + (math.log10(n) - left) / (right - left) * (WIDTH - _LEFT - _RIGHT))

    def y(seconds: float) -> float:
        share = (math.log10(seconds) - low) / (high - low)
        return float(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM))

    def inside(n: float, seconds: float) -> bool:
        return n > 0 and seconds > 0 and left <= math.log10(n) <= right and low <= math.log10(seconds) <= high

    parts = [
        f'<svg class="curve" viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="{escape(label)}">',
        *_axes(panel, x, y),
    ]
    for number, reference in enumerate(panel["references"]):
        points = zip(reference["line"]["x"], reference["line"]["y"], strict=True)
        parts.append(_line(points, x, y, inside, _reference(number)))
        for n, seconds, text in _zip(reference["points"]):
            if inside(n, seconds):
                title = f"{reference['name']}, {text}"
                parts.append(
                    f'<circle class="reference" cx="{x(n):.1f}" cy="{y(seconds):.1f}" r="3">'
                    f"<title>{title}</title></circle>"
                )
    for curve in panel["curves"]:
        parts += _curve(curve, x, y, inside)
    for row, (style, sample) in enumerate(legend):
        middle = HEIGHT + 6 + (row + 0.5) * _LEGEND
        parts.append(f'<g class="legend" transform="translate({_LEFT:g} {middle:g})"{style}>{sample}</g>')
    return "".join([*parts, "</svg>"])


def _legend(panel: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Of each line its style, and a sample of it with its name."""
    for curve in panel["curves"]:
        line = "fit" if curve["fit"]["x"] else "fit none"
        yield (
            f' style="--mark: var(--c{curve["index"] % 8})"',
            f'<line class="{line}" x2="26"/>'
            f'<path transform="translate(13 0)" d="{MARKS[curve["index"] % len(MARKS)]}"/>'
            f'<text x="34">{curve["legend"]}</text>',
        )
    for number, reference in enumerate(panel["references"]):
        yield (
            "",
            f'<line class="{_reference(number)}" x2="26"/><circle class="reference" cx="13" r="3"/>'
            f'<text x="34">{reference["legend"]}</text>',
        )


def _reference(number: int) -> str:
    """The class of a published line, so that several can be told apart."""
    return f"reference r{number % 3}"


def _axes(panel: dict[str, Any], x: Any, y: Any) -> Iterator[str]:
    bottom = HEIGHT - _BOTTOM
    for tick, text in zip(panel["view"]["ticks"], panel["view"]["labels"], strict=True):
        yield f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
        yield f'<text class="tick" x="{_LEFT - 7}" y="{y(tick):.1f}">{escape(text)}</text>'
    last = -math.inf
    for n in panel["sizes"]:
        yield f'<line class="grid" x1="{x(n):.1f}" x2="{x(n):.1f}" y1="{_TOP}" y2="{bottom}"/>'
        if x(n) - last > 40:
            last = x(n)
            yield f'<text class="tick size" x="{x(n):.1f}" y="{bottom + 14}">{n}</text>'
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    yield f'<text class="axis" x="{middle}" y="{HEIGHT - 6}">{panel["size"]}</text>'


def _curve(curve: dict[str, Any], x: Any, y: Any, inside: Any) -> Iterator[str]:
    colour = f'style="--mark: var(--c{curve["index"] % 8})"'
    yield f"<g {colour}>"
    yield _line(zip(curve["fit"]["x"], curve["fit"]["y"], strict=True), x, y, inside, "fit")
    if not curve["fit"]["x"]:
        medians = zip(curve["median"]["x"], curve["median"]["y"], strict=True)
        yield _line(medians, x, y, inside, "fit none")
    for n, seconds in zip(curve["raw"]["x"], curve["raw"]["y"], strict=True):
        if inside(n, seconds):
            yield f'<circle class="raw" cx="{x(n):.1f}" cy="{y(seconds):.1f}" r="2"/>'
    median = curve["median"]
    for n, seconds, up, down, text in zip(
        median["x"], median["y"], median["up"], median["down"], median["text"], strict=True
    ):
        if not inside(n, seconds):
            continue
        top, bottom = y(seconds + up), y(max(seconds - down, seconds / 10))
        yield f'<line class="span" x1="{x(n):.1f}" x2="{x(n):.1f}" y1="{top:.1f}" y2="{bottom:.1f}"/>'
        yield (
            f'<path class="median" transform="translate({x(n):.1f} {y(seconds):.1f})"'
            f' d="{MARKS[curve["index"] % len(MARKS)]}"><title>{curve["name"]}, {escape(text)}</title></path>'
        )
    for n, seconds in zip(curve["modes"]["x"], curve["modes"]["y"], strict=True):
        yield f'<circle class="mode" cx="{x(n):.1f}" cy="{y(seconds):.1f}" r="6"/>'
    yield "</g>"


def _line(points: Any, x: Any, y: Any, inside: Any, kind: str) -> str:
    at = " ".join(f"{x(n):.1f},{y(seconds):.1f}" for n, seconds in points if inside(n, seconds))
    return f'<polyline class="{kind}" points="{at}"/>' if at else ""


def _zip(points: dict[str, Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    return zip(points["x"], points["y"], points["text"], strict=True)
