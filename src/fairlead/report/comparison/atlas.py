"""The atlas: what many machines say to each claim, one picture a claim.

A picture has one row for each machine and interpreter, with the value and its interval on an axis that all of
them share, the claim's threshold as a line, and what was published as diamonds. The page has no script and
loads nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from fairlead.record.summary import Claim, Published, Summary
from fairlead.report.common import names, units, words
from fairlead.report.common.assets import page

_ROW, _LABEL, _LEFT, _RIGHT, _WIDTH, _FOOT = 44.0, 15.0, 8.0, 86.0, 560.0, 26.0
_MARKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000)
_MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class _Row:
    place: str
    """The machine and the interpreter."""
    claim: Claim


def render(runs: Sequence[tuple[str, Summary]]) -> str:
    """The page, for light and dark, from 360 pixels of width upwards.

    Args:
        runs: each with its name, which is told where two were measured on machines of one name.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    hosts = [str(summary.environment.get("hostname") or name) for name, summary in runs]
    rows: dict[tuple[str, str], list[_Row]] = {}
    again = {name: command for _, summary in reversed(runs) for name, command in summary.again.items()}
    for (name, summary), host in zip(runs, hosts, strict=True):
        machine = host if hosts.count(host) == 1 else f"{host} ({name})"
        roster = {
            interpreter.record.get("path"): interpreter.label for interpreter in names.Roster(summary.series)
        }
        for claim in summary.claims:
            label = roster.get(claim.interpreter.get("path"), names.label(claim.interpreter))
            row = _Row(names.clean(f"{machine}, {label}"), claim)
            rows.setdefault((claim.experiment, claim.topic), []).append(row)
    return page(
        "atlas.html",
        "fairlead lab: an atlas of machines",
        styles=["atlas.css"],
        machines=[
            (host, summary.environment, summary.samples, name)
            for (name, summary), host in zip(runs, hosts, strict=True)
        ],
        claims=[_claim(number, found, again) for number, found in enumerate(rows.values(), 1)],
    )


def _claim(number: int, rows: Sequence[_Row], again: Mapping[str, str]) -> dict[str, object]:
    from markupsafe import Markup

    first = rows[0].claim
    verdicts = [row.claim.verdict for row in rows]
    counted = ", ".join(f"{verdicts.count(one)} {one}" for one in dict.fromkeys(verdicts))
    return {
        "id": f"claim-{number}",
        "picture": Markup(_svg(rows)),
        "topic": names.clean(first.topic),
        "experiment": names.clean(first.experiment),
        "says": names.clean(first.text),
        "verdicts": f"{len(rows)} {'measurement' if len(rows) == 1 else 'measurements'}: {counted}",
        "rows": [
            {
                "place": row.place,
                "value": _value(row.claim, row.claim.value),
                "interval": words.bounds(row.claim.low, row.claim.high),
                "verdict": row.claim.verdict,
                "said": names.clean(row.claim.text),
            }
            for row in rows
        ],
        "published": [(names.clean(one.label), _value(first, one.value)) for one in _sources(rows)],
        "command": names.clean(again.get(first.experiment, "")),
    }


def _sources(rows: Sequence[_Row]) -> list[Published]:
    return list(dict.fromkeys(one for row in rows for one in row.claim.published))


def _value(claim: Claim, number: float | None) -> str:
    return words.power(number) if claim.kind == "exponent" else units.factor(number)


def _svg(rows: Sequence[_Row]) -> str:
    """One row for each measurement, with an axis below."""
    claim = rows[0].claim
    published = [one.value for one in _sources(rows)]
    told = [n for row in rows for n in (row.claim.value, row.claim.low, row.claim.high) if n is not None]
    axis = _Axis([*told, *published, claim.threshold], logarithmic=claim.kind == "ratio")
    foot = len(rows) * _ROW
    height = foot + _FOOT
    title = escape(f"{names.clean(claim.topic)}: {len(rows)} measurements with their intervals")
    parts = [f'<svg class="atlas" viewBox="0 0 {_WIDTH:g} {height:g}" role="img" aria-label="{title}">']
    for at in axis.ticks():
        x = axis.at(at)
        parts.append(f'<path class="grid" d="{_through(x, len(rows))}"/>')
        parts.append(f'<text class="tick" x="{x}" y="{foot + 14:g}">{escape(_value(claim, at))}</text>')
    x = axis.at(claim.threshold)
    parts.append(f'<path class="threshold" d="{_through(x, len(rows))}"/>')
    for number, row in enumerate(rows):
        top = number * _ROW
        middle = top + _LABEL + 12
        kind = row.claim.verdict.split()[0]
        parts.append(f'<text x="{_LEFT:g}" y="{top + _LABEL - 4:g}">{escape(row.place)}</text>')
        for one in published:
            x = axis.at(one)
            parts.append(f'<path class="published" d="M{x} {middle - 5:g}l5 5l-5 5l-5 -5z"/>')
        low, high, value = row.claim.low, row.claim.high, row.claim.value
        if low is not None and high is not None:
            ends = f'x1="{axis.at(low)}" x2="{axis.at(high)}"'
            parts.append(f'<line class="span {kind}" {ends} y1="{middle:g}" y2="{middle:g}"/>')
        if value is not None:
            parts.append(f'<circle class="{kind}" cx="{axis.at(value)}" cy="{middle:g}" r="4.5"/>')
        label = escape(_value(row.claim, value))
        parts.append(f'<text class="value" x="{_WIDTH:g}" y="{middle:g}">{label}</text>')
    return "".join([*parts, "</svg>"])


def _through(x: float, rows: int) -> str:
    """A vertical line that leaves out the rows' names."""
    return "".join(f"M{x} {row * _ROW + _LABEL + 2:g}v{_ROW - _LABEL - 4:g}" for row in range(rows))


class _Axis:
    """From the least to the greatest of what it has to show, with a little room at both ends."""

    def __init__(self, shown: Sequence[float], *, logarithmic: bool) -> None:
        self._logarithmic = logarithmic
        ends = sorted(self._of(one) for one in shown if one > 0 or not logarithmic)
        room = max(0.06 * (ends[-1] - ends[0]), 0.05)
        self._low, self._high = ends[0] - room, ends[-1] + room

    def _of(self, value: float) -> float:
        return math.log10(max(value, 1e-9)) if self._logarithmic else value

    def at(self, value: float) -> float:
        """Where it is, in the units of the picture."""
        share = (self._of(value) - self._low) / (self._high - self._low)
        return round(_LEFT + min(1.0, max(0.0, share)) * (_WIDTH - _LEFT - _RIGHT), 1)

    def ticks(self) -> list[float]:
        marks: Sequence[float] = _MARKS if self._logarithmic else [n / 4 for n in range(-8, 25)]
        found = [mark for mark in marks if self._low <= self._of(mark) <= self._high]
        return found[:: max(1, math.ceil(len(found) / _MOST_TICKS))]
