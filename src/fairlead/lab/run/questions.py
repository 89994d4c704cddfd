"""What more samples are for: the cells that belong to one claim, and how wide its interval still is.

``sampling.SampleOrder`` gives the rest of the budget to the question whose interval another round of its
cells narrows most per second. A ratio's width is that of its paired interval. Of an exponent it is that of
Student's interval of the slopes of the single rounds, in time at ten times the size, so that both are ratios
of times. A cell that no claim is about asks for its own time.
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


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Cells that are measured together."""

    cells: tuple[PlannedCell, ...]
    kind: str
    """"ratio" (of the first cell over the second), "exponent", or "time" (of each by itself)."""
    metric: str = ""
    """What it is about in place of the time."""
    over_metric: str = ""
    """Of the first cell, what is divided by in place of the second cell's."""
    main: bool = False
    """Whether it is that of a claim of the short report."""

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
        from fairlead.lab.analysis.statistics import half_width  # needs numpy, which not every command does

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
        return 2 * half_width(logs)

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
        for declared in experiment.claims
        for question in _question(name, declared, its, kept)
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
    name: str, declared: Declared, series: Sequence[SeriesCells], kept: Sequence[PlannedCell]
) -> Iterator[Question]:
    from fairlead.lab.analysis import claims

    alive = set(kept)

    def side(wanted: dict[str, object]) -> list[PlannedCell]:
        experiment = wanted.get(claims.ANY_OF_GROUP, name)
        for sizes in series:
            known = registry.catalogue().get(sizes[0].series.experiment)
            own = (known.id, known.subject.group) if known else ()
            if experiment in own and claims.fits(wanted, sizes[0].series.params):
                return [cell for cell in sizes if cell in alive]
        return []

    of = side(declared.of)
    if declared.kind == "exponent":
        if len(of) > 1:
            yield Question(tuple(of), "exponent", main=declared.main)
        return
    pair = claims.cells_of(declared, of, of if declared.over_metric else side(declared.over))
    if pair is not None and (declared.over_metric or pair[0] is not pair[1]):
        cells = (pair[0],) if declared.over_metric else pair
        yield Question(cells, "ratio", declared.metric, declared.over_metric, declared.main)
