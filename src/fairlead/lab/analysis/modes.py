"""Does a cell have one population of times or two?

Some experiments have two outcomes: a schedule in which the woken threads pass quickly, and one in which
they wait for each other, twenty times slower. The median of such a cell jumps from one to the other between
runs, so the cell must say "bimodal" and show both. The reverse error is as bad: a reader who is told of two
populations where there is one wide one looks for a cause that does not exist.

A cell has 5 to 30 samples, which rules out what is used for large ones. Kernel density estimates find as
many modes as the bandwidth is told to. The bimodality coefficient (skewness and kurtosis) calls every
skewed distribution bimodal, and times are skewed. Hartigan's dip (doi:10.1214/aos/1176346577) is sound but
weak at this size and needs a table of critical values or a slow algorithm; its idea is kept: the
null hypothesis is the uniform distribution, the least favourable among those with one mode.

What is done: the logarithms of the times (so that the unit does not matter and 10 % is 10 % everywhere) are
cut in two where the cut explains the largest share of their variance (Otsu's criterion, as in choosing
the threshold of a picture). The share is compared with that of uniform samples of the same size, drawn with
a fixed seed: beyond their 99th percentile a single population is not credible. Invariant: for uniform
samples at most about 1 % are called bimodal, and for normal, exponential, Laplace and Student samples fewer;
tests/property/test_modes.py measures this.

Two conditions keep the word for what deserves it. Each side holds more than a quarter of the samples, and
three of them (two of 5): fewer are outliers, which the table counts elsewhere, and which no test tells from
a rare mode at this size. And the medians of the sides differ by a tenth at least: below that, one median
serves for both. The price is power: of two modes a factor of e apart with 10 % noise, one of them taken
three times in ten, 10 samples show both in half of the cases and 5 samples in a tenth.

Rejected: the largest gap (as a share of the range, or over the spread of the sides), which has the same
rate of false alarms and, measured side by side, the same power at best; a mixture of two normal
distributions fitted by EM, which at 5 points fits anything.

**A rare mode** of the rounds of a claim is another question: the mean of a ratio that is 60 in six rounds of
seven and 1 in the others is neither, however few they are. There up to a quarter of the rounds are a mode of
their own if they lie by ``RARE_RATIO`` off, and further than the others from end to end. What is disturbed
lies closer; and a mode that no round has shown is none, so that a claim says how rare one may be.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from fairlead.lab.analysis.arrays import np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

FEWEST = 5
"""Below this number of samples no question of modes is asked: even a perfect split may be chance."""
LEAST_RATIO = 1.1
"""Two modes closer than this are as good as one."""
RARE_RATIO = 4.0
"""Fewer rounds than a quarter are a mode, and no outliers, if they lie so far off."""
_LEVEL = 0.99
_DRAWS = 4000


def modes(values: Sequence[float]) -> tuple[float, ...]:
    """The medians of the two populations that positive ``values`` fall into, or their one median.

    Independent of order and unit. Fewer than ``FEWEST`` values always have one mode; none has no value.
    """
    if not values:
        return ()
    ordered = np.sort(np.asarray(values, dtype=float))
    cut = _cut(ordered)
    return tuple(float(np.median(side)) for side in (ordered[:cut], ordered[cut:]) if len(side))


def boundary(ratios: Sequence[float]) -> float | None:
    """The least of the ratios that belongs to the greater of two modes, which may be rare; None for one."""
    ordered = np.sort(np.asarray(ratios, dtype=float))
    cut = _cut(ordered) or _rare(ordered)
    return float(ordered[cut]) if cut else None


def _cut(ordered: NDArray[np.float64]) -> int:
    """How many of the values belong to the lower of two populations; 0 for one."""
    size = len(ordered)
    if size < FEWEST:
        return 0
    shares = explained(np.log(ordered)[None, :])[0]
    cut = _smallest_side(size) + int(np.argmax(shares))
    if shares.max() <= _threshold(size):
        return 0
    return cut if np.median(ordered[cut:]) >= LEAST_RATIO * np.median(ordered[:cut]) else 0


def _rare(ordered: NDArray[np.float64]) -> int:
    """The same, of modes that up to a quarter of the values are in."""
    size = len(ordered)
    if size < FEWEST:
        return 0
    logs = np.log(ordered)
    for few in range(1, size // 4 + 1):
        for cut, rest in ((few, logs[few:]), (size - few, logs[: size - few])):
            gap = logs[cut] - logs[cut - 1]
            if gap >= np.log(RARE_RATIO) and gap >= rest[-1] - rest[0]:
                return cut
    return 0


def explained(ordered: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each row of ascending values, the share of its variance that each admissible cut explains.

    Column j belongs to the cut that leaves ``_smallest_side + j`` values on the left. A constant row
    has nothing to explain: 0.
    """
    size = ordered.shape[1]
    smallest = _smallest_side(size)
    left = np.arange(smallest, size - smallest + 1)
    centred = ordered - ordered.mean(axis=1, keepdims=True)
    sums = np.cumsum(centred, axis=1)[:, left - 1]
    between = sums**2 / (left * (size - left))
    variance = centred.var(axis=1, keepdims=True)
    shares: NDArray[np.float64] = np.divide(between, variance, out=np.zeros_like(between), where=variance > 0)
    return shares


def _smallest_side(size: int) -> int:
    return max(min(3, size // 2), size // 4 + 1)


@cache
def _threshold(size: int) -> float:
    uniform = np.sort(np.random.default_rng(size).uniform(size=(_DRAWS, size)), axis=1)
    return float(np.quantile(explained(uniform).max(axis=1), _LEVEL))
