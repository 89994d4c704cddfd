"""The order in which a run measures, and what of it fits the budget. Pure: no clock, nothing is started.

The first round calibrates. Every series runs once at its smallest size, and what its next sizes will take
is predicted from that, as if the time grew with the square. A series of one or two sizes says nothing about
growth. So rather than a little of everything, series are begun claim by claim until the budget is spent: of
a claim all sides on all interpreters, or none. The first claim is begun in any case: if the budget is too
small even for that, no interpreter gets less of it than another. The chosen series go on to larger sizes,
side by side, as long as ``ENOUGH`` samples of everything fit. What does not fit is put off until it is
known what the others leave, and then taken up, or dropped with a word. Then it is known, too, which claims
will have too few samples, and that is said (``shortfall``) before the next round. After that every cell
runs once per round, A B A B, and backwards in every other round, so that neither a drift nor a disturbance
falls on one of them alone, until all have ``ENOUGH`` samples.

What is left of the budget goes to the questions (``questions``): each further round measures the cells of the
one whose interval it is expected to narrow most per second; those of cells that no claim is about come last.
No question is asked for its verdict: to measure until an interval leaves a threshold would make it leave more
often than it should. Only cells of one round are paired, so that a question's cells are measured one right
after the other.

A run that is continued goes the same way again: what its file already holds is taken from there.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

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
_NAMED = 3
"""So many of those that lack samples are named."""
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


Asks = Callable[[Sequence[SeriesCells], Sequence[PlannedCell]], list[Question]]
"""Which questions the cells can answer that are kept."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The series that a claim brings in, on all interpreters; or one that no claim is about, likewise."""

    series: list[SeriesCells]
    beside: list[SeriesCells] = field(default_factory=list)
    """The claim's other series, which an earlier one has brought in: without them it says nothing."""
    start: int = 0
    """The rank at which it goes on."""


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
        questions: Asks = questions,
    ) -> None:
        self.series: list[SeriesCells] = [[PlannedCell(one, n) for n in one.sizes] for one in series]
        self._budget_s = budget_s
        self._used_s = used_s
        self._questions = questions
        self._kept: list[PlannedCell] = []
        self._calibrated = False
        self._able = [sizes for sizes in self.series if not sizes[0].series.skipped]
        self._whose = {cell: sizes[0].series for sizes in self._able for cell in sizes}
        self._asked = questions(self._able, list(self._whose))
        self._left_out: list[SeriesCells] = []

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

    def shortfall(self) -> str | None:
        """A line on what the budget leaves open, once the first round has been taken: how many claims get too
        few samples, of what, and with which budget none would. None if there is nothing to say."""
        short = list(self._left_out)
        if self._committed_s() > self._left_s() > 0:
            # the first claim alone is more than the budget has time for
            short += [sizes for sizes in self._able if sizes[0] in self._kept]
        if not short:
            return None
        out = {id(sizes[0].series) for sizes in short}
        claims = [one for one in self._asked if one.kind != "time"]
        lacking = sum(any(id(self._whose[cell]) in out for cell in one.cells) for one in claims)
        what = f"{lacking} of {len(claims)} claims" if lacking else f"{len(out)} of {len(self._able)} series"
        leads = [sizes[0].series for sizes in short]
        names = list(dict.fromkeys(f"{one.experiment} on {one.interpreter}" for one in leads))
        if len(names) > _NAMED:
            names[_NAMED - 1 :] = [f"{len(names) - _NAMED + 1} more"]
        typical_s = ENOUGH * self._typical_s()
        more = self._more_s(sum(self._opening_s(s) if s[0].begun else typical_s for s in self._left_out))
        few = f"{self._budget_s:g} s are too few for {what}, --budget {more}s would do"
        return f"{few}: fewer than {ENOUGH} samples of {', '.join(names)}"

    def _first_round(self) -> Iterator[PlannedSample]:
        for sizes in self.series:
            if sizes[0].series.skipped:
                yield PlannedSample(sizes[0], 0, sizes[0].series.skipped)
        chosen: list[SeriesCells] = []
        put_off: list[Batch] = []
        unopened: list[Batch] = []
        spoken_for_s = 0.0
        for number, batch in enumerate(self._claim_by_claim()):
            begun = any(0 in sizes[0].samples for sizes in batch.series) or number == 0
            over = self._used_s() >= _OPENING * self._budget_s
            expected_s = ENOUGH * self._typical_s() * len(batch.series)
            waits = any(sizes in other.series for other in put_off + unopened for sizes in batch.beside)
            if not begun and (over or waits or spoken_for_s + expected_s > self._left_s()):
                unopened.append(batch)
                continue
            tried: list[SeriesCells] = []
            for sizes in batch.series:
                if self._left_s() > 0 or 0 in sizes[0].samples:
                    tried += [sizes] * (yield from self._try(sizes, 0))
                else:
                    unopened.append(Batch([sizes]))
            opening_s = sum(map(self._opening_s, tried))
            grown = any(cell.begun for sizes in tried for cell in sizes[1:])
            if grown or number == 0 or spoken_for_s + opening_s <= self._left_s():
                spoken_for_s += opening_s
                chosen += tried
            else:
                put_off.append(Batch(tried, batch.beside, start=1))
        later = yield from self._grow(chosen)
        yield from self._take_up(later + put_off + unopened)

    def _claim_by_claim(self) -> list[Batch]:
        """The series of each claim but those that an earlier one has. Each claim comes on all interpreters:
        those of the short report, then the first other one of each experiment, then the second."""
        new = {id(sizes[0].series): sizes for sizes in self._able}
        old: dict[int, SeriesCells] = {}
        ranks: dict[str, int] = {}

        def rank(question: Question) -> tuple[bool, int, int]:
            series = {id(self._whose[cell]): self._whose[cell] for cell in question.cells}.values()
            sides = json.dumps([[one.experiment, one.params] for one in series], sort_keys=True)
            number = ranks.setdefault(sides, len(ranks))
            return question.kind == "time", question.place, number

        batches: list[Batch] = []
        for _, alike in itertools.groupby(sorted(self._asked, key=rank), rank):
            batch = Batch([])
            for question in alike:
                names = dict.fromkeys(id(self._whose[cell]) for cell in question.cells)
                batch.beside.extend(old[name] for name in names if name in old)
                batch.series.extend(new.pop(name) for name in names if name in new)
            old |= {id(sizes[0].series): sizes for sizes in batch.series}
            batches += [batch] * bool(batch.series)
        return batches

    def _grow(self, series: list[SeriesCells]) -> Generator[PlannedSample, None, list[Batch]]:
        """Go on to larger sizes, side by side; which series were put off, and at which rank."""
        self._kept += [sizes[0] for sizes in series]
        growing = [sizes for sizes in series if len(sizes) > 1]
        put_off: list[Batch] = []
        rank = 1
        while growing:
            # the cheap ones first: what they leave is known when the dear ones are decided
            for sizes in sorted(growing, key=lambda sizes: _predicted_s(sizes, rank)):
                if self._too_long(sizes, rank, len(growing)):
                    put_off.append(Batch([sizes], start=rank))
                    growing.remove(sizes)
                elif (yield from self._try(sizes, rank)):
                    self._kept.append(sizes[rank])
                    if rank + 1 == len(sizes):
                        growing.remove(sizes)
                else:
                    growing.remove(sizes)
            rank += 1
        return put_off

    def _take_up(self, put_off: list[Batch]) -> Iterator[PlannedSample]:
        """Give what is left over to what was put off, in order, and drop what it does not reach."""
        for batch in put_off:
            single = []
            alone = any(sizes in self._left_out for sizes in batch.beside)
            for sizes in batch.series:
                rank = batch.start
                while rank < len(sizes):
                    if reason := self._too_long(sizes, rank, 1 if rank else len(batch.series), alone):
                        yield from self._drop(sizes, rank, reason)
                        if sizes[0] not in self._kept:
                            self._left_out.append(sizes)
                        break
                    if not (yield from self._try(sizes, rank)):
                        break
                    if len(sizes) > 1:
                        self._kept += [cell for cell in sizes[: rank + 1] if cell not in self._kept]
                    rank += 1
                if rank == len(sizes) == 1:
                    single.append(sizes)
            # their one size has been tried: all sides of a claim can be repeated, or none
            fit = self._fits(sum((ENOUGH - len(sizes[0].samples)) * sizes[0].cost_s for sizes in single))
            if fit:
                self._kept += [sizes[0] for sizes in single]
            else:
                self._left_out += single

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

    def _too_long(self, sizes: SeriesCells, rank: int, competing: int, alone: bool = False) -> str | None:
        """Why a size does not fit the budget, of which ``competing`` series want a part; None if it does.

        ``alone``: what its times are to be divided by does not fit.
        """
        if 0 in sizes[rank].samples:
            return None
        needed = ENOUGH * (_predicted_s(sizes, rank) if rank else self._typical_s())
        if self._fits(needed * competing) and not alone:
            return None
        if rank == 0:
            more = self._more_s(ENOUGH * self._typical_s() * sum(not s[0].begun for s in self._able))
            return f"the budget was spent on what comes before; a --budget of {more}s may reach it"
        more = self._more_s(needed * competing)
        takes = f"{ENOUGH} samples of n={sizes[rank].n} take about {needed:.1f} s"
        return f"{takes}, more than the budget leaves; try --budget {more}s"

    def _fits(self, needed_s: float) -> bool:
        """Whether there is so much time beside what is to be measured already."""
        left_s = self._left_s()
        return left_s > 0 and needed_s <= left_s - self._committed_s()

    def _committed_s(self) -> float:
        """What it takes until all that is kept has ``ENOUGH`` samples."""
        return sum(max(0, ENOUGH - len(cell.samples)) * cell.cost_s for cell in self._kept)

    def _more_s(self, needed_s: float) -> int:
        """The budget with which there is so much time beside what is to be measured already."""
        return math.ceil(self._budget_s + needed_s + self._committed_s() - self._left_s())

    def _typical_s(self) -> float:
        """What a sample takes of a series that was not begun, if it is like the others."""
        return fmean([sizes[0].cost_s for sizes in self._able if sizes[0].begun] or [0.0])

    def _opening_s(self, sizes: SeriesCells) -> float:
        """The time still to be spent until so many sizes as tell something have ``ENOUGH`` samples."""
        least = sizes[0]
        telling = sizes[:_SIZES_THAT_TELL]
        whole = sum(ENOUGH * _grown_s(least, cell.n) for cell in telling)
        return whole - least.cost_s * len(least.samples)

    def _left_s(self) -> float:
        return self._budget_s - self._used_s()


def _predicted_s(sizes: SeriesCells, rank: int) -> float:
    """What a sample will take, judging by the size before it."""
    if rank == 0:
        return 0.0
    return _grown_s(sizes[rank - 1], sizes[rank].n)


def _grown_s(cell: PlannedCell, n: int) -> float:
    """What a sample of another size takes, if its measured part grows with the square, or in step."""
    sample, factor = cell.samples[0], n / cell.n
    elapsed, wall = sample.elapsed_s or 0.0, sample.wall_s or 0.0
    return max(0.0, elapsed - wall) + wall * factor ** (1 + cell.series.growth)
