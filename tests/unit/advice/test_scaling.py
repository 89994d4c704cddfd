"""The law behind throughput over workers is found again where there is one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.advice.scaling import curve

pytestmark = pytest.mark.ends


def throughput(n: int, one: float, alpha: float, beta: float) -> float:
    return one * n / (1 + alpha * (n - 1) + beta * n * (n - 1))


def test_laws_are_found_again_and_points_that_follow_none_have_none() -> None:
    found = curve("threads", {n: throughput(n, 50.0, 0.05, 0.001) for n in (1, 2, 4, 8, 16, 32, 64)})
    assert (found.law, found.one, found.alpha, found.beta) == (
        "usl", pytest.approx(50.0), pytest.approx(0.05), pytest.approx(0.001),
    )  # fmt: skip
    assert found.best_workers == pytest.approx((0.95 / 0.001) ** 0.5)
    found = curve("processes", {n: throughput(n, 10.0, 0.1, 0.0) for n in (1, 2, 4)})
    assert (found.law, found.beta, found.best_workers) == ("amdahl", 0.0, None)
    assert found.limit == pytest.approx(10.0)
    assert curve("processes", {1: 10.0, 2: 19.0}).law == "none"
    assert curve("threads", {1: 10.0, 2: 60.0, 4: 9.0, 8: 70.0}).law == "none"


@given(
    st.dictionaries(
        st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128]), st.floats(1e-3, 1e7), min_size=1, max_size=8
    )
)
def test_each_coefficient_is_finite_and_not_negative(points: dict[int, float]) -> None:
    found = curve("threads", points)
    if found.law != "none":
        assert found.one is not None
        assert 0 < found.one < math.inf
        assert all(one is not None and 0 <= one < math.inf for one in (found.alpha, found.beta))
        assert found.limit is None or found.limit > 0
