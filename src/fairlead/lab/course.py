"""The order in which a run measures, and what of it fits the budget. Pure: no clock, nothing is started.

The first round runs every series at rising sizes, side by side. It calibrates: from the smaller sizes of a
series the next one's time is predicted, as if it grew with the square. A size that would not leave its
series the time for ``ENOUGH`` samples of everything is put off, and dropped with a word if nobody else
leaves the time for it. Then every cell runs once per round, A B A B, and backwards in every other round, so
that neither a drift nor a disturbance falls on one of them alone.

A run that is continued goes the same way again: what its file already holds is taken from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from statistics import median

from fairlead.lab.plan import Series
from fairlead.record.sample import Sample

ENOUGH = 3
"""Samples of everything begun so far that must fit for one more size to be begun. More would be better for
each cell, but a series shows how it grows by the number of its sizes rather than by samples of a few."""
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
        growing = [line for line in self.lines if not line[0].series.skipped]
        for line in self.lines:
            if line not in growing:
                yield Turn(line[0], 0, line[0].series.skipped)
        postponed: list[tuple[list[Cell], int]] = []
        rank = 0
        while growing:
            # the cheap ones first: what they leave is known when the dear ones are decided
            for line in sorted(growing, key=lambda line: _predicted_s(line, rank)):
                if self._too_long(line, rank, len(growing)):
                    postponed.append((line, rank))
                    growing.remove(line)
                elif not (yield from self._try(line, rank)):
                    growing.remove(line)
            rank += 1
        # what others left unused may be enough after all
        for waiting, (line, start) in enumerate(postponed):
            for rank in range(start, len(line)):
                reason = self._too_long(line, rank, len(postponed) - waiting)
                if reason:
                    yield from self._drop(line, rank, reason)
                    break
                if not (yield from self._try(line, rank)):
                    break

    def _try(self, line: list[Cell], rank: int) -> Generator[Turn, None, bool]:
        """Measure one size for the first time; whether the next larger one may be thought of."""
        cell = line[rank]
        reason = self._hopeless(line, rank)
        if reason is None:
            yield Turn(cell, 0)
            sample = cell.samples[0]
            if sample.status != "skipped":
                self._kept.append(cell)
                return rank + 1 < len(line)
            reason, rank = sample.reason or "the size before it was skipped", rank + 1
        yield from self._drop(line, rank, reason)
        return False

    def _drop(self, line: list[Cell], rank: int, reason: str) -> Iterator[Turn]:
        for cell in line[rank:]:
            yield Turn(cell, 0, reason)

    def _hopeless(self, line: list[Cell], rank: int) -> str | None:
        """Why a size would only fail; None if it may not."""
        if 0 in line[rank].samples:
            return None
        name = line[rank].series.interpreter
        tried = [cell.samples[0] for cell in self._kept if cell.series.interpreter == name]
        if len(tried) >= _FAILURES and all(sample.status != "ok" for sample in tried):
            return f"not begun: {name} failed {len(tried)} times and never measured anything"
        if rank and (before := line[rank - 1].samples[0]).status != "ok":
            return f"not begun: the size before it, {line[rank - 1].n}, ended as {before.status}"
        return None

    def _too_long(self, line: list[Cell], rank: int, competing: int) -> str | None:
        """Why a size does not fit the budget, of which ``competing`` series want a part; None if it does."""
        if 0 in line[rank].samples:
            return None
        left = self._left_s()
        if rank == 0:
            return None if left > 0 else "not begun: the budget was used up; give a larger --budget"
        committed = sum((ENOUGH - len(cell.samples)) * cell.cost_s for cell in self._kept)
        needed = ENOUGH * _predicted_s(line, rank)
        if needed <= (left - committed) / competing:
            return None
        more = math.ceil(self._budget_s + needed * competing + committed - left)
        return f"not begun: {needed:.1f} s for {ENOUGH} samples do not fit; a --budget of {more}s may do"

    def _left_s(self) -> float:
        return self._budget_s - self._used_s()


def _predicted_s(line: list[Cell], rank: int) -> float:
    """What a sample will take, if since the size before its measured part grows with the square."""
    if rank == 0:
        return 0.0
    sample = line[rank - 1].samples[0]
    elapsed, wall = sample.elapsed_s or 0.0, sample.wall_s or 0.0
    return max(0.0, elapsed - wall) + wall * (line[rank].n / line[rank - 1].n) ** 2
