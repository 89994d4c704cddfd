"""Median, spread, interval and outliers of a cell, and the ratio of two."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairlead.errors import UsageError
from fairlead.lab.analysis.statistics import describe
from fairlead.measure.ratio import paired, student

pytestmark = pytest.mark.ends

STEADY = [1.00, 1.01, 1.02, 0.99, 0.98, 1.00, 1.03, 0.97]


def test_describe_of_known_numbers_an_outlier_nothing_and_two_populations() -> None:
    found = describe([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    assert (found.median, found.q1, found.q3, found.iqr) == (5.0, 3.0, 7.0, 4.0)
    assert found.low is not None
    assert found.high is not None
    assert (found.low, found.high) == (2.0, 8.0), "the sign test's, at 96 %: 1 to 9 would be 99.6"
    found = describe([*STEADY, 3.0])
    assert found.outliers == 1
    assert found.median == 1.0
    found = describe([])
    assert (found.median, found.low, found.iqr, found.modes) == (None, None, None, ())
    found = describe([0.190, 4.10, 0.200, 4.20, 0.195, 4.05, 0.193, 4.15])
    assert found.modes == pytest.approx((0.194, 4.125))


@pytest.mark.parametrize("values", [[1.0], [1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.1, 1.2, 1.3]])
def test_few_samples_have_no_interval_however_well_they_agree(values: list[float]) -> None:
    found = describe(values)
    assert (found.low, found.high) == (None, None)
    assert None not in (describe([*values, 1.0, 1.0, 1.0, 1.0]).low, found.median)


def test_paired_is_the_geometric_mean_with_its_interval_from_three_rounds_on() -> None:
    assert paired([]) is None
    assert paired([2.0, 2.1]) is None
    found = paired([1.0, 2.0, 4.0])
    assert found is not None
    assert found.value == pytest.approx(2.0)
    assert found.low * found.high == pytest.approx(4.0), "as far down as up"
    assert found.width == pytest.approx(math.log(found.high / found.low))
    assert found.width == pytest.approx(2 * 9.925 * math.log(2) / math.sqrt(3), rel=1e-4), "t for 2, 99 %"
    assert found.rounds == 3


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(2, 9.925), (3, 5.841), (4, 4.604), (9, 3.250), (29, 2.756), (199, 2.601)]
)
def test_student_is_the_published_table_at_99_per_cent(freedom: int, quantile: float) -> None:
    assert student(freedom) == pytest.approx(quantile, abs=6e-4)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0, -1.0])
def test_describe_refuses_what_is_no_time(bad: float) -> None:
    with pytest.raises(UsageError, match="finite numbers above zero"):
        describe([1.0, bad])


def test_describe_agrees_with_scipy_on_interquartile_range_and_the_sign_tests_level() -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy is the oracle; install the oracle group")
    for size in range(5, 40):
        values = np.sort(np.random.default_rng(size).lognormal(0, 0.3, size))
        found = describe(values.tolist())
        assert found.iqr == pytest.approx(stats.iqr(values))
        left = int(np.searchsorted(values, found.low))
        assert found.high == values[-1 - left]
        levels = [1 - 2 * stats.binom.cdf(out, size, 0.5) for out in (left, left + 1)]
        assert levels[0] > 0.9375 - 1e-9 > levels[1], "the narrowest of that level"
        assert levels[0] < 0.995
