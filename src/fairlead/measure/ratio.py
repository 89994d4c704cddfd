"""The ratio of two alternatives that were measured in the same rounds, with its interval.

Both were measured in every round, one right after the other, so what changed between rounds (the core's
speed, other load) is in both and cancels in the ratio of a round. The logarithms of those ratios are
symmetric whatever the skew of the times, and Student's interval of their mean is exact for lognormal times
from 3 rounds on and errs towards too wide with outliers. It is taken at 99 %, for a claim rests on one of its
ends: at a threshold it is wrong in one case of 200 at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

RATIO_LEVEL = 0.99
"""Level of the interval of a ratio, on which a claim rests."""
FEWEST_ROUNDS = 3
"""With fewer rounds a ratio has no interval."""
_STEPS = 512
"""Of an integral by Simpson's rule."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """The geometric mean of ratios that are paired by round, with its interval."""

    value: float
    low: float
    high: float
    rounds: int

    @property
    def width(self) -> float:
        """Of the interval, as a logarithm: 0.1 is about 10 % from end to end."""
        return math.log(self.high / self.low)


def paired(ratios: Sequence[float], level: float = RATIO_LEVEL) -> Ratio | None:
    """The geometric mean of ratios above zero, one from each round, with its interval; None for fewer than
    three. The same whatever their order."""
    if len(ratios) < FEWEST_ROUNDS:
        return None
    logs = [math.log(ratio) for ratio in ratios]
    middle, reach = math.fsum(logs) / len(logs), half_width(logs, level)
    return Ratio(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach), len(logs))


def half_width(numbers: Sequence[float], level: float = RATIO_LEVEL) -> float:
    """Of Student's interval of their mean; infinite for fewer than three."""
    count = len(numbers)
    if count < FEWEST_ROUNDS:
        return math.inf
    mean = math.fsum(numbers) / count
    spread = math.sqrt(math.fsum((number - mean) ** 2 for number in numbers) / (count - 1))
    return student(count - 1, level) * spread / math.sqrt(count)


@cache
def student(freedom: int, level: float = RATIO_LEVEL) -> float:
    """The quantile of Student's t distribution for a two-sided interval of this level.

    By bisection on the probability, which is integrated by Simpson's rule after the substitution t = tan u:
    what is left is the power of a cosine, smooth on a finite range.
    """
    wanted = level * cosine_power(freedom - 1, 0.0, math.pi / 2)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        if cosine_power(freedom - 1, 0.0, middle) < wanted:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(low)


def cosine_power(power: int, begin: float, end: float) -> float:
    """The integral of cos(u)**power from ``begin`` to ``end``."""
    step = (end - begin) / _STEPS
    inner = math.fsum(
        (4 if place % 2 else 2) * math.cos(begin + place * step) ** power for place in range(1, _STEPS)
    )
    return (math.cos(begin) ** power + inner + math.cos(end) ** power) * step / 3
