"""What a choice between two ways is expected to lose, from times that are paired by round.

A process is one observation, whatever it repeats: passes of one process share its memory layout and the core
that it was given. Both ways run once in every round, so that what changed between rounds cancels in the ratio
of a round. The logarithms of these ratios have a mean and a standard error, and Student's distribution says
how far the mean may be off. A bootstrap over the processes would claim more than that: with three to six of
them its intervals are too short.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from fairlead.lab.analysis.statistics import LEVEL, Ratio, paired

UNKNOWN = 0.1
"""The standard error that a logarithm of a ratio is taken to have where too few rounds tell it."""
_NORMAL = 1.96
"""What ``student`` comes to with any number of rounds."""


def versus(one: Mapping[int, float], other: Mapping[int, float]) -> Ratio | None:
    """How many times as long ``one`` takes as ``other``, with the 95 % interval, from times by round.

    None for fewer than three rounds in common: they have no interval.
    """
    common = sorted(one.keys() & other.keys())
    return paired([one[number] / other[number] for number in common], LEVEL)


def expected_loss(ratio: float, found: Ratio | None) -> float:
    """The share of the time that is expected to be lost by ``one``, which takes ``ratio`` times as long.

    That is the mean of what ``one`` takes longer, over all that the rounds leave possible; where it may be
    the faster of the two, nothing is lost.
    """
    mean = math.log(ratio)
    # the interval of few rounds is wide because their spread is uncertain: that is carried on
    error = UNKNOWN if found is None else found.width / 2 / _NORMAL
    if error <= 0:
        return max(0.0, ratio - 1)
    above = _normal(mean / error)
    grown = math.exp(min(mean + error * error / 2, 50.0)) * _normal(mean / error + error)
    return max(0.0, grown - above)


def _normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))
