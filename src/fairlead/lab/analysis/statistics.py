"""What samples say: median, spread and modes of a cell, and the interval of a ratio, paired by round or not.

Times are skewed and now and then one is far off, so a cell stands on its median and quartiles. A sample that
other processes disturbed is rejected and taken again while it is measured (``runner``), and counted; of what
was kept nothing is thrown away here. Every result is the same whatever the order of the samples and, since
random draws come from a generator with a fixed seed, the same on every machine.

The interval of the median is that of the sign test, from one order statistic to another, so that it cannot
leave the range of what was measured and asks nothing of the distribution. There are few order statistics to
choose from: its true level is that of five samples' whole range, 0.9375, at least, and 0.993 at most. The
percentile bootstrap's moves as much and falls to 0.87 with 7 samples. With fewer than ``FEWEST`` samples
there is none: even from the smallest to the largest the true level is 0.75 with 3 and 0.5 with 2, and equal
samples would make an interval of no width.

A ratio of two cells is another matter. Both were measured in every round, one right after the other, so what
changed between rounds (the core's speed, other load) is in both and cancels in the ratio of a round. The
logarithms of those ratios are symmetric whatever the skew of the times, and Student's interval of their
mean is exact for lognormal times from 3 rounds on and errs towards too wide with outliers. It is taken at
99 %, for a claim rests on one of its ends: at a threshold it is wrong in one case of 200 at most
(tests/property/test_claims_truth.py).

**Runs.** All samples of a run share an hour, a boot, a memory layout, so rounds of one run say what this run
was like. What another run would say is known from runs alone: of several, each counts once, by the mean of
its rounds, and Student's interval is over these (T. Kalibera and R. Jones, Rigorous benchmarking in
reasonable time, 2013). With two runs it has one degree of freedom, and is as wide as two runs leave it open.

The same cell in two runs has no rounds in common. Welch's interval of the difference of the mean logarithms
lets each side have its own spread and number of samples (Biometrika 34, 1947, 28-35); its degrees of freedom
are rounded down, which errs towards too wide. A rank test cannot take its place: of five samples a side its
least p is 0.008, which no correction for many cells leaves below 0.05.

Outliers are counted by Tukey's fences, 1.5 interquartile ranges beyond the quartiles. The median absolute
deviation stands up to more of them, but it calls the smaller of two modes an outlier and is zero whenever
half the samples agree, as those of a coarse clock do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from fairlead.errors import UsageError
from fairlead.lab.analysis.arrays import np
from fairlead.lab.analysis.modes import FEWEST, modes
from fairlead.record.sample import LONGEST, SHORTEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEVEL = 0.95
"""Level of the interval of a median and of an exponent."""
RATIO_LEVEL = 0.99
"""Level of the interval of a ratio, on which a claim rests."""
FEWEST_ROUNDS = 3
"""With fewer rounds a ratio has no interval."""
FEWEST_RUNS = 2
"""With fewer runs there is none over runs."""
DRAWS = 2000
"""Resamples of every bootstrap: an interval's ends then vary by less than a tenth of its width."""
_SEED = 20240229
_REACH = 300.0
"""As a logarithm: an interval is no wider, so that its ends are numbers."""
_MANY = 1000
"""Degrees of freedom from which on more of them make no difference."""
_STEPS = 512
"""Of an integral by Simpson's rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One cell in numbers, in the unit of its values. ``None`` where there was nothing to compute from."""

    median: float | None
    low: float | None
    """Lower end of the 95 % interval of the median; None with fewer than ``FEWEST`` values."""
    high: float | None
    q1: float | None
    q3: float | None
    iqr: float | None
    outliers: int
    modes: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Ratio:
    """The geometric mean of ratios, or of runs' such means, with its interval."""

    value: float
    low: float
    high: float
    rounds: int

    @property
    def width(self) -> float:
        """Of the interval, as a logarithm: 0.1 is about 10 % from end to end."""
        return math.log(self.high / self.low)


def describe(values: Sequence[float], runs: Sequence[int] = ()) -> Description:
    """Describe positive values.

    Args:
        runs: of each value, the run that it is from; all of one without it. Of several the interval is
            Student's over the runs' medians, from three on, and modes are looked for around each of them.

    Raises:
        UsageError: a value is not a finite number above zero.
    """
    ordered = positive(values)
    if not len(ordered):
        return Description(
            median=None, low=None, high=None, q1=None, q3=None, iqr=None, outliers=0, modes=()
        )  # fmt: skip
    median = float(np.median(ordered))
    q1, q3 = (float(q) for q in np.quantile(ordered, (0.25, 0.75)))
    low, high = interval(ordered) or (None, None)
    around = ordered
    if len(set(runs)) >= FEWEST_RUNS:
        own = {run: np.median([v for v, its in zip(values, runs, strict=True) if its == run]) for run in runs}
        found = paired([float(one) for one in own.values()], LEVEL)
        low, high = (min(median, found.low), max(median, found.high)) if found else (None, None)
        around = np.array([v / own[run] * median for v, run in zip(values, runs, strict=True)])
    iqr = q3 - q1
    return Description(
        median=median,
        low=low,
        high=high,
        q1=q1,
        q3=q3,
        iqr=iqr,
        outliers=int(np.count_nonzero((ordered < q1 - 1.5 * iqr) | (ordered > q3 + 1.5 * iqr))),
        modes=modes(around.tolist()),
    )


def paired(ratios: Sequence[float], level: float = RATIO_LEVEL) -> Ratio | None:
    """The mean of ratios, one from each round, with its interval; None for fewer than three.

    Raises:
        UsageError: a ratio is not a finite number above zero.
    """
    if len(ratios) < FEWEST_ROUNDS:
        return None
    logs = np.log(positive(ratios))
    return _ratio(float(logs.mean()), half_width(logs, level), len(logs))


def over_runs(runs: Sequence[Sequence[float]], level: float = RATIO_LEVEL) -> Ratio | None:
    """The mean of several runs' ratios, each run counted once, with its interval over the runs; of one run
    that of its rounds (``paired``).

    Raises:
        UsageError: a ratio is not a finite number above zero.
    """
    if len(runs) < FEWEST_RUNS:
        return paired(runs[0], level) if runs else None
    means = [float(np.log(positive(run)).mean()) for run in runs]
    reach = half_width(means, level, FEWEST_RUNS)
    return _ratio(float(np.mean(means)), reach, sum(map(len, runs)))


def _ratio(middle: float, reach: float, rounds: int) -> Ratio:
    reach = min(reach, _REACH)
    return Ratio(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach), rounds)


def half_width(
    numbers: Sequence[float] | NDArray[np.float64], level: float = RATIO_LEVEL, fewest: int = FEWEST_ROUNDS
) -> float:
    """Of Student's interval of their mean; infinite for fewer than ``fewest``."""
    if len(numbers) < fewest:
        return math.inf
    return student(len(numbers) - 1, level) * float(np.std(numbers, ddof=1)) / math.sqrt(len(numbers))


@dataclass(frozen=True, slots=True)
class Contrast:
    """How many times as long one group of samples takes as another, by their geometric means."""

    middle: float
    """The logarithm of the ratio."""
    square: float
    """Of its standard error."""
    freedom: float

    @property
    def value(self) -> float:
        """The ratio."""
        return math.exp(self.middle)

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval."""
        return math.exp(self.middle - self._reach())

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval."""
        return math.exp(self.middle + self._reach())

    @property
    def p(self) -> float:
        """Of Welch's t test of the logarithms, two-sided."""
        return beyond(abs(self.middle) / math.sqrt(self.square), self._whole())

    def _reach(self) -> float:
        return min(student(self._whole(), LEVEL) * math.sqrt(self.square), _REACH)

    def _whole(self) -> int:
        return min(max(int(self.freedom), 1), _MANY)

    def widened(self, square: float, freedom: float) -> Contrast:
        """With a further variance in the error, known with this many degrees of freedom."""
        both = self.square + square
        return Contrast(self.middle, both, both**2 / (self.square**2 / self.freedom + square**2 / freedom))


def contrast(base: Sequence[float], other: Sequence[float]) -> Contrast | None:
    """``other`` over ``base`` with the 95 % interval; None where a side has fewer than three samples, or none
    of them differ, as those of a coarse clock.

    Raises:
        UsageError: a sample is not a finite number above zero.
    """
    logs = [np.log(positive(side)) for side in (base, other)]
    if min(map(len, logs)) < FEWEST_ROUNDS or all(side[0] == side[-1] for side in logs):
        return None
    squares = [float(side.var(ddof=1)) / len(side) for side in logs]
    terms = (square**2 / (len(side) - 1) for square, side in zip(squares, logs, strict=True))
    return Contrast(float(logs[1].mean() - logs[0].mean()), sum(squares), sum(squares) ** 2 / sum(terms))


def beyond(t: float, freedom: int) -> float:
    """The two-sided probability of Student's t distribution beyond ``t``, which is not negative."""
    angle = math.atan(t / math.sqrt(freedom))
    tail = _cosine_power(freedom - 1, angle, math.pi / 2)
    return min(1.0, tail / _cosine_power(freedom - 1, 0.0, math.pi / 2))


@cache
def student(freedom: int, level: float = RATIO_LEVEL) -> float:
    """The quantile of Student's t distribution for a two-sided interval of this level.

    By bisection on the probability, which is integrated by Simpson's rule after the substitution t = tan u:
    what is left is the power of a cosine, smooth on a finite range.
    """
    wanted = level * _cosine_power(freedom - 1, 0.0, math.pi / 2)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        if _cosine_power(freedom - 1, 0.0, middle) < wanted:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(low)


def _cosine_power(power: int, begin: float, end: float) -> float:
    """The integral of cos(u)**power from ``begin`` to ``end``."""
    weights = np.ones(_STEPS + 1)
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    return (
        float((np.cos(np.linspace(begin, end, _STEPS + 1)) ** power) @ weights) * (end - begin) / _STEPS / 3
    )


def positive(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """The values in ascending order, checked.

    Raises:
        UsageError: a value is not a finite number above zero, or no time at all (``SHORTEST``, ``LONGEST``).
    """
    array = np.sort(np.asarray(values, dtype=float))
    if not ((array >= SHORTEST) & (array <= LONGEST)).all():
        raise UsageError(f"times must be finite numbers above zero, from {SHORTEST:g} to {LONGEST:g} seconds")
    return array


def generator() -> np.random.Generator:
    """A generator that draws the same numbers each time it is asked for."""
    return np.random.default_rng(_SEED)


def interval(ordered: NDArray[np.float64]) -> tuple[float, float] | None:
    """The 95 % interval of the median of ascending values, by the sign test; None for too few."""
    if len(ordered) < FEWEST:
        return None
    left = _left_out(len(ordered))
    return float(ordered[left]), float(ordered[-1 - left])


@cache
def _left_out(size: int) -> int:
    """How many of so many samples may lie on either side of an interval that holds the median as often as the
    whole range of ``FEWEST`` does."""
    outside, term, left = 0.0, 0.5 ** (size - 1), 0
    while (outside := outside + term) <= 0.5 ** (FEWEST - 1):
        term *= (size - left) / (left + 1)
        left += 1
    return left - 1


def resampled_medians(ordered: NDArray[np.float64], stream: int = 0) -> NDArray[np.float64]:
    """The medians of ``DRAWS`` resamples of ascending values. Different streams draw independently."""
    low, high = _middles(len(ordered), stream)
    medians: NDArray[np.float64] = (ordered[low] + ordered[high]) / 2
    return medians


@cache
def _middles(size: int, stream: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each resample has its middle two values: in order, as the values themselves are."""
    places = np.sort(np.random.default_rng((_SEED, stream)).integers(0, size, size=(DRAWS, size)), axis=1)
    return places[:, (size - 1) // 2], places[:, size // 2]


def ends(draws: NDArray[np.float64]) -> tuple[float, float]:
    """The ends of the central 95 % of bootstrap draws."""
    low, high = np.quantile(draws, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return float(low), float(high)
