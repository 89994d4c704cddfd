"""What more samples are for: the cells that belong to one claim, and how wide its interval still is.

``sampling.SampleOrder`` gives the rest of the budget to the question whose interval another round of its
cells narrows most per second. A ratio's width is that of its paired interval. Of an exponent it is that of
Student's interval of the slopes of the single rounds, in time at ten times the size, so that both are ratios
of times. A cell that no claim is about asks for its own time.

A few rounds that agree may all have seen one of two modes, and would look narrow: below ``FEWEST_OF_TWO``
rounds a ratio is as wide as can be. With as many, one that has two modes has no interval to be narrowed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.lab.catalogue import registry
from fairlead.lab.catalogue.declared import Declared

if TYPE_CHECKING:
    from fairlead.lab.catalogue.registry import Experiment
    from fairlead.lab.run.sampling import PlannedCell, SeriesCells


_UNKNOWN = 100.0
"""The width of what may have two modes: more than any interval has."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Cells that are measured together."""

    cells: tuple[PlannedCell, ...]
    kind: str
    """"ratio" (of the first cell over the second), "exponent", or "time" (of each by itself)."""
    over_metric: str = ""
    """Of the first cell, what is divided by in place of the second cell's."""
    metric: str = ""
    """What it is about in place of the time."""
    place: int = 0
    """Which come first: 0 of the claims of the short report, of others their place among those of their
    experiment, and last what no claim is about."""

    @property
    def cost_s(self) -> float:
        """What a round of it takes."""
        return sum(cell.cost_s for cell in self.cells)

    @property
    def rounds(self) -> int:
        """How many it has been measured in."""
        return min(len(cell.samples) for cell in self.cells)

    def width(self) -> float:
        """Of the interval, as a logarithm; infinite without one."""
        # these need numpy, which not every command does
        from fairlead.lab.analysis.claims import FEWEST_OF_TWO
        from fairlead.lab.analysis.modes import boundary
        from fairlead.measure.ratio import half_width

        rounds = [self._values(cell, self.metric) for cell in self.cells]
        common = sorted(set.intersection(*(set(one) for one in rounds)))
        match self.kind:
            case "ratio" if self.over_metric:
                under = self._values(self.cells[0], self.over_metric)
                logs = [math.log(rounds[0][r] / under[r]) for r in common if r in under]
            case "ratio":
                logs = [math.log(rounds[0][r] / rounds[1][r]) for r in common]
            case "exponent":
                x = [math.log(cell.n) for cell in self.cells]
                middle = sum(x) / len(x)
                spread = sum((one - middle) ** 2 for one in x)
                slopes = [
                    sum((one - middle) * math.log(values[r]) for one, values in zip(x, rounds, strict=True))
                    / spread
                    for r in common
                ]
                logs = [slope * math.log(10) for slope in slopes]
            case _:
                logs = [math.log(rounds[0][r]) for r in common]
        width = 2 * half_width(logs)
        if self.kind != "ratio" or not math.isfinite(width):
            return width
        if len(logs) < FEWEST_OF_TWO:
            return max(width, _UNKNOWN)
        return 0.0 if boundary([math.exp(one) for one in logs]) else width

    def _values(self, cell: PlannedCell, metric: str = "") -> dict[int, float]:
        """By round; of the samples that were measured."""
        value = metric or _value(cell.series.experiment)
        found = {
            number: sample.metric(value) if value else sample.wall_s
            for number, sample in cell.samples.items()
            if sample.status == "ok"
        }
        return {number: one for number, one in found.items() if one}


def _value(experiment: str) -> str | None:
    known = registry.catalogue().get(experiment)
    return known.value if known else None


def questions(series: Sequence[SeriesCells], kept: Sequence[PlannedCell]) -> list[Question]:
    """Those of the claims that the kept cells can settle, and one for each cell that none is about."""
    by_name: dict[str, list[SeriesCells]] = {}
    for sizes in series:
        by_name.setdefault(sizes[0].series.interpreter, []).append(sizes)
    asked = [
        question
        for its in by_name.values()
        for name, experiment in _declaring(its).items()
        for number, declared in enumerate(experiment.claims, 1)
        for question in _question(name, declared, 0 if declared.main else number, its, kept)
    ]
    covered = {cell for question in asked for cell in question.cells}
    return asked + [Question((cell,), "time") for cell in kept if cell not in covered]


def _declaring(series: Sequence[SeriesCells]) -> dict[str, Experiment]:
    """The experiments among them, those of one group once."""
    known = registry.catalogue()
    found: dict[str, Experiment] = {}
    for sizes in series:
        if experiment := known.get(sizes[0].series.experiment):
            found.setdefault(experiment.subject.group or experiment.id, experiment)
    return found


def _question(
    name: str, declared: Declared, place: int, series: Sequence[SeriesCells], kept: Sequence[PlannedCell]
) -> Iterator[Question]:
    from fairlead.lab.analysis import claims

    alive = set(kept)

    def side(wanted: dict[str, object]) -> list[PlannedCell]:
        experiment = wanted.get(claims.ANY_OF_GROUP, name)
        found = []
        for sizes in series:
            known = registry.catalogue().get(sizes[0].series.experiment)
            own = (known.id, known.subject.group) if known else ()
            if experiment in own and claims.fits(wanted, sizes[0].series.params):
                found.append(sizes)
        nearest = min(found, key=lambda sizes: claims.further(wanted, sizes[0].series.params), default=[])
        return [cell for cell in nearest if cell in alive]

    of = side(declared.of)
    if declared.kind == "exponent":
        if len(of) > 1:
            yield Question(tuple(of), "exponent", place=place)
        return
    pair = claims.cells_of(declared, of, of if declared.over_metric else side(declared.over))
    if pair is not None and (declared.over_metric or pair[0] is not pair[1]):
        cells = (pair[0],) if declared.over_metric else pair
        yield Question(cells, "ratio", declared.over_metric, declared.metric, place)
