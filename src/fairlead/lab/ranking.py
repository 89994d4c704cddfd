"""Which way of doing the same work is the best: the fastest within noise, at the least resources.

The rules are those that ``Standing`` states, and nothing else is looked at. Intervals that overlap are taken
for no difference: with five to fifteen samples each that errs towards "as fast", and then the processor time
decides, which noise hardly touches.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from fairlead.record.summary import Cell, Place, Ranking, Series, Standing, Subject

ABOUT_AS_MUCH = 1.1
"""Up to this ratio two processor times are no difference, and memory decides."""


def rankings(subjects: Iterable[Subject], series: Iterable[Series]) -> tuple[Ranking, ...]:
    """One for each group, number of tasks, interpreter and setting that more than one way was measured in."""
    groups = {subject.id: subject.group for subject in subjects if subject.group}
    alike: dict[str, list[tuple[Series, Cell]]] = {}
    for one in series:
        if group := groups.get(one.experiment):
            setting = {name: value for name, value in one.variant.items() if name != "case"}
            for cell in one.cells:
                key = json.dumps([group, cell.n, one.interpreter, setting], sort_keys=True, default=str)
                alike.setdefault(key, []).append((one, cell))
    return tuple(
        Ranking(
            group=groups[ways[0][0].experiment],
            n=ways[0][1].n,
            interpreter=ways[0][0].interpreter,
            places=_places(groups[ways[0][0].experiment], ways),
        )
        for ways in alike.values()
        if sum(cell.median is not None for _, cell in ways) > 1
    )


def _places(group: str, ways: Sequence[tuple[Series, Cell]]) -> tuple[Place, ...]:
    measured = [(one, cell) for one, cell in ways if cell.median is not None]
    fastest = min((cell for _, cell in measured), key=_median)
    reaching = [cell for _, cell in measured if _reaches(cell, fastest)]
    best = _cheapest(reaching) if reaching else None
    return tuple(
        Place(
            series=one,
            case=one.experiment.removeprefix(f"{group}-"),
            cell=cell,
            standing="best" if cell is best else _standing(cell, fastest),
            times=_median(cell) / _median(fastest),
        )
        for one, cell in measured
    )


def _standing(cell: Cell, fastest: Cell) -> Standing:
    if cell.low is None or fastest.high is None:
        return "undecided"
    return "as fast" if _reaches(cell, fastest) else "slower"


def _reaches(cell: Cell, fastest: Cell) -> bool:
    return cell.low is not None and fastest.high is not None and cell.low <= fastest.high


def _cheapest(cells: Sequence[Cell]) -> Cell:
    least = min(_cpu(cell) for cell in cells)
    return min((cell for cell in cells if _cpu(cell) <= ABOUT_AS_MUCH * least), key=_memory)


def _median(cell: Cell) -> float:
    assert cell.median is not None
    return cell.median


def _cpu(cell: Cell) -> float:
    return float("inf") if cell.cpu_s is None else cell.cpu_s


def _memory(cell: Cell) -> float:
    return float("inf") if cell.sum_rss_kb is None else cell.sum_rss_kb
