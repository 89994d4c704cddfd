"""Which way of doing the same work is the best: the fastest within noise, at the least resources.

The rules are those that ``Standing`` states, and nothing else is looked at. Each way is held against the
fastest by the ratio of their times, paired by run and round. Noise makes that interval wide, and a wide one
says "undecided" and not "as fast": more noise never makes more ways the best.

An interpreter and the free-threaded build of its version stand in one table, for a reader who chooses between
threads and processes can choose between these two as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fairlead.lab.analysis import pairs
from fairlead.measure.ratio import over_runs
from fairlead.record.summary import Cell, Place, Ranking, Series, Standing, Subject

ABOUT_AS_MUCH = 1.1
"""Up to this ratio two processor times are no difference, and memory decides."""

WRONG = "wrong_answers"
"""The metric that says how many answers were wrong, of experiments that look at them."""

AS_FAST = 1.1
"""A way whose time is surely less than this many times that of the fastest is as fast."""

FEWEST = 5
"""With fewer rounds nothing is ranked."""

SeriesCell = tuple[Series, Cell]


def rankings(subjects: Iterable[Subject], series: Iterable[Series]) -> tuple[Ranking, ...]:
    """One for each group, number of tasks, version and setting that more than one way was measured in."""
    return tuple(
        Ranking(
            group=subject.group,
            n=ways[0][1].n,
            interpreter=ways[0][0].interpreter,
            places=_places(subject, ways),
            label=_setting(subject, ways[0][0]),
        )
        for subject, ways in _alike(subjects, series)
        if len(ways) > 1
    )


def sped_up(subjects: Sequence[Subject], series: Sequence[Series]) -> list[Series]:
    """The same series; those of subjects with a ``base`` with the metric "speed_up".

    It is the median time of the base over that of the way, with the same number of tasks: the base on the
    interpreter with a GIL, if that was measured, else on the free-threaded build.
    """
    found: dict[tuple[int, int], float] = {}
    for subject, ways in _alike(subjects, series):
        bases = (cell for one, cell in ways if subject.base and one.variant.get(subject.ways) == subject.base)
        if base := next(bases, None):
            found |= {(id(one), cell.n): _median(base) / _median(cell) for one, cell in ways}
    return [
        replace(
            one,
            cells=tuple(
                replace(cell, metrics={**cell.metrics, "speed_up": found[id(one), cell.n]})
                if (id(one), cell.n) in found
                else cell
                for cell in one.cells
            ),
        )
        for one in series
    ]


def _alike(
    subjects: Iterable[Subject], series: Iterable[Series]
) -> Iterator[tuple[Subject, list[SeriesCell]]]:
    """The ways of doing the same work that were measured, those with a GIL first."""
    grouped = {subject.id: subject for subject in subjects if subject.group}
    alike: dict[str, dict[str, list[SeriesCell]]] = {}
    for one in series:
        if subject := grouped.get(one.experiment):
            setting = {name: value for name, value in one.variant.items() if name != subject.ways}
            for cell in one.cells:
                if cell.median is not None:
                    work = _text([subject.group, cell.n, setting])
                    alike.setdefault(work, {}).setdefault(_text(one.interpreter), []).append((one, cell))
    for by_interpreter in alike.values():
        for ways in _with_free_threaded(list(by_interpreter.values())):
            yield grouped[ways[0][0].experiment], ways


def _with_free_threaded(measured: Sequence[list[SeriesCell]]) -> list[list[SeriesCell]]:
    """What was measured by interpreter, that of a free-threaded build behind that of the one of its version,
    if there is just one."""
    tables = [ways for ways in measured if not _free_threaded(ways[0][0])]
    versions = [_version(ways[0][0]) for ways in tables]
    for ways in measured:
        if _free_threaded(ways[0][0]):
            version = _version(ways[0][0])
            if versions.count(version) == 1:
                tables[versions.index(version)] += ways
            else:
                tables.append(ways)
    return tables


def _text(thing: object) -> str:
    return json.dumps(thing, sort_keys=True, default=str)


def _version(one: Series) -> list[str]:
    """What an interpreter and its free-threaded build have in common: "3.13"."""
    return str(one.interpreter.get("version")).split(".")[:2]


def _free_threaded(one: Series) -> bool:
    return bool(one.interpreter.get("free_threaded"))


def _places(subject: Subject, ways: Sequence[SeriesCell]) -> tuple[Place, ...]:
    right = [cell for _, cell in ways if not cell.metrics.get(WRONG)]
    fastest = min(right or [cell for _, cell in ways], key=_median)
    standings = {id(cell): _standing(cell, fastest) for _, cell in ways}
    reaching = [cell for cell in right if standings[id(cell)] == "as fast"]
    best = None if "undecided" in standings.values() or not reaching else _cheapest(reaching)
    return tuple(
        Place(
            series=one,
            case=_case(subject, one),
            cell=cell,
            standing="best" if cell is best else standings[id(cell)],
            times=_median(cell) / _median(fastest),
        )
        for one, cell in ways
    )


def _case(subject: Subject, one: Series) -> str:
    case = str(one.variant.get(subject.ways))
    return f"free-threaded {case}" if _free_threaded(one) else case


def _setting(subject: Subject, one: Series) -> str:
    way = str(one.variant.get(subject.ways))
    return ", ".join(part for part in one.label.split(", ") if part != way)


def _standing(cell: Cell, fastest: Cell) -> Standing:
    if cell.metrics.get(WRONG):
        return "wrong"
    if pairs.disturbed(cell) or pairs.disturbed(fastest):
        return "undecided"
    if cell is fastest:
        return "as fast" if len(cell.values) >= FEWEST else "undecided"
    runs = pairs.by_run(pairs.ratios(pairs.by_round(cell), pairs.by_round(fastest)))
    ratio = over_runs(list(runs.values()))
    if ratio is None or ratio.rounds < FEWEST:
        return "undecided"
    if ratio.low > 1:
        return "slower"
    return "as fast" if ratio.high < AS_FAST else "undecided"


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
