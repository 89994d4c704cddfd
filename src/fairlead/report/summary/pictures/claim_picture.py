"""A claim as a small picture: two bars for a ratio, the curve for an exponent."""

from __future__ import annotations

from html import escape

from fairlead.record.summary import Claim, Summary
from fairlead.report.common import names, plot, units, words
from fairlead.report.summary import claims
from fairlead.report.summary.pictures import curves

_WIDTH, _ROW, _BAR, _LABEL = 560.0, 46.0, 18.0, 16.0


def svg(claim: Claim, summary: Summary, roster: names.Roster) -> str:
    """The picture; empty where there is nothing to draw."""
    if claim.kind == "exponent":
        return _curve(claim, summary, roster)
    return _bars(claim) if claim.sides else ""


def _curve(claim: Claim, summary: Summary, roster: names.Roster) -> str:
    subject = next((one for one in summary.subjects if one.id == claim.experiment), None)
    series = next(
        (
            one
            for one in summary.series
            if one.experiment == claim.experiment
            and one.interpreter == claim.interpreter
            and one.fit.exponent == claim.value
            and words.measured(one)
        ),
        None,
    )
    if subject is None or series is None:
        return ""
    data = curves.panel(subject, [series], roster)
    return plot.svg(data, claims.sentence(claim)) if data else ""


def _bars(claim: Claim) -> str:
    """The two times to scale, and what was published beside ours."""
    longest = max(side.median for side in claim.sides)
    height = len(claim.sides) * _ROW
    parts = [
        f'<svg class="pair" viewBox="0 0 {_WIDTH:g} {height:g}" role="img"'
        f' aria-label="{escape(claims.sentence(claim))}">'
    ]
    for row, side in enumerate(claim.sides):
        top = row * _ROW
        width = max(2.0, side.median / longest * (_WIDTH - 90))
        what = escape(names.clean(side.what))
        parts.append(f'<text class="what" x="0" y="{top + _LABEL - 5:g}">{what}</text>')
        kind = "side" if row == 0 else "side other"
        parts.append(
            f'<rect class="{kind}" x="0" y="{top + _LABEL + 4:g}" width="{width:.1f}"'
            f' height="{_BAR:g}" rx="2"/>'
        )
        parts.append(
            f'<text class="time" x="{width + 8:.1f}" y="{top + _LABEL + 4 + _BAR / 2:g}">'
            f"{units.metric(side.median, side.unit)}</text>"
        )
    return "".join([*parts, "</svg>"])
