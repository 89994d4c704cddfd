"""Laws of the comparison of two samples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.lab.analysis.compare import holm
from fairlead.measure.ratio import contrast

pytestmark = pytest.mark.once

times = st.floats(min_value=1e-5, max_value=1e5)
samples = st.lists(times, min_size=1, max_size=20)
probabilities = st.lists(st.floats(min_value=0, max_value=1), max_size=20)


@given(samples, samples)
def test_a_contrast_is_the_same_from_either_side(a: list[float], b: list[float]) -> None:
    one, other = contrast(a, b), contrast(b, a)
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert 0 <= one.p <= 1
        assert one.low <= one.value <= one.high
        assert other.p == pytest.approx(one.p)
        assert other.value == pytest.approx(1 / one.value)


@given(samples, samples, st.integers(min_value=-10, max_value=10), st.randoms(use_true_random=False))
def test_a_contrast_depends_neither_on_order_nor_on_unit(
    a: list[float], b: list[float], power: int, random: object
) -> None:
    changed = [value * 2.0**power for value in a]
    random.shuffle(changed)  # type: ignore[attr-defined]
    found, same = contrast(changed, [value * 2.0**power for value in b]), contrast(a, b)
    if found is not None and same is not None:
        assert (found.value, found.p) == (pytest.approx(same.value), pytest.approx(same.p, abs=1e-6))


@given(probabilities)
def test_holm_never_lowers_a_probability_and_keeps_their_order(p: list[float]) -> None:
    corrected = holm(p)
    assert all(before <= after <= 1 for before, after in zip(p, corrected, strict=True))
    ranked = [after for _, after in sorted(zip(p, corrected, strict=True))]
    assert ranked == sorted(ranked)
