"""Median, spread, interval, outliers and the verdict of a cell."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.errors import UsageError
from fairlead.lab.statistics import describe

STEADY = [1.00, 1.01, 1.02, 0.99, 0.98, 1.00, 1.03, 0.97]


def test_describe_of_known_numbers_gives_known_quartiles() -> None:
    found = describe([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    assert (found.median, found.q1, found.q3, found.iqr) == (5.0, 3.0, 7.0, 4.0)
    assert found.low is not None
    assert found.high is not None
    assert 1.0 <= found.low < 5.0 < found.high <= 9.0


def test_describe_of_steady_times_is_stable_and_needs_no_advice() -> None:
    found = describe(STEADY, [0.01] * 8)
    assert (found.verdict, found.advice, found.modes, found.outliers) == ("stable", None, (found.median,), 0)


def test_describe_counts_an_outlier_and_keeps_the_median() -> None:
    found = describe([*STEADY, 3.0])
    assert found.outliers == 1
    assert found.median == 1.0


def test_describe_of_no_values_is_undecided_with_nothing_computed() -> None:
    found = describe([])
    assert (found.median, found.low, found.iqr, found.modes, found.verdict) == (
        None,
        None,
        None,
        (),
        "undecided",
    )
    assert found.advice == "nothing was measured: see why its samples failed"


@pytest.mark.parametrize(("count", "start"), [(1, "1 sample is too few"), (4, "4 samples are too few")])
def test_describe_of_few_values_is_undecided_and_says_what_to_do(count: int, start: str) -> None:
    found = describe([1.0] * count)
    assert found.verdict == "undecided"
    assert found.advice is not None
    assert found.advice.startswith(start)
    assert found.advice.endswith("run again with a larger --budget")


def test_describe_under_foreign_load_is_noisy_and_names_the_samples() -> None:
    found = describe(STEADY, [0.5] * 3 + [0.0] * 5)
    assert found.verdict == "noisy"
    assert found.advice == (
        "other processes took more than 10 % of the cores during 3 of 8 samples: "
        "stop them or run again on a quieter machine"
    )


def test_describe_with_a_quarter_of_the_samples_disturbed_stands_by_its_median() -> None:
    assert describe(STEADY, [0.5] * 2 + [0.0] * 6).verdict == "stable"


def test_describe_of_widely_spread_times_is_noisy_and_says_how_much_longer_to_run() -> None:
    found = describe([0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2])
    assert found.verdict == "noisy"
    assert found.advice == (
        "the median is known to 15 % only: run again with 3 times the --budget or on a quieter machine"
    )


def test_describe_of_times_beyond_any_budget_asks_for_quiet_alone() -> None:
    found = describe([1.0, 1.2, 1.45, 1.7, 2.0, 2.4, 2.9, 3.4])
    assert found.verdict == "noisy"
    assert found.advice is not None
    assert found.advice.endswith("only: run again on a quieter machine")


def test_describe_of_two_populations_is_bimodal_and_shows_both() -> None:
    found = describe([0.190, 4.10, 0.200, 4.20, 0.195, 4.05, 0.193, 4.15])
    assert found.verdict == "bimodal"
    assert found.modes == pytest.approx((0.194, 4.125))
    assert found.advice == "two populations, x21 apart: quote both modes, not the median"


@pytest.mark.parametrize(("slow", "factor"), [(1.5, "x1.5"), (30.0, "x30"), (250.0, "x250")])
def test_describe_of_two_populations_says_how_far_apart_they_are(slow: float, factor: str) -> None:
    advice = describe([1.0, slow] * 5).advice
    assert advice == f"two populations, {factor} apart: quote both modes, not the median"


def test_describe_of_two_populations_under_load_asks_for_quiet() -> None:
    found = describe([0.19, 4.1, 0.2, 4.2, 0.195, 4.05, 0.193, 4.15], [0.4] * 8)
    assert found.verdict == "bimodal"
    assert found.advice is not None
    assert found.advice.endswith("8 of 8 samples met foreign load: run again on a quieter machine")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0, -1.0])
def test_describe_refuses_what_is_no_time(bad: float) -> None:
    with pytest.raises(UsageError, match="finite numbers above zero"):
        describe([1.0, bad])


def test_describe_agrees_with_scipy_on_interquartile_range_and_bootstrap() -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy is the oracle; install the oracle group")
    values = np.random.default_rng(5).lognormal(0, 0.3, 25)
    found = describe(values.tolist())
    assert found.iqr == pytest.approx(stats.iqr(values))
    theirs = stats.bootstrap((values,), np.median, method="percentile", n_resamples=20_000, random_state=1)
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    assert found.low == pytest.approx(theirs.confidence_interval.low, abs=0.15 * width)
    assert found.high == pytest.approx(theirs.confidence_interval.high, abs=0.15 * width)
