"""How one way compares with another by the rounds that both ran in, and what a choice is expected to lose.

A process is one observation, whatever it repeats: its calls share its memory layout and the core that it was
given. Both ways run once in every round, so that what changed between rounds cancels in the ratio of a round.
The logarithms of these ratios have a mean and a standard error, and Student's distribution says how far the
mean may be off. A bootstrap over the processes would claim more than that: with three to six of them its
intervals are too short.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median, stdev

from fairlead.measure.ratio import FEWEST_ROUNDS, LEVEL, Ratio, paired

_NORMAL = 1.96
"""What ``student`` comes to with any number of rounds."""

Rounds = Mapping[int, float]
"""Seconds by the number of the round."""


def ratios(one: Rounds, other: Rounds) -> list[float]:
    """How many times as long ``one`` took as ``other``, in each round that both ran in."""
    return [one[number] / other[number] for number in sorted(one.keys() & other.keys())]


def versus(one: Rounds, other: Rounds) -> Ratio | None:
    """How many times as long ``one`` takes as ``other``, with the 95 % interval, from times by round.

    None for fewer than three rounds in common: they have no interval.
    """
    return paired(ratios(one, other), LEVEL)


def error(one: Rounds, other: Rounds, base: Rounds) -> float | None:
    """The standard error of the logarithm of the ratio of two ways.

    Where they have too few rounds in common, the spread of another way's processes stands in for that of
    theirs; None if that has too few as well.
    """
    found = versus(one, other)
    if found is not None:
        # the interval of few rounds is wide because their spread is uncertain: that is carried on
        return found.width / 2 / _NORMAL
    if len(base) < FEWEST_ROUNDS:
        return None
    common = len(one.keys() & other.keys())
    return stdev(math.log(seconds) for seconds in base.values()) * math.sqrt(2 / max(common, 1))


def expected_loss(ratio: float, error: float) -> float:
    """The share of the time that a way is expected to lose that takes ``ratio`` times as long as another.

    That is the mean of what it takes longer, over all that the rounds leave possible; where it may be the
    faster of the two, nothing is lost.

    Args:
        error: the standard error of the logarithm of the ratio.
    """
    mean = math.log(ratio)
    if error <= 0:
        return max(0.0, ratio - 1)
    above = _normal(mean / error)
    grown = math.exp(min(mean + error * error / 2, 50.0)) * _normal(mean / error + error)
    return max(0.0, grown - above)


def gain(base: Rounds, other: Rounds) -> float:
    """How many times as fast ``other`` is as ``base``: the median of the rounds that both ran in."""
    return median(ratios(base, other) or [median(base.values()) / median(other.values())])


def _normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))
