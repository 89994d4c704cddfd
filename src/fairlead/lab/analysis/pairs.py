"""Which samples may be held against each other: those of the same run and round, left alone by others."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.record.sample import DISTURBED
from fairlead.record.summary import Cell, RunRound


def by_round(cell: Cell) -> dict[RunRound, float]:
    """The values of a cell; of several of one round the last."""
    return dict(zip(cell.rounds, cell.values, strict=True))


def by_run(values: Mapping[RunRound, float]) -> dict[int, list[float]]:
    """The values of each run, by its number."""
    runs: dict[int, list[float]] = {}
    for (run, _), value in sorted(values.items()):
        runs.setdefault(run, []).append(value)
    return runs


def ratios(of: Mapping[RunRound, float], over: Mapping[RunRound, float]) -> dict[RunRound, float]:
    """Of the rounds that have both."""
    return {where: of[where] / over[where] for where in sorted(of.keys() & over.keys())}


def disturbed(cell: Cell) -> str | None:
    """Why nothing can be concluded from a cell's samples; None if others left them alone."""
    if cell.disturbed is None or cell.disturbed <= DISTURBED:
        return None
    return f"disturbed: others took {cell.disturbed * 100:.0f} % of its time"
