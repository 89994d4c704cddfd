"""What samples say: median, spread and modes of a cell. Ratios of two are in ``measure.ratio``.

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

Outliers are counted by Tukey's fences, 1.5 interquartile ranges beyond the quartiles. The median absolute
deviation stands up to more of them, but it calls the smaller of two modes an outlier and is zero whenever
half the samples agree, as those of a coarse clock do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from fairlead.errors import UsageError
from fairlead.lab.analysis.arrays import np
from fairlead.lab.analysis.modes import FEWEST, modes
from fairlead.measure.ratio import FEWEST_RUNS, LEVEL, paired
from fairlead.record.sample import LONGEST, SHORTEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

DRAWS = 2000
"""Resamples of every bootstrap: an interval's ends then vary by less than a tenth of its width."""
_SEED = 20240229


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
