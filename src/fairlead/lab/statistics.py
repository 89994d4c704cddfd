"""What one cell's samples say: median, spread, interval, outliers, modes, and whether to believe them.

Times are skewed and now and then one is far off, so everything stands on the median and the quartiles; no
sample is ever thrown away. Every result is the same whatever the order of the samples and, since random
draws come from a generator with a fixed seed, the same on every machine.

The interval of the median is the percentile bootstrap's. Its ends are order statistics, as those of the
exact interval from the sign test are, so that it cannot leave the range of what was measured; and since
there are few order statistics to choose from, its true level moves with the number of samples: measured,
0.94 with 5, 0.87 with 7 (the worst), 0.91 to 0.97 from 8 on. BCa needs the jackknife, which is inconsistent
for quantiles (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, section 11.6). Below 5 samples
even the whole range covers the median in less than 90 % of cases (1 - 2/2**n): "undecided".

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
from fairlead.lab.arrays import np
from fairlead.lab.modes import FEWEST, modes
from fairlead.record.sample import LONGEST, SHORTEST
from fairlead.record.summary import Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEVEL = 0.95
"""Level of every interval."""
FOREIGN_LIMIT = 0.10
"""A sample is disturbed when other processes took more than this share of the cores."""
DISTURBED_LIMIT = 0.25
"""The quartiles, and so the interval, stand up to this share of disturbed samples."""
SPREAD_LIMIT = 0.10
"""A median whose interval reaches further than this to either side, relative to it, is noisy."""
DRAWS = 2000
"""Resamples of every bootstrap: an interval's ends then vary by less than a tenth of its width."""
_WORTHWHILE = 10
_SEED = 20240229


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One cell in numbers, in the unit of its values. ``None`` where there was nothing to compute from."""

    median: float | None
    low: float | None
    """Lower end of the 95 % interval of the median."""
    high: float | None
    q1: float | None
    q3: float | None
    iqr: float | None
    outliers: int
    modes: tuple[float, ...]
    verdict: Verdict
    advice: str | None


def describe(values: Sequence[float], foreign: Sequence[float] = ()) -> Description:
    """Describe positive values and judge them.

    Args:
        values: the measured times.
        foreign: share of the cores that other processes took (0 to 1), a number per value, or empty.

    Raises:
        UsageError: a value is not a finite number above zero.
    """
    ordered = positive(values)
    if not len(ordered):
        return Description(
            median=None,
            low=None,
            high=None,
            q1=None,
            q3=None,
            iqr=None,
            outliers=0,
            modes=(),
            verdict="undecided",
            advice="nothing was measured: see why its samples failed",
        )
    median = float(np.median(ordered))
    q1, q3 = (float(q) for q in np.quantile(ordered, (0.25, 0.75)))
    low, high = interval(ordered)
    iqr = q3 - q1
    found = modes(ordered.tolist())
    verdict, advice = _judge(len(ordered), median, low, high, found, foreign)
    return Description(
        median=median,
        low=low,
        high=high,
        q1=q1,
        q3=q3,
        iqr=iqr,
        outliers=int(np.count_nonzero((ordered < q1 - 1.5 * iqr) | (ordered > q3 + 1.5 * iqr))),
        modes=found,
        verdict=verdict,
        advice=advice,
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


def interval(ordered: NDArray[np.float64]) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of the median of ascending values."""
    return ends(resampled_medians(ordered))


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


def _judge(
    count: int,
    median: float,
    low: float,
    high: float,
    found: tuple[float, ...],
    foreign: Sequence[float],
) -> tuple[Verdict, str | None]:
    disturbed = sum(share > FOREIGN_LIMIT for share in foreign)
    busy = disturbed > DISTURBED_LIMIT * count
    if count < FEWEST:
        have = "1 sample is" if count == 1 else f"{count} samples are"
        return "undecided", f"{have} too few, {FEWEST} are the least: run again with a larger --budget"
    if len(found) > 1:
        quiet = (
            f"; {disturbed} of {count} samples met foreign load: run again on a quieter machine"
            if busy
            else ""
        )
        apart = found[1] / found[0]
        factor = f"x{apart:.1f}" if apart < 10 else f"x{apart:.0f}"
        return "bimodal", f"two populations, {factor} apart: quote both modes, not the median{quiet}"
    if busy:
        return "noisy", (
            f"other processes took more than {FOREIGN_LIMIT * 100:.0f} % of the cores "
            f"during {disturbed} of {count} samples: stop them or run again on a quieter machine"
        )
    reach = max(high - median, median - low) / median
    if reach > SPREAD_LIMIT:
        # an interval shrinks with the root of the number of samples
        times = math.ceil((reach / SPREAD_LIMIT) ** 2)
        cure = "on a quieter machine"
        if times <= _WORTHWHILE:
            cure = f"with {times} times the --budget or {cure}"
        return "noisy", f"the median is known to {reach * 100:.0f} % only: run again {cure}"
    return "stable", None
