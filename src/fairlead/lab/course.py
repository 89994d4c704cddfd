"""The order in which a run measures, and what of it fits the budget. Pure: no clock, nothing is started.

The first round runs every series at rising sizes, side by side. It calibrates: from the smaller sizes of a
series the next one's time is predicted, as if it grew with the square, and a size that would not leave its
series the time for ``ENOUGH`` samples of everything is dropped, with a word. Then every cell runs once per
round, A B A B, and backwards in every other round, so that neither a drift nor a disturbance falls on one
of them alone.

A run that is continued goes the same way again: what its file already holds is taken from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median

from fairlead.lab.plan import Series
from fairlead.record.sample import Sample

ENOUGH = 5
"""Samples of everything begun so far that must fit for one more size to be begun."""
AT_MOST = 30
"""Samples of a cell; more would not narrow an interval enough to be worth their time."""
_FAILURES = 2
"""Failures of an interpreter that never measured anything, after which it is left alone."""


@dataclass(eq=False, slots=True)
class Cell:
    """One series at one size."""

    series: Series
    n: int
    samples: dict[int, Sample] = field(default_factory=dict)
    """By round."""

    @property
    def cost_s(self) -> float:
        """What a sample of it takes, by the samples so far."""
        return median(sample.elapsed_s or 0.0 for sample in self.samples.values())

    @property
    def worth_going_on(self) -> bool:
        """Whether it has been measured, and mostly with success."""
        good = sum(sample.status == "ok" for sample in self.samples.values())
        return good > len(self.samples) - good


@dataclass(frozen=True, slots=True)
class Turn:
    """What comes next: a cell to be measured, or (``skip``) one to be recorded as not measured."""

    cell: Cell
    round: int
    skip: str | None = None


class Course:
    """Yields turns; between two of them the caller puts the sample into ``turn.cell.samples[turn.round]``.

    Args:
        series: what is to be measured.
        budget_s: the time for it.
        used_s: tells how much of it has been used.
    """

    def __init__(self, series: tuple[Series, ...], budget_s: float, used_s: Callable[[], float]) -> None:
        self.lines = [[Cell(one, n) for n in one.sizes] for one in series]
        self._budget_s = budget_s
        self._used_s = used_s
        self._kept: list[Cell] = []

    def turns(self) -> Iterator[Turn]:
        """All turns of the run, in order."""
        yield from self._first_round()
        for number in range(1, AT_MOST):
            cells = [cell for cell in self._kept if cell.worth_going_on]
            took_part = False
            for cell in reversed(cells) if number % 2 else cells:
                if number in cell.samples or cell.cost_s <= self._left_s():
                    took_part = True
                    yield Turn(cell, number)
            if not took_part:
                return

    def outlook(self) -> tuple[int, float]:
        """How many samples are still to come, and how many seconds they will take, as far as it is known."""
        left = self._left_s()
        cells = [cell for cell in self._kept if cell.worth_going_on]
        round_s = sum(cell.cost_s for cell in cells)
        begun = sum(1 for line in self.lines for cell in line if cell.samples)
        if not cells or begun < sum(map(len, self.lines)):
            return 0, left
        done = sum(len(cell.samples) for cell in cells)
        rounds_left = left / round_s if round_s else AT_MOST
        to_come = max(1, min(AT_MOST * len(cells) - done, int(rounds_left * len(cells))))
        return to_come, min(left, to_come * round_s / len(cells))

    def _first_round(self) -> Iterator[Turn]:
        open_lines = list(self.lines)
        for line in self.lines:
            if line[0].series.skipped:
                open_lines.remove(line)
                yield Turn(line[0], 0, line[0].series.skipped)
        rank = 0
        while open_lines:
            # the cheap ones first: what they leave is known when the dear ones are decided
            for line in sorted(open_lines, key=lambda line: _predicted_s(line, rank)):
                cell = line[rank]
                reason = None if 0 in cell.samples else self._why_not(line, rank, len(open_lines))
                if reason is None:
                    yield Turn(cell, 0)
                    if cell.samples[0].status != "skipped":
                        self._kept.append(cell)
                        if rank + 1 < len(line):
                            continue
                    else:
                        reason = cell.samples[0].reason
                for dropped in line[rank:] if reason else ():
                    yield Turn(dropped, 0, reason)
                open_lines.remove(line)
            rank += 1

    def _why_not(self, line: list[Cell], rank: int, competing: int) -> str | None:
        """Why a size is not begun; None if it is."""
        series = line[rank].series
        tried = [cell.samples[0] for cell in self._kept if cell.series.interpreter == series.interpreter]
        if len(tried) >= _FAILURES and all(sample.status != "ok" for sample in tried):
            return f"not begun: {series.interpreter} failed {len(tried)} times and never measured anything"
        if rank and (before := line[rank - 1].samples[0]).status != "ok":
            return f"not begun: the size before it, {line[rank - 1].n}, ended as {before.status}"
        left = self._left_s()
        if rank == 0:
            return None if left > 0 else "not begun: the budget was used up; give a larger --budget"
        committed = sum((ENOUGH - len(cell.samples)) * cell.cost_s for cell in self._kept)
        needed = ENOUGH * _predicted_s(line, rank)
        if needed <= (left - committed) / competing:
            return None
        more = self._budget_s + needed * competing + committed - left
        return f"not begun: {needed:.1f} s for {ENOUGH} samples do not fit; a --budget of {more:.0f}s may do"

    def _left_s(self) -> float:
        return self._budget_s - self._used_s()


def _predicted_s(line: list[Cell], rank: int) -> float:
    """What a sample will take, if since the size before its measured part grows with the square."""
    if rank == 0:
        return 0.0
    sample = line[rank - 1].samples[0]
    elapsed, wall = sample.elapsed_s or 0.0, sample.wall_s or 0.0
    return max(0.0, elapsed - wall) + wall * (line[rank].n / line[rank - 1].n) ** 2
