"""Laws of the comparison of two samples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.lab.analysis.compare import cliffs_delta, holm, u_test

times = st.floats(min_value=1e-5, max_value=1e5)
samples = st.lists(times, min_size=1, max_size=20)
probabilities = st.lists(st.floats(min_value=0, max_value=1), max_size=20)


@given(samples, samples)
def test_u_test_is_a_probability_and_the_same_from_either_side(a: list[float], b: list[float]) -> None:
    assert 0 < u_test(a, b) <= 1
    assert u_test(b, a) == pytest.approx(u_test(a, b))
    assert cliffs_delta(b, a) == pytest.approx(-cliffs_delta(a, b))


@given(samples, samples, st.integers(min_value=-10, max_value=10), st.randoms(use_true_random=False))
def test_u_test_depends_neither_on_order_nor_on_unit(
    a: list[float], b: list[float], power: int, random: object
) -> None:
    changed = [value * 2.0**power for value in a]
    random.shuffle(changed)  # type: ignore[attr-defined]
    scaled = [value * 2.0**power for value in b]
    assert u_test(changed, scaled) == u_test(a, b)
    assert cliffs_delta(changed, scaled) == cliffs_delta(a, b)


@given(samples, samples, st.floats(min_value=1, max_value=100))
def test_a_slower_run_never_has_a_smaller_effect(a: list[float], b: list[float], factor: float) -> None:
    assert cliffs_delta(a, [value * factor for value in b]) >= cliffs_delta(a, b)


@given(probabilities)
def test_holm_never_lowers_a_probability_and_keeps_their_order(p: list[float]) -> None:
    corrected = holm(p)
    assert all(before <= after <= 1 for before, after in zip(p, corrected, strict=True))
    ranked = [after for _, after in sorted(zip(p, corrected, strict=True))]
    assert ranked == sorted(ranked)
