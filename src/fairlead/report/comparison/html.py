"""Runs side by side as one HTML page: ratios with their intervals on one axis, then every cell in figures.

The page has no script and loads nothing; it is a table throughout, in which a column is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from fairlead.record.comparison import CellChange, Comparison, SeriesChange
from fairlead.report.common import units, words
from fairlead.report.common.assets import page
from fairlead.report.comparison import sentences

_WIDEST = 6.0
"""Ratios are drawn up to 2 to this power, and down to 1 over that; beyond it the axis ends."""

_MARKS = ((0.5, (1.1, 1.25)), (1.3, (1.5, 2)), (2.6, (2, 4)), (_WIDEST, (4, 16)))
"""How far the axis reaches (in powers of 2), and what is marked on either side of 1."""


def render(comparison: Comparison) -> str:
    """The page, for light and dark, from 360 pixels of width upwards.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    axis = _Axis([cell for series in comparison.series for cell in series.cells])
    sections = [
        _section(number, list(group), axis)
        for number, (_, group) in enumerate(
            groupby(comparison.series, key=lambda series: series.subject), start=1
        )
    ]
    return page(
        "comparison.html",
        "fairlead lab: runs compared",
        comparison=comparison,
        tally=list(sentences.tally(comparison)),
        differing=list(sentences.differing(comparison)),
        unmatched=[sentences.unmatched(one) for one in comparison.unmatched],
        ticks=axis.ticks,
        sections=sections,
    )


class _Axis:
    """Ratios on a logarithmic axis that holds all intervals, as far as ``_WIDEST`` lets it."""

    def __init__(self, cells: Sequence[CellChange]) -> None:
        drawn = [end for cell in cells for end in (cell.low, cell.ratio, cell.high) if end is not None]
        ends = [abs(math.log2(end)) for end in drawn]
        self._reach = min(_WIDEST, max([0.25, *ends]) * 1.08)
        marks = next(marks for reach, marks in _MARKS if self._reach <= reach)
        ratios = [*(1 / mark for mark in reversed(marks)), 1.0, *marks]
        self.ticks = [(self.at(ratio), f"{ratio:.2g}") for ratio in ratios]

    def at(self, ratio: float) -> float:
        """Where a ratio is, in per cent of the axis from its left end."""
        share = (math.log2(ratio) / self._reach + 1) / 2
        return round(100 * min(1.0, max(0.0, share)), 2)


def _section(number: int, group: Sequence[SeriesChange], axis: _Axis) -> dict[str, Any]:
    return {
        "id": f"experiment-{number}",
        "subject": group[0].subject,
        "series": [_series(series, axis) for series in group],
    }


def _series(series: SeriesChange, axis: _Axis) -> dict[str, Any]:
    largest = max(cell.n for cell in series.cells)
    rows = [
        {
            "n": n,
            "base": cells[0].base,
            "median_base": cells[0].median_base,
            "cells": [_cell(cell, axis) for cell in cells],
        }
        for n, group in groupby(series.cells, key=lambda cell: cell.n)
        for cells in [list(group)]
    ]
    return {
        "participants": sentences.participants(series),
        "rows": rows,
        "largest": next(row for row in rows if row["n"] == largest),
        "fits": [(member.run, words.fit(member.series.fit)) for member in series.members]
        if series.subject.growth
        else [],
        "undecided": list(sentences.undecided(series)),
    }


def _cell(cell: CellChange, axis: _Axis) -> dict[str, Any]:
    low, high = (None if end is None else axis.at(end) for end in (cell.low, cell.high))
    return {
        "cell": cell,
        "ratio": units.digits(cell.ratio),
        "bounds": units.interval(cell.low, cell.high),
        "p": words.p_value(cell.p),
        "called": sentences.called(cell),
        "kind": cell.change if cell.change in ("faster", "slower") else "same",
        "at": axis.at(cell.ratio),
        "low": low,
        "width": None if low is None or high is None else round(high - low, 2),
    }
