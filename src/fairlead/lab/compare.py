"""Two runs side by side: what became faster, what slower, and what cannot be said.

For each cell that both have: the ratio of the medians with a bootstrap interval (how much), the U test of
Mann and Whitney (is it chance), and Cliff's delta (how clearly apart). A change is called by name only
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
from collections.abc import Callable, Hashable, Sequence
from functools import cache

from fairlead.lab.arrays import np
from fairlead.lab.statistics import FOREIGN_LIMIT, ends, positive, resampled_medians
from fairlead.record.comparison import CellChange, Change, Comparison, Run, SeriesChange, Unmatched
from fairlead.record.results import FINGERPRINT, PER_SERIES
from fairlead.record.summary import Cell, Series, Summary

SIGNIFICANT = 0.05
NEGLIGIBLE = 1.02
"""Ratios closer to 1 than this are no change."""
_EXACT = 50
"""Up to so many samples a side the exact distribution is counted out; it takes milliseconds."""


def compare(a: Summary, b: Summary) -> Comparison:
    """Compare run b with the base a, cell by cell.

    Series are matched by experiment, parameters and the interpreter's name; where those leave exactly one
    series on each side, also across interpreters, so that a run on one can be compared with a run on another.
    """
    pairs, rest_a, rest_b = _match(a.series, b.series)
    raw = [[(x, y, u_test(x.values, y.values)) for x, y in _common(one, other)] for one, other in pairs]
    corrected = iter(holm([p for cells in raw for _, _, p in cells]))
    count = sum(len(cells) for cells in raw)
    titles = {subject.id: subject.title for subject in (*a.subjects, *b.subjects)}
    changes = [
        SeriesChange(
            experiment=one.experiment,
            title=titles.get(one.experiment, one.experiment),
            variant=one.variant,
            label_a=one.label,
            label_b=other.label,
            interpreter_a=one.interpreter,
            interpreter_b=other.interpreter,
            fit_a=one.fit,
            fit_b=other.fit,
            cells=tuple(_change(x, y, next(corrected), count) for x, y, _ in cells),
        )
        for (one, other), cells in zip(pairs, raw, strict=True)
    ]
    lone: list[tuple[Run, Series, Series | None]] = [("a", one, other) for one, other in pairs] + [
        ("a", one, None) for one in rest_a
    ]
    lone += [("b", other, one) for one, other in pairs] + [("b", one, None) for one in rest_b]
    unmatched = [_unmatched(run, one, other) for run, one, other in lone]
    differing = [
        name
        for name in FINGERPRINT
        if name not in PER_SERIES and a.environment.get(name) != b.environment.get(name)
    ]
    several = [
        f"run {name} comes from {run.environments} environments"
        for name, run in (("a", a), ("b", b))
        if run.environments > 1
    ]
    return Comparison(
        series=tuple(change for change in changes if change.cells),
        unmatched=tuple(one for one in unmatched if one is not None),
        environment_a=a.environment,
        environment_b=b.environment,
        differing=tuple(differing),
        problems=(*a.problems, *b.problems, *several),
    )


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


def _change(a: Cell, b: Cell, p: float, comparisons: int) -> CellChange:
    first, second = positive(a.values), positive(b.values)
    ratio = float(np.median(second) / np.median(first))
    low, high = ends(resampled_medians(second, 1) / resampled_medians(first, 0))
    change, advice = _judge(a, b, p, ratio, (low, high), comparisons)
    return CellChange(
        n=a.n,
        median_a=float(np.median(first)),
        median_b=float(np.median(second)),
        samples_a=len(first),
        samples_b=len(second),
        ratio=ratio,
        low=low,
        high=high,
        p=p,
        effect=cliffs_delta(a.values, b.values),
        change=change,
        advice=advice,
    )


def _judge(
    a: Cell, b: Cell, p: float, ratio: float, span: tuple[float, float], comparisons: int
) -> tuple[Change, str | None]:
    for name, cell in (("a", a), ("b", b)):
        if cell.verdict == "bimodal":
            return "undecided", f"run {name} has two populations here: compare their modes, not the medians"
    for name, cell in (("a", a), ("b", b)):
        if (share := cell.foreign_share or 0) > FOREIGN_LIMIT:
            return "undecided", (
                f"other processes took {share * 100:.0f} % of the cores in run {name}: "
                "repeat it on a quieter machine"
            )
    best = 2 / math.comb(len(a.values) + len(b.values), len(a.values))
    if p > SIGNIFICANT and best * comparisons > SIGNIFICANT:
        few = min(len(a.values), len(b.values))
        return "undecided", (
            f"{few} samples cannot show a difference among {comparisons} comparisons: "
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


def _common(a: Series, b: Series) -> list[tuple[Cell, Cell]]:
    others = {cell.n: cell for cell in b.cells if cell.values}
    return [(cell, others[cell.n]) for cell in a.cells if cell.values and cell.n in others]


def _unmatched(run: Run, series: Series, other: Series | None) -> Unmatched | None:
    """What ``series`` has measured and ``other`` has not; None when that is nothing."""
    has = {cell.n for cell in other.cells if cell.values} if other else set()
    sizes = tuple(cell.n for cell in series.cells if cell.values and cell.n not in has)
    if other and not sizes:
        return None
    return Unmatched(
        run=run,
        experiment=series.experiment,
        variant=series.variant,
        label=series.label,
        interpreter=series.interpreter,
        sizes=sizes,
    )


def _match(
    a: Sequence[Series], b: Sequence[Series]
) -> tuple[list[tuple[Series, Series]], list[Series], list[Series]]:
    """Pair series, by the strictest likeness first; what a likeness leaves ambiguous goes to the next."""

    def alike(one: Series) -> tuple[str, str]:
        return one.experiment, json.dumps(one.variant, sort_keys=True)

    def name(one: Series) -> str:
        return str(one.interpreter.get("name"))

    likenesses: list[Callable[[Series], Hashable]] = [
        lambda one: (*alike(one), name(one), one.label),
        lambda one: (*alike(one), name(one)),
        alike,
    ]
    pairs: list[tuple[Series, Series]] = []
    rest_a, rest_b = list(a), list(b)
    for likeness in likenesses:
        for one in list(rest_a):
            same_a = [other for other in rest_a if likeness(other) == likeness(one)]
            same_b = [other for other in rest_b if likeness(other) == likeness(one)]
            if len(same_a) == len(same_b) == 1:
                pairs.append((one, same_b[0]))
                rest_a = [other for other in rest_a if other is not one]
                rest_b = [other for other in rest_b if other is not same_b[0]]
    place = {id(one): index for index, one in enumerate(a)}
    pairs.sort(key=lambda pair: place[id(pair[0])])
    return pairs, rest_a, rest_b
