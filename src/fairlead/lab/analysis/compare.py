"""Runs side by side: what became faster, what slower, and what cannot be said.

For each cell that two of them have: the ratio of the medians with a bootstrap interval (how much), the U test
of Mann and Whitney (is it chance), and Cliff's delta (how clearly apart). A change is called by name only
if all three of these hold: the test says so at 5 % after Holm's correction for all the cells compared, the
interval leaves out 1, and the ratio is beyond 2 %, since two runs of the same program on the same machine
differ by as much (criterion.rs has the same threshold, at 1 %). One cell in twenty would be called changed
without the correction; Holm's is chosen because it asks nothing of the cells, which are not independent.

The U test rather than Welch's t test: times are skewed and a mean of 5 to 15 of them is at the mercy of one.
It is exact when no two times are equal, from the counts of all arrangements (the coefficients of the
Gaussian binomial), and normal with corrections for ties and continuity otherwise.
"""

from __future__ import annotations

import json
import math
import string
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from fairlead.lab.analysis.arrays import np
from fairlead.lab.analysis.modes import FEWEST
from fairlead.lab.analysis.statistics import FOREIGN_LIMIT, ends, positive, resampled_medians
from fairlead.record.comparison import (
    CellChange,
    Change,
    ComparedRun,
    Comparison,
    Member,
    SeriesChange,
    Unmatched,
)
from fairlead.record.results import FINGERPRINT, PER_SERIES
from fairlead.record.summary import Cell, Series, Summary

SIGNIFICANT = 0.05
NEGLIGIBLE = 1.02
"""Ratios closer to 1 than this are no change."""
_EXACT = 50
"""Up to so many samples a side the exact distribution is counted out; it takes milliseconds."""


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
    raw = [u_test(pair.base_cell.values, pair.cell.values) for _, found in pairs for pair in found]
    corrected = iter(holm(raw))
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
                cells=tuple(_change(pair, next(corrected), len(raw)) for pair in found),
            )
            for group, found in pairs
            if found
        ),
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


def u_test(a: Sequence[float], b: Sequence[float]) -> float:
    """The two-sided p of the U test of Mann and Whitney (Ann. Math. Stat. 18, 1947, 50-60) for two samples.

    Raises:
        UsageError: a sample holds something other than times, or nothing.
    """
    first, second = positive(a), positive(b)
    m, n = len(first), len(second)
    if not m or not n:
        return 1.0
    u = _u(first, second)
    extreme = max(u, m * n - u)
    _, ties = np.unique(np.concatenate([first, second]), return_counts=True)
    if ties.max() == 1 and max(m, n) <= _EXACT:
        counts = _arrangements(m, n)
        return min(1.0, 2 * sum(counts[math.ceil(extreme) :]) / math.comb(m + n, m))
    total = m + n
    variance = m * n / 12 * (total + 1 - float((ties**3 - ties).sum()) / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    return min(1.0, math.erfc((extreme - m * n / 2 - 0.5) / math.sqrt(2 * variance)))


def cliffs_delta(a: Sequence[float], b: Sequence[float]) -> float:
    """How much more often a value of b is above one of a than below it: -1 (never above) to 1 (always).

    Norman Cliff, Dominance statistics, Psychological Bulletin 114, 1993, 494-509.
    """
    first, second = positive(a), positive(b)
    return 2 * _u(first, second) / (len(first) * len(second)) - 1


def holm(p: Sequence[float]) -> list[float]:
    """Corrected p values, in the order given (S. Holm, Scand. J. Statistics 6, 1979, 65-70)."""
    order = sorted(range(len(p)), key=p.__getitem__)
    corrected = [1.0] * len(p)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - rank) * p[index]))
        corrected[index] = largest
    return corrected


def _u(first: np.ndarray, second: np.ndarray) -> float:
    """In how many pairs the second's value is above the first's, ties counting half; both ascending."""
    below = np.searchsorted(first, second, side="left").sum()
    not_above = np.searchsorted(first, second, side="right").sum()
    return float(below + not_above) / 2


@cache
def _arrangements(m: int, n: int) -> tuple[int, ...]:
    """How many of the arrangements of m and n distinct values have each U, from 0 to m * n."""
    counts = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for u in range(m * n, n + i - 1, -1):  # times 1 - q**(n + i)
            counts[u] -= counts[u - n - i]
        for u in range(i, m * n + 1):  # divided by 1 - q**i
            counts[u] += counts[u - i]
    return tuple(counts)


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


def _change(pair: _Pair, p: float, comparisons: int) -> CellChange:
    first, second = positive(pair.base_cell.values), positive(pair.cell.values)
    ratio = float(np.median(second) / np.median(first))
    told = min(len(first), len(second)) >= FEWEST
    low, high = ends(resampled_medians(second, 1) / resampled_medians(first, 0))
    change, advice = _judge(pair, p, ratio, (low, high), comparisons)
    return CellChange(
        n=pair.cell.n,
        base=pair.base,
        run=pair.run,
        median_base=float(np.median(first)),
        median=float(np.median(second)),
        samples_base=len(first),
        samples=len(second),
        ratio=ratio,
        low=low if told else None,
        high=high if told else None,
        p=p,
        effect=cliffs_delta(pair.base_cell.values, pair.cell.values),
        change=change,
        advice=advice,
    )


def _judge(
    pair: _Pair, p: float, ratio: float, span: tuple[float, float], comparisons: int
) -> tuple[Change, str | None]:
    both = ((pair.base, pair.base_cell), (pair.run, pair.cell))
    for name, cell in both:
        if len(cell.modes) > 1:
            return "undecided", f"run {name} has two populations here: compare their modes, not the medians"
    for name, cell in both:
        if (share := cell.foreign_share or 0) > FOREIGN_LIMIT:
            return "undecided", (
                f"other processes took {share * 100:.0f} % of the cores in run {name}: "
                "repeat it on a quieter machine"
            )
    sizes = [len(cell.values) for _, cell in both]
    best = 2 / math.comb(sum(sizes), sizes[0])
    if p > SIGNIFICANT and best * comparisons > SIGNIFICANT:
        return "undecided", (
            f"{min(sizes)} samples cannot show a difference among {comparisons} comparisons: "
            "repeat both runs with a larger --budget"
        )
    if p > SIGNIFICANT or 1 / NEGLIGIBLE <= ratio <= NEGLIGIBLE:
        return "no difference shown", None
    if span[0] <= 1 <= span[1]:
        return (
            "undecided",
            "the times differ but their medians may not: repeat both runs with a larger --budget",
        )
    return ("slower" if ratio > 1 else "faster"), None


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
    """The series of all runs, each with those of later runs that are the same; of each run one."""
    groups: list[list[Member]] = []
    for letter, (_, run) in zip(letters, runs, strict=True):
        mates, rest = _match([group[0].series for group in groups], run.series)
        for index, series in mates:
            groups[index].append(Member(run=letter, series=series))
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
