"""Laws that the description of a cell keeps for any times, and how often its interval is right."""

from __future__ import annotations

import numpy as np
import pytest
from examples import first
from hypothesis import given
from hypothesis import strategies as st

from fairlead.lab.analysis.modes import FEWEST, modes
from fairlead.lab.analysis.statistics import describe, interval

pytestmark = pytest.mark.once

times = st.floats(min_value=1e-5, max_value=1e5)
any_time = st.floats(min_value=1e-12, max_value=1e12)


@given(st.lists(times, max_size=25))
def test_describe_never_fails_and_keeps_its_order(values: list[float]) -> None:
    found = describe(values)
    if values:
        assert None not in (found.median, found.q1, found.q3)
        assert found.outliers <= len(values) / 2
        assert (found.low is None, found.high is None) == (len(values) < FEWEST,) * 2
    if len(values) >= FEWEST:
        slack = 1 + 1e-12
        assert min(values) <= found.low * slack  # type: ignore[operator]
        assert found.low <= found.median * slack  # type: ignore[operator]
        assert found.median <= found.high * slack  # type: ignore[operator]
        assert found.high <= max(values) * slack  # type: ignore[operator]


@given(st.lists(any_time, max_size=12))
def test_describe_of_any_times_never_fails(values: list[float]) -> None:
    assert describe(values).outliers <= len(values)


@given(
    st.lists(times, min_size=1, max_size=25),
    st.randoms(use_true_random=False),
    st.integers(min_value=-20, max_value=20),
)
def test_describe_depends_on_no_order_and_no_unit(values: list[float], random: object, power: int) -> None:
    plain, scaled = describe(values), describe([value * 2.0**power for value in values])
    random.shuffle(values)  # type: ignore[attr-defined]
    assert describe(values) == plain
    assert scaled.outliers == plain.outliers
    for name in ("median", "iqr", *(("low", "high") if len(values) >= FEWEST else ())):
        assert getattr(scaled, name) == getattr(plain, name) * 2.0**power
    assert scaled.modes == tuple(mode * 2.0**power for mode in plain.modes)


@given(st.lists(times, min_size=1, max_size=20), st.data())
def test_a_slower_sample_never_makes_the_median_faster(values: list[float], data: st.DataObject) -> None:
    place = data.draw(st.integers(min_value=0, max_value=len(values) - 1))
    slower = values.copy()
    slower[place] *= data.draw(st.floats(min_value=1, max_value=100))
    before, after = describe(values), describe(slower)
    for name in ("median", *(("low", "high") if len(values) >= FEWEST else ())):
        assert getattr(after, name) >= getattr(before, name)


@given(st.lists(times, min_size=5, max_size=30))
def test_modes_are_one_or_two_ascending_and_within_the_values(values: list[float]) -> None:
    found = modes(values)
    assert len(found) in (1, 2)
    assert min(values) <= found[0] <= found[-1] <= max(values)


@pytest.mark.parametrize(
    ("size", "spread"),
    first(
        [(5, 0.05), (8, 0.2), (30, 0.05)],
        [(n, spread) for n in (5, 6, 8, 10, 20, 30) for spread in (0.05, 0.2)],
    ),
)
def test_interval_of_the_median_holds_the_true_one_as_often_as_it_says(size: int, spread: float) -> None:
    drawn = np.sort(np.random.default_rng(size).lognormal(0, spread, (500, size)), axis=1)
    right = sum(low <= 1 <= high for low, high in map(interval, drawn))
    # 95 % are aimed at; order statistics are few, and 500 trials leave 2 % of chance
    assert right / 500 > 0.89
