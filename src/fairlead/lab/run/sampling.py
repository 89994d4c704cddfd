"""The order in which a run measures, and what of it fits the budget. Pure: no clock, nothing is started.

The first round calibrates. Every series runs once at its smallest size, and what its next sizes will take
is predicted from that, as if the time grew with the square. A series of one or two sizes says nothing about
growth. So rather than a little of everything, series are chosen, interpreter by interpreter, until the
budget is spoken for. The chosen ones go on to larger sizes, side by side, as long as ``ENOUGH`` samples of
everything fit. What does not fit is put off until it is known what the others leave, and then taken up, or
dropped with a word. After that every cell runs once per round, A B A B, and backwards in every other round,
so that neither a drift nor a disturbance falls on one of them alone, until all have ``ENOUGH`` samples.

What is left of the budget goes to the questions (``questions``): each further round measures the cells of the
one whose interval it is expected to narrow most per second; those of cells that no claim is about come last.
No question is asked for its verdict: to measure until an interval leaves a threshold would make it leave more
often than it should. Only cells of one round are paired, so that a question's cells are measured one right
after the other.

A run that is continued goes the same way again: what its file already holds is taken from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from fairlead.lab.run.plan import PlannedSeries
from fairlead.lab.run.questions import Question, questions
from fairlead.record.sample import Sample

ENOUGH = 5
"""Samples of everything begun so far that must fit for one more size to be begun: with fewer a cell has no
interval worth its name, so that a size more would cost the others what they are worth."""
AT_MOST = 200
"""Samples of a cell."""
NARROW = 0.01
"""An interval of one per cent from end to end needs no further round."""
_SIZES_THAT_TELL = 3
"""A series is chosen if so many of its sizes fit."""
_OPENING = 0.3
"""The part of the budget after which no further series is looked at, as long as others are not done."""
_SHORTEST_S = 1e-3
_FAILURES = 2
"""Failures of an interpreter that never measured anything, after which it is left alone."""


@dataclass(eq=False, slots=True)
class PlannedCell:
    """One series at one size."""

    series: PlannedSeries
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

    @property
    def begun(self) -> bool:
        """Whether it was run, with whatever success."""
        return 0 in self.samples and self.samples[0].status != "skipped"


SeriesCells = list[PlannedCell]
"""The cells of one series, smallest first."""


@dataclass(frozen=True, slots=True)
class PlannedSample:
    """What comes next: a cell to be measured, or (``skip``) one to be recorded as not measured."""

    cell: PlannedCell
    round: int
    skip: str | None = None


class SampleOrder:
    """Yields planned samples. Between two the caller puts what was measured into ``cell.samples[round]``.

    Args:
        series: what is to be measured.
        budget_s: the time for it.
        used_s: tells how much of it has been used.
        questions: what more samples of the cells are for; by default each asks for its own time.
    """

    def __init__(
        self,
        series: tuple[PlannedSeries, ...],
        budget_s: float,
        used_s: Callable[[], float],
        questions: Callable[[Sequence[SeriesCells], Sequence[PlannedCell]], list[Question]] = questions,
    ) -> None:
        self.series: list[SeriesCells] = [[PlannedCell(one, n) for n in one.sizes] for one in series]
        self._budget_s = budget_s
        self._used_s = used_s
        self._questions = questions
        self._kept: list[PlannedCell] = []
        self._calibrated = False

    def planned(self) -> Iterator[PlannedSample]:
        """All samples of the run, in order."""
        yield from self._first_round()
        self._calibrated = True
        rank = {cell: rank for sizes in self.series for rank, cell in enumerate(sizes)}
        self._kept.sort(key=rank.__getitem__)
        for number in range(1, ENOUGH):
            cells = [cell for cell in self._kept if cell.worth_going_on]
            took_part = False
            for cell in reversed(cells) if number % 2 else cells:
                if number in cell.samples or cell.cost_s <= self._left_s():
                    took_part = True
                    yield PlannedSample(cell, number)
            if not took_part:
                return
        yield from self._most_narrowed_first()

    def _most_narrowed_first(self) -> Iterator[PlannedSample]:
        """Rounds of single questions, as long as one fits that is not narrow."""
        asked = self._questions(self.series, [cell for cell in self._kept if cell.worth_going_on])
        number = max((max(cell.samples) for cell in self._kept if cell.samples), default=0)
        width = {question: question.width() for question in asked}
        while True:
            able = [
                question
                for question in asked
                if width[question] > NARROW
                and question.cost_s <= self._left_s()
                and max(len(cell.samples) for cell in question.cells) < AT_MOST
                and all(cell.worth_going_on for cell in question.cells)
            ]
            if not able:
                return
            number += 1
            of_claims = [question for question in able if question.kind != "time"]
            next_one = max(
                of_claims or able,
                # widths fall with the root of the rounds
                key=lambda question: width[question] / question.rounds / (question.cost_s or _SHORTEST_S),
            )
            for cell in reversed(next_one.cells) if number % 2 else next_one.cells:
                yield PlannedSample(cell, number)
            touched = set(next_one.cells)
            width |= {q: q.width() for q in asked if touched.intersection(q.cells)}

    def outlook(self) -> tuple[int, float]:
        """How many samples are to come (0 in the first round, which finds that out), and their seconds."""
        left = self._left_s()
        cells = [cell for cell in self._kept if cell.worth_going_on]
        if not self._calibrated or not cells:
            return 0, max(0.0, left)
        round_s = sum(cell.cost_s for cell in cells)
        done = sum(len(cell.samples) for cell in cells)
        rounds_left = left / round_s if round_s else AT_MOST
        to_come = max(1, min(AT_MOST * len(cells) - done, int(rounds_left * len(cells))))
        return to_come, max(0.0, left)

    def _first_round(self) -> Iterator[PlannedSample]:
        able = [sizes for sizes in self.series if not sizes[0].series.skipped]
        for sizes in self.series:
            if sizes[0].series.skipped:
                yield PlannedSample(sizes[0], 0, sizes[0].series.skipped)
        order = {
            name: index
            for index, name in enumerate(dict.fromkeys(sizes[0].series.interpreter for sizes in able))
        }
        able.sort(key=lambda sizes: order[sizes[0].series.interpreter])

        opened: list[SeriesCells] = []
        unopened: list[SeriesCells] = []
        for sizes in able:
            if 0 not in sizes[0].samples and self._used_s() >= _OPENING * self._budget_s:
                unopened.append(sizes)
            elif (yield from self._try(sizes, 0)):
                opened.append(sizes)

        chosen: list[SeriesCells] = []
        spoken_for_s = 0.0
        for sizes in opened:
            opening_s = self._opening_s(sizes)
            if any(cell.begun for cell in sizes[1:]) or spoken_for_s + opening_s <= self._left_s():
                spoken_for_s += opening_s
                chosen.append(sizes)
        put_off = yield from self._grow(chosen)
        put_off += [(sizes, 1) for sizes in opened if sizes not in chosen]
        put_off += [(sizes, 0) for sizes in unopened]
        yield from self._take_up(put_off)

    def _grow(
        self, series: list[SeriesCells]
    ) -> Generator[PlannedSample, None, list[tuple[SeriesCells, int]]]:
        """Go on to larger sizes, side by side; which series were put off, and at which rank."""
        self._kept += [sizes[0] for sizes in series]
        growing = [sizes for sizes in series if len(sizes) > 1]
        put_off: list[tuple[SeriesCells, int]] = []
        rank = 1
        while growing:
            # the cheap ones first: what they leave is known when the dear ones are decided
            for sizes in sorted(growing, key=lambda sizes: _predicted_s(sizes, rank)):
                if self._too_long(sizes, rank, len(growing)):
                    put_off.append((sizes, rank))
                    growing.remove(sizes)
                elif (yield from self._try(sizes, rank)):
                    self._kept.append(sizes[rank])
                    if rank + 1 == len(sizes):
                        growing.remove(sizes)
                else:
                    growing.remove(sizes)
            rank += 1
        return put_off

    def _take_up(self, put_off: list[tuple[SeriesCells, int]]) -> Iterator[PlannedSample]:
        """Give what is left over to what was put off, in order, and drop what it does not reach."""
        for sizes, start in put_off:
            if start == len(sizes) == 1 and self._fits(ENOUGH * sizes[0].cost_s):
                # its one size has been tried, and can be repeated
                self._kept.append(sizes[0])
            rank = start
            while rank < len(sizes):
                reason = self._too_long(sizes, rank, 1)
                if reason:
                    yield from self._drop(sizes, rank, reason)
                    break
                if not (yield from self._try(sizes, rank)):
                    break
                self._kept += [cell for cell in sizes[: rank + 1] if cell not in self._kept]
                rank += 1

    def _try(self, sizes: SeriesCells, rank: int) -> Generator[PlannedSample, None, bool]:
        """Run one size for the first time; whether it was run, and not skipped for a reason."""
        cell = sizes[rank]
        reason = self._hopeless(sizes, rank)
        if reason is None:
            yield PlannedSample(cell, 0)
            if cell.begun:
                return True
            reason, rank = cell.samples[0].reason or "the size before it was skipped", rank + 1
        yield from self._drop(sizes, rank, reason)
        return False

    def _drop(self, sizes: SeriesCells, rank: int, reason: str) -> Iterator[PlannedSample]:
        for cell in sizes[rank:]:
            yield PlannedSample(cell, 0, reason)

    def _hopeless(self, sizes: SeriesCells, rank: int) -> str | None:
        """Why a size would only fail; None if it may not."""
        if 0 in sizes[rank].samples:
            return None
        name = sizes[rank].series.interpreter
        tried = [
            c.samples[0] for other in self.series for c in other if c.begun and c.series.interpreter == name
        ]
        if len(tried) >= _FAILURES and all(sample.status != "ok" for sample in tried):
            return f"{name} failed {len(tried)} times and never measured anything"
        if rank and (before := sizes[rank - 1].samples[0]).status != "ok":
            return f"the size before it, {sizes[rank - 1].n}, ended as {before.status}"
        return None

    def _too_long(self, sizes: SeriesCells, rank: int, competing: int) -> str | None:
        """Why a size does not fit the budget, of which ``competing`` series want a part; None if it does."""
        if 0 in sizes[rank].samples:
            return None
        needed = ENOUGH * _predicted_s(sizes, rank)
        if self._fits(needed * competing):
            return None
        if rank == 0:
            needed = self._unreached_s()
        more = math.ceil(self._budget_s + needed * competing + self._committed_s() - self._left_s())
        if rank == 0:
            return f"the budget was spent on what comes before; a --budget of {more}s may reach it"
        takes = f"{ENOUGH} samples of n={sizes[rank].n} take about {needed:.1f} s"
        return f"{takes}, more than the budget leaves; try --budget {more}s"

    def _fits(self, needed_s: float) -> bool:
        """Whether there is so much time beside what is to be measured already."""
        left_s = self._left_s()
        return left_s > 0 and needed_s <= left_s - self._committed_s()

    def _committed_s(self) -> float:
        """What it takes until all that is kept has ``ENOUGH`` samples."""
        return sum(max(0, ENOUGH - len(cell.samples)) * cell.cost_s for cell in self._kept)

    def _unreached_s(self) -> float:
        """What ``ENOUGH`` samples take of the series that were not begun, if they are like the others."""
        firsts = [sizes[0] for sizes in self.series if not sizes[0].series.skipped]
        begun = [cell for cell in firsts if cell.begun]
        each_s = median([cell.cost_s for cell in begun] or [0.0])
        return ENOUGH * each_s * (len(firsts) - len(begun))

    def _opening_s(self, sizes: SeriesCells) -> float:
        """The time still to be spent until so many sizes as tell something have ``ENOUGH`` samples."""
        least = sizes[0]
        telling = sizes[:_SIZES_THAT_TELL]
        whole = sum(ENOUGH * _grown_s(least.samples[0], cell.n / least.n) for cell in telling)
        return whole - least.cost_s * len(least.samples)

    def _left_s(self) -> float:
        return self._budget_s - self._used_s()


def _predicted_s(sizes: SeriesCells, rank: int) -> float:
    """What a sample will take, judging by the size before it."""
    if rank == 0:
        return 0.0
    return _grown_s(sizes[rank - 1].samples[0], sizes[rank].n / sizes[rank - 1].n)


def _grown_s(sample: Sample, factor: float) -> float:
    """What a sample of ``factor`` times the size takes, if its measured part grows with the square."""
    elapsed, wall = sample.elapsed_s or 0.0, sample.wall_s or 0.0
    return max(0.0, elapsed - wall) + wall * factor**2
