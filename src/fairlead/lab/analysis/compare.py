"""Runs side by side: what became faster, what slower, what stayed within a margin, and what cannot be said.

A side is a directory or file, of one run or of several (``lab run --repeat``). A run is a cluster: all of its
samples share an hour, a boot, a memory layout. So two runs of the same program differ by more than their
samples tell, and more samples do not help. Where each side has ``RUNS_ENOUGH`` runs of a cell or more, their
means are compared, by Welch's interval at 95 % (``measure.ratio.contrast``). Else the ratio and its interval
are those of these samples, and what runs differ by is added before anything is concluded: the spread between
the runs of cells that have enough of them, or ``FLOOR``. A cell is called faster or slower only if

* Welch's test says so at 5 % after Holm's correction for all the cells compared: without it one cell in
  twenty would be called changed. Holm's asks nothing of the cells, which are not independent.
* And the whole interval is beyond what the machine's speed accounts for: how much slower its cores were is
  known from the fixed loop before each sample.

Else it is within the least of ``MARGINS`` that holds the whole interval, which is the test of equivalence by
two one-sided tests, here at 2.5 % each; and undecided if none does. What of the two sides differs as a whole
is told by the mean of the series' ratios, each series one observation.

tests/property/test_compare_truth.py holds these rules to their error rates.
"""

from __future__ import annotations

import itertools
import json
import math
import string
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairlead.lab.analysis import pairs
from fairlead.lab.analysis.arrays import np
from fairlead.measure.ratio import FEWEST_ROUNDS, LEVEL, Contrast, contrast, paired, student
from fairlead.record.comparison import (
    CellChange,
    Change,
    ComparedRun,
    Comparison,
    Member,
    SeriesChange,
    Unmatched,
    WholeChange,
)
from fairlead.record.results import FINGERPRINT, PER_SERIES
from fairlead.record.summary import Cell, Series, Summary

SIGNIFICANT = 0.05
RUNS_ENOUGH = 3
"""So many runs a side tell by themselves what runs differ by."""
FLOOR = 0.05
"""What runs of the same program differ by where that was not measured: the standard deviation of a run's
level, as a logarithm."""
MARGINS = (1.1, 1.25, 1.5)
"""A ratio whose interval lies within one of these, and 1 over it, is no difference beyond that."""
_REPEAT = "repeat both runs with a larger --budget"
_KNOWN = 1000.0
"""Degrees of freedom of what was not measured but stated."""


def compare(runs: Sequence[tuple[str, Summary]]) -> Comparison:
    """Compare sides, cell by cell: each with the first that measured the same.

    Series are matched by experiment, parameters and the interpreter's name; where those leave exactly one
    series on each side, also across interpreters, so that a run on one can be compared with a run on another.

    Args:
        runs: at least two, each with its name, of one run or of several; the first is the base of all that it
            measured.
    """
    letters = [_letter(index) for index in range(len(runs))]
    subjects = {subject.id: subject for _, run in runs for subject in run.subjects}
    groups = _groups(letters, runs)
    order = list(subjects)
    shared = sorted(
        (group for group in groups if len(group) > 1),
        key=lambda group: order.index(group[0].series.experiment),
    )
    beside = [(group, list(_pairs(group))) for group in shared]
    contrasts = [_contrast(pair) for _, found in beside for pair in found]
    floor = _floor([one.series for group in shared for one in group])
    widened = [
        one and one.widened(*floor.between(pair))
        for one, pair in zip(contrasts, (pair for _, found in beside for pair in found), strict=True)
    ]
    corrected = holm([1.0 if one is None else one.p for one in widened])
    judged = iter(zip(contrasts, widened, corrected, strict=True))
    few = [pair for _, found in beside for pair in found if not pair.enough]
    speeds = _speeds(letters, runs)
    return Comparison(
        runs=tuple(
            ComparedRun(
                letter=letter,
                name=name,
                environment=run.environment,
                samples=run.samples,
                runs=run.runs,
                started=run.started,
            )
            for letter, (name, run) in zip(letters, runs, strict=True)
        ),
        series=tuple(
            SeriesChange(
                subject=subjects[group[0].series.experiment],
                variant=group[0].series.variant,
                members=tuple(group),
                cells=tuple(
                    _change(pair, *next(judged), speeds.get((pair.base, pair.run)), floor) for pair in found
                ),
            )
            for group, found in beside
            if found
        ),
        wholes=tuple(_wholes([found for _, found in beside], speeds)),
        unmatched=tuple(_unmatched(letters, groups)),
        differing=tuple(
            name
            for name in FINGERPRINT
            if name not in PER_SERIES
            and any(run.environment.get(name) != runs[0][1].environment.get(name) for _, run in runs)
        ),
        problems=(
            *(problem for _, run in runs for problem in run.problems),
            *(
                f"run {letter} comes from {run.environments} environments"
                for letter, (_, run) in zip(letters, runs, strict=True)
                if run.environments > 1
            ),
            *([floor.said(few[0])] if few else []),
        ),
    )


def _letter(index: int) -> str:
    """a, b ... z, aa, ab ..."""
    letters = string.ascii_lowercase
    return (_letter(index // len(letters) - 1) if index >= len(letters) else "") + letters[
        index % len(letters)
    ]


def holm(p: Sequence[float]) -> list[float]:
    """Corrected p values, in the order given (S. Holm, Scand. J. Statistics 6, 1979, 65-70)."""
    order = sorted(range(len(p)), key=p.__getitem__)
    corrected = [1.0] * len(p)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - rank) * p[index]))
        corrected[index] = largest
    return corrected


@dataclass(frozen=True, slots=True)
class _Pair:
    base: str
    base_cell: Cell
    run: str
    cell: Cell

    @property
    def runs(self) -> tuple[int, int]:
        """How many runs either side has of it."""
        return len(_runs(self.base_cell)), len(_runs(self.cell))

    @property
    def enough(self) -> bool:
        """Whether these tell what runs differ by."""
        return min(self.runs) >= RUNS_ENOUGH


def _runs(cell: Cell) -> list[list[float]]:
    """The values of each run, of a cell that names none those of one."""
    where = cell.rounds or ((0, 0),) * len(cell.values)
    return list(
        pairs.by_run(
            {(run, at): v for at, ((run, _), v) in enumerate(zip(where, cell.values, strict=True))}
        ).values()
    )


def _contrast(pair: _Pair) -> Contrast | None:
    """By the runs' geometric means if there are enough of them, else by the samples."""
    if pair.enough:
        first, second = (
            [math.exp(np.log(run).mean()) for run in _runs(one)] for one in (pair.base_cell, pair.cell)
        )
        return contrast(first, second)
    return contrast(pair.base_cell.values, pair.cell.values)


@dataclass(frozen=True, slots=True)
class _Floor:
    """What runs of the same thing differ by."""

    square: float
    """Of the standard deviation of a run's level, as a logarithm."""
    freedom: float

    def between(self, pair: _Pair) -> tuple[float, float]:
        """The variance that it adds to a ratio, none where that has it already; its degrees of freedom."""
        return (0.0 if pair.enough else self.square * sum(1 / runs for runs in pair.runs)), self.freedom

    def said(self, pair: _Pair) -> str:
        """The least difference that such a pair could show, in words."""
        square, _ = self.between(pair)
        least = math.exp(student(max(int(self.freedom), 1), LEVEL) * math.sqrt(square)) - 1
        first, second = pair.runs
        runs = "one run a side" if first == second == 1 else f"{first} and {second} runs"
        return (
            f"{runs} cannot tell less than {least * 100:.0f} %: fairlead lab run --repeat {RUNS_ENOUGH + 2}"
        )


def _floor(series: Sequence[Series]) -> _Floor:
    """Measured by the cells that have enough runs, or the default."""
    logs = [
        [float(np.log(run).mean()) for run in runs]
        for one in series
        for cell in one.cells
        if len(runs := _runs(cell)) >= RUNS_ENOUGH
    ]
    freedom = sum(len(own) - 1 for own in logs)
    if not freedom:
        return _Floor(FLOOR**2, _KNOWN)
    return _Floor(sum(float(np.var(own, ddof=1)) * (len(own) - 1) for own in logs) / freedom, freedom)


def _pairs(group: Sequence[Member]) -> Iterator[_Pair]:
    """Each measured cell beside that of the first member that has its size, size by size."""
    measured = [(member.run, {c.n: c for c in member.series.cells if c.values}) for member in group]
    for n in sorted({n for _, cells in measured for n in cells}):
        base, *others = [(run, cells[n]) for run, cells in measured if n in cells]
        for run, cell in others:
            yield _Pair(*base, run, cell)


def _change(
    pair: _Pair,
    found: Contrast | None,
    widened: Contrast | None,
    p: float,
    speed: float | None,
    floor: _Floor,
) -> CellChange:
    first, second = pair.base_cell.values, pair.cell.values
    change, within, advice = _judge(pair, found, widened, p, speed, floor)
    return CellChange(
        n=pair.cell.n,
        base=pair.base,
        run=pair.run,
        median_base=float(np.median(first)),
        median=float(np.median(second)),
        samples_base=len(first),
        samples=len(second),
        runs_base=pair.runs[0],
        runs=pair.runs[1],
        ratio=found.value if found else _ratio(pair),
        low=found.low if found else None,
        high=found.high if found else None,
        p=p,
        change=change,
        within=within,
        advice=advice,
    )


def _ratio(pair: _Pair) -> float:
    return math.exp(float(np.log(pair.cell.values).mean() - np.log(pair.base_cell.values).mean()))


def _judge(
    pair: _Pair,
    found: Contrast | None,
    widened: Contrast | None,
    p: float,
    speed: float | None,
    floor: _Floor,
) -> tuple[Change, float | None, str | None]:
    if (why := _unfit(pair)) is not None:
        return "undecided", None, why
    if found is None or widened is None:
        return "undecided", None, f"fewer than {FEWEST_ROUNDS} samples, or all alike: {_REPEAT}"
    if p <= SIGNIFICANT and widened.low > max(1.0, speed or 1.0):
        return "slower", None, None
    if p <= SIGNIFICANT and widened.high < min(1.0, speed or 1.0):
        return "faster", None, None
    for margin in MARGINS:
        if 1 / margin <= widened.low and widened.high <= margin:
            return "within", margin, None
    if p <= SIGNIFICANT and not widened.low <= 1 <= widened.high:
        return "undecided", None, f"the machine's speed may be all of it: {_REPEAT}"
    if not pair.enough and not found.low <= 1 <= found.high:
        return "undecided", None, floor.said(pair)
    return "undecided", None, f"a wide interval: {_REPEAT}"


def _unfit(pair: _Pair) -> str | None:
    """Why the samples of a cell are not to be compared."""
    both = ((pair.base, pair.base_cell), (pair.run, pair.cell))
    for name, cell in both:
        if len(cell.modes) > 1:
            return f"run {name} has two populations here: compare their modes, not the means"
    for name, cell in both:
        if why := pairs.disturbed(cell):
            return f"run {name} was {why}: repeat it on a quieter machine"
    return None


def _wholes(
    beside: Sequence[Sequence[_Pair]], speeds: Mapping[tuple[str, str], float]
) -> Iterator[WholeChange]:
    """What differs between two runs as a whole, from series that other load left alone."""
    logs: dict[tuple[str, str], list[float]] = {}
    for found in beside:
        of_series: dict[tuple[str, str], list[float]] = {}
        for pair in found:
            if _unfit(pair) is None:
                of_series.setdefault((pair.base, pair.run), []).append(math.log(_ratio(pair)))
        for names, its in of_series.items():
            logs.setdefault(names, []).append(sum(its) / len(its))
    for (base, run), its in sorted(logs.items(), key=lambda one: one[0][::-1]):
        if (ratio := paired([math.exp(log) for log in its], LEVEL)) is not None:
            yield WholeChange(
                base=base,
                run=run,
                series=ratio.rounds,
                ratio=ratio.value,
                low=ratio.low,
                high=ratio.high,
                speed=speeds.get((base, run)),
            )


def _speeds(letters: Sequence[str], runs: Sequence[tuple[str, Summary]]) -> dict[tuple[str, str], float]:
    """Of two runs on one machine: how many times as long the fixed loop before each sample took."""
    found = {}
    for (base, (_, one)), (letter, (_, other)) in itertools.combinations(zip(letters, runs, strict=True), 2):
        alike = all(
            one.environment.get(name) == other.environment.get(name)
            for name in FINGERPRINT
            if name not in PER_SERIES
        )
        if alike and one.conditions.spin_s and other.conditions.spin_s:
            found[base, letter] = other.conditions.spin_s / one.conditions.spin_s
    return found


def _unmatched(letters: Sequence[str], groups: Sequence[Sequence[Member]]) -> list[Unmatched]:
    """What one run alone has measured, run by run."""
    found = []
    for group in groups:
        counted = Counter(cell.n for member in group for cell in member.series.cells if cell.values)
        for member in group:
            sizes = tuple(cell.n for cell in member.series.cells if cell.values and counted[cell.n] == 1)
            if sizes or len(group) == 1:
                found.append(
                    Unmatched(
                        run=member.run,
                        experiment=member.series.experiment,
                        variant=member.series.variant,
                        label=member.series.label,
                        interpreter=member.series.interpreter,
                        sizes=sizes,
                    )
                )
    return sorted(found, key=lambda one: letters.index(one.run))


def _groups(letters: Sequence[str], runs: Sequence[tuple[str, Summary]]) -> list[list[Member]]:
    """The series of all runs, each with those of later runs that are the same; of each run one. With busy
    processes beside it, nothing is the same as without."""
    groups: list[list[Member]] = []
    busy = {letter: run.environment.get("beside") for letter, (_, run) in zip(letters, runs, strict=True)}
    for letter, (_, run) in zip(letters, runs, strict=True):
        alike = [index for index, group in enumerate(groups) if busy[group[0].run] == busy[letter]]
        mates, rest = _match([groups[index][0].series for index in alike], run.series)
        for index, series in mates:
            groups[alike[index]].append(Member(run=letter, series=series))
        groups += [[Member(run=letter, series=series)] for series in rest]
    return groups


def _match(known: Sequence[Series], new: Sequence[Series]) -> tuple[list[tuple[int, Series]], list[Series]]:
    """For which of the known series (by its index) there is a new one, by the strictest likeness first.

    What a likeness leaves ambiguous goes to the next; and what of the new ones is then left.
    """

    def alike(one: Series) -> tuple[str, str]:
        return one.experiment, json.dumps(one.variant, sort_keys=True)

    def name(one: Series) -> str:
        return str(one.interpreter.get("name"))

    likenesses: list[Callable[[Series], Hashable]] = [
        lambda one: (*alike(one), name(one), one.label),
        lambda one: (*alike(one), name(one)),
        alike,
    ]
    mates: list[tuple[int, Series]] = []
    free, rest = dict(enumerate(known)), dict(enumerate(new))
    for likeness in likenesses:
        by_likeness: dict[Hashable, tuple[list[int], list[int]]] = {}
        for side, series in enumerate((free, rest)):
            for index, one in series.items():
                by_likeness.setdefault(likeness(one), ([], []))[side].append(index)
        for ours, theirs in by_likeness.values():
            if len(ours) == len(theirs) == 1:
                del free[ours[0]]
                mates.append((ours[0], rest.pop(theirs[0])))
    return mates, list(rest.values())
