"""The ratio of two alternatives, from common rounds, from several runs, or from two groups of samples.

Two alternatives are measured in every round, one right after the other, so what changes between rounds (the
core's speed, other load) is in both and cancels in the ratio of a round. The logarithms of those ratios are
symmetric whatever the skew of the times, and Student's interval of their mean is exact for lognormal times
from 3 rounds on and errs towards too wide with outliers. It is taken at 99 %, for a claim rests on one of its
ends: at a threshold it is wrong in one case of 200 at most (tests/property/test_claims_truth.py).

**Runs.** All samples of a run share an hour, a boot, a memory layout, so rounds of one run say what this run
was like. What another run would say is known from runs alone: of several, each counts once, by the mean of
its rounds, and Student's interval is over these (T. Kalibera and R. Jones, Rigorous benchmarking in
reasonable time, 2013). With two runs it has one degree of freedom, and is as wide as two runs leave it open.

**Groups.** The same thing measured in two runs has no rounds in common. Welch's interval of the difference of
the mean logarithms lets each side have its own spread and number of samples (Biometrika 34, 1947, 28-35); its
degrees of freedom are rounded down, which errs towards too wide. A rank test cannot take its place: of five
samples a side its least p is 0.008, which no correction for many cells leaves below 0.05.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from fairlead.errors import UsageError

LEVEL = 0.95
"""Level of the interval of a median, of an exponent and of two groups."""
RATIO_LEVEL = 0.99
"""Level of the interval of a paired ratio, on which a claim rests."""
FEWEST_ROUNDS = 3
"""With fewer rounds a ratio has no interval."""
FEWEST_RUNS = 2
"""With fewer runs there is none over runs."""
_REACH = 300.0
"""As a logarithm: an interval is no wider, so that its ends are numbers."""
_MANY = 1000
"""Degrees of freedom from which on more of them make no difference."""
_STEPS = 512
"""Of an integral by Simpson's rule."""


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


def paired(ratios: Sequence[float], level: float = RATIO_LEVEL) -> Ratio | None:
    """The mean of ratios, one from each round, with its interval; None for fewer than three.

    Raises:
        UsageError: a ratio is not a finite number above zero.
    """
    if len(ratios) < FEWEST_ROUNDS:
        return None
    logs = _logs(ratios)
    return _ratio(_mean(logs), half_width(logs, level), len(logs))


def over_runs(runs: Sequence[Sequence[float]], level: float = RATIO_LEVEL) -> Ratio | None:
    """The mean of several runs' ratios, each run counted once, with its interval over the runs; of one run
    that of its rounds (``paired``).

    Raises:
        UsageError: a ratio is not a finite number above zero.
    """
    if len(runs) < FEWEST_RUNS:
        return paired(runs[0], level) if runs else None
    means = [_mean(_logs(run)) for run in runs]
    return _ratio(_mean(means), half_width(means, level, FEWEST_RUNS), sum(map(len, runs)))


def half_width(numbers: Sequence[float], level: float = RATIO_LEVEL, fewest: int = FEWEST_ROUNDS) -> float:
    """Of Student's interval of their mean; infinite for fewer than ``fewest``."""
    if len(numbers) < fewest:
        return math.inf
    return student(len(numbers) - 1, level) * math.sqrt(_variance(numbers) / len(numbers))


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
    logs = [_logs(side) for side in (base, other)]
    if min(map(len, logs)) < FEWEST_ROUNDS or all(min(side) == max(side) for side in logs):
        return None
    squares = [_variance(side) / len(side) for side in logs]
    terms = (square**2 / (len(side) - 1) for square, side in zip(squares, logs, strict=True))
    return Contrast(_mean(logs[1]) - _mean(logs[0]), sum(squares), sum(squares) ** 2 / sum(terms))


def _ratio(middle: float, reach: float, rounds: int) -> Ratio:
    reach = min(reach, _REACH)
    return Ratio(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach), rounds)


def _logs(values: Sequence[float]) -> list[float]:
    if not all(0 < value < math.inf for value in values):
        raise UsageError("times and ratios must be finite numbers above zero")
    return [math.log(value) for value in values]


def _mean(numbers: Sequence[float]) -> float:
    return math.fsum(numbers) / len(numbers)


def _variance(numbers: Sequence[float]) -> float:
    mean = _mean(numbers)
    return math.fsum((number - mean) ** 2 for number in numbers) / (len(numbers) - 1)


# ---- Student's distribution


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
    step = (end - begin) / _STEPS
    weighted = (
        (4 if place % 2 else 2 if 0 < place < _STEPS else 1) * math.cos(begin + place * step) ** power
        for place in range(_STEPS + 1)
    )
    return math.fsum(weighted) * step / 3
