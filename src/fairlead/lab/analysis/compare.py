"""Runs side by side: what became faster, what slower, what stayed within a margin, and what cannot be said.

For each cell that two of them have: the ratio of the geometric means with Welch's interval at 95 %
(``statistics.contrast``). A cell is called faster or slower only if all of these hold:

* Welch's test says so at 5 % after Holm's correction for all the cells compared: without it one cell in
  twenty would be called changed. Holm's asks nothing of the cells, which are not independent.
* The whole interval is beyond 2 %, since two runs of the same program on the same machine differ by as much
  (criterion.rs has such a threshold, at 1 %).
* And beyond what the machine's speed accounts for. A run is a cluster: all of its samples share the hour
  it was made in. How much slower its cores were is known from the fixed loop before each sample; on the same
  machine the 2 % count from the loop's ratio.

Else it is within the least of ``MARGINS`` that holds the whole interval, which is the test of equivalence by
two one-sided tests, here at 2.5 % each; and undecided if none does. What of the two runs differs as a whole
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

from fairlead.lab.analysis.arrays import np
from fairlead.lab.analysis.statistics import (
    FEWEST_ROUNDS,
    FOREIGN_LIMIT,
    LEVEL,
    Contrast,
    contrast,
    paired,
)
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
NEGLIGIBLE = 1.02
"""Ratios that may be closer to 1 than this are no change."""
MARGINS = (1.1, 1.25, 1.5)
"""A ratio whose interval lies within one of these, and 1 over it, is no difference beyond that."""
_REPEAT = "repeat both runs with a larger --budget"


def compare(runs: Sequence[tuple[str, Summary]]) -> Comparison:
    """Compare runs, cell by cell: each with the first that measured the same.

    Series are matched by experiment, parameters and the interpreter's name; where those leave exactly one
    series on each side, also across interpreters, so that a run on one can be compared with a run on another.

    Args:
        runs: at least two, each with its name; the first is the base of all that it measured.
    """
    letters = [_letter(index) for index in range(len(runs))]
    subjects = {subject.id: subject for _, run in runs for subject in run.subjects}
    groups = _groups(letters, runs)
    order = list(subjects)
    shared = sorted(
        (group for group in groups if len(group) > 1),
        key=lambda group: order.index(group[0].series.experiment),
    )
    pairs = [(group, list(_pairs(group))) for group in shared]
    contrasts = [contrast(pair.base_cell.values, pair.cell.values) for _, found in pairs for pair in found]
    corrected = holm([1.0 if one is None else one.p for one in contrasts])
    judged = iter(zip(contrasts, corrected, strict=True))
    speeds = _speeds(letters, runs)
    return Comparison(
        runs=tuple(
            ComparedRun(
                letter=letter,
                name=name,
                environment=run.environment,
                samples=run.samples,
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
                    _change(pair, *next(judged), speeds.get((pair.base, pair.run))) for pair in found
                ),
            )
            for group, found in pairs
            if found
        ),
        wholes=tuple(_wholes([found for _, found in pairs], speeds)),
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


def _pairs(group: Sequence[Member]) -> Iterator[_Pair]:
    """Each measured cell beside that of the first member that has its size, size by size."""
    measured = [(member.run, {c.n: c for c in member.series.cells if c.values}) for member in group]
    for n in sorted({n for _, cells in measured for n in cells}):
        base, *others = [(run, cells[n]) for run, cells in measured if n in cells]
        for run, cell in others:
            yield _Pair(*base, run, cell)


def _change(pair: _Pair, found: Contrast | None, p: float, speed: float | None) -> CellChange:
    first, second = pair.base_cell.values, pair.cell.values
    change, within, advice = _judge(pair, found, p, speed)
    return CellChange(
        n=pair.cell.n,
        base=pair.base,
        run=pair.run,
        median_base=float(np.median(first)),
        median=float(np.median(second)),
        samples_base=len(first),
        samples=len(second),
        ratio=_ratio(pair),
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
    pair: _Pair, found: Contrast | None, p: float, speed: float | None
) -> tuple[Change, float | None, str | None]:
    if (why := _unfit(pair)) is not None:
        return "undecided", None, why
    if found is None:
        return "undecided", None, f"fewer than {FEWEST_ROUNDS} samples, or all alike: {_REPEAT}"
    if p <= SIGNIFICANT and found.low > NEGLIGIBLE * max(1.0, speed or 1.0):
        return "slower", None, None
    if p <= SIGNIFICANT and found.high < min(1.0, speed or 1.0) / NEGLIGIBLE:
        return "faster", None, None
    for margin in MARGINS:
        if 1 / margin <= found.low and found.high <= margin:
            return "within", margin, None
    if p <= SIGNIFICANT and speed is not None and not 1 / NEGLIGIBLE < speed < NEGLIGIBLE:
        return "undecided", None, f"the machine's speed may be all of it: {_REPEAT}"
    return "undecided", None, f"a wide interval: {_REPEAT}"


def _unfit(pair: _Pair) -> str | None:
    """Why the samples of a cell are not to be compared."""
    both = ((pair.base, pair.base_cell), (pair.run, pair.cell))
    for name, cell in both:
        if len(cell.modes) > 1:
            return f"run {name} has two populations here: compare their modes, not the means"
    for name, cell in both:
        if (share := cell.foreign_share or 0) > FOREIGN_LIMIT:
            return (
                f"other processes took {share * 100:.0f} % of the cores in run {name}: "
                "repeat it on a quieter machine"
            )
    return None


def _wholes(
    pairs: Sequence[Sequence[_Pair]], speeds: Mapping[tuple[str, str], float]
) -> Iterator[WholeChange]:
    """What differs between two runs as a whole, from series that other load left alone."""
    logs: dict[tuple[str, str], list[float]] = {}
    for found in pairs:
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
