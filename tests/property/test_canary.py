"""The canary's judgement: it seldom tells a difference that is none, and tells those that are."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.gil.schedule.canary import LOOKS, CanaryVerdict, CanaryWindow, judge, percentile

pytestmark = pytest.mark.once


def trial(rng: random.Random, factor: float, noise: float) -> CanaryVerdict:
    """Load that wanders, windows that scatter, and a scheduler that makes waits longer by a factor."""
    pairs: list[tuple[CanaryWindow, CanaryWindow]] = []
    load = 0.0
    while True:
        load += rng.gauss(0, 0.3)

        def measured(by: float, load: float = load) -> CanaryWindow:
            return CanaryWindow(
                by * math.exp(load + rng.gauss(0, noise)), by * math.exp(load + rng.gauss(0, noise))
            )

        pairs.append((measured(1.0), measured(factor)))
        verdict = judge(pairs)
        if verdict is not None and verdict.decision is not None:
            return verdict


def share(factor: float, noise: float, wanted: Callable[[CanaryVerdict], bool]) -> float:
    rng = random.Random(4711)
    return sum(wanted(trial(rng, factor, noise)) for _ in range(600)) / 600


@pytest.mark.parametrize("noise", [0.05, 0.5, 1.5])
def test_no_difference_is_seldom_reported_as_one(noise: float) -> None:
    assert share(1.0, noise, lambda v: v.decision == "keep") <= 0.05
    assert share(1.10, noise, lambda v: "more than 10 %" in v.reason) <= 0.07  # two figures, either may err


def test_gain_is_kept_and_loss_is_not() -> None:
    assert share(0.3, 0.5, lambda v: v.decision == "keep") >= 0.95
    assert share(1.6, 0.2, lambda v: v.decision == "stock" and "more than 10 %" in v.reason) >= 0.95


def test_longer_waits_at_the_99th_percentile_outweigh_shorter_ones_on_average() -> None:
    pairs = [(CanaryWindow(1.0, 1.0), CanaryWindow(0.1 + n / 1e3, 3.0 + n / 1e3)) for n in range(6)]
    verdict = judge(pairs)
    assert verdict is not None
    assert (verdict.decision, verdict.reason) == ("stock", "threads wait more than 10 % longer")


def test_no_measurable_gain_ends_in_stock_and_leaves_it_undecided_before() -> None:
    rng = random.Random(1)
    pairs = [
        (CanaryWindow(1.0, 1.0), CanaryWindow(rng.uniform(0.5, 2), rng.uniform(0.5, 2))) for _ in range(24)
    ]
    decisions = {n: verdict.decision if (verdict := judge(pairs[:n])) else "" for n in range(25)}
    assert {n for n, decision in decisions.items() if decision != ""} == set(LOOKS)
    assert [decisions[n] for n in LOOKS] == [None, None, "stock"]


@given(st.lists(st.integers(0, 10**6), min_size=40, max_size=40).filter(any), st.floats(0.01, 1))
def test_percentile_lies_in_the_bucket_that_it_falls_into(histogram: list[int], share: float) -> None:
    found = percentile(histogram, share) * 1e9
    below = sum(count for k, count in enumerate(histogram) if 2.0 ** (k + 1) <= found * (1 - 1e-9))
    up_to = sum(count for k, count in enumerate(histogram) if 2.0**k <= found * (1 + 1e-9))
    assert below <= share * sum(histogram) * (1 + 1e-9) <= up_to * (1 + 2e-9)
