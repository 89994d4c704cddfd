"""How often the exponent's interval holds the true one (simulated with fixed seeds), and laws it keeps."""

from __future__ import annotations

import numpy as np
import pytest
from examples import first, share_of_examples
from hypothesis import given
from hypothesis import strategies as st

from fairlead.lab.analysis.fit import fit

pytestmark = pytest.mark.once

TRIALS = 150
times = st.floats(min_value=1e-5, max_value=1e5)
series = st.dictionaries(st.integers(min_value=1, max_value=10**6), st.lists(times, max_size=8), max_size=6)


def draw(
    random: np.random.Generator, exponent: float, sizes: tuple[int, ...], count: int, noise: float
) -> dict[int, list[float]]:
    """Times that grow as n**exponent, with lognormal noise and one in ten up to three times too slow."""
    points = {}
    for n in sizes:
        late = np.where(random.uniform(size=count) < 0.1, random.uniform(1.2, 3, size=count), 1)
        points[n] = (1e-5 * float(n) ** exponent * random.lognormal(0, noise, count) * late).tolist()
    return points


# the exponent turns the line of the logarithms, and is nothing to the noise around it
LAWS = [(1.0, (50, 100, 200)), (1.5, (10, 20, 30, 60)), (2.0, (50, 100, 200, 400, 800))]
SPREADS = [(5, 0.05, 5), (8, 0.1, 1.5), (15, 0.2, 1.5)]


@pytest.mark.parametrize(
    ("exponent", "sizes", "count", "noise", "widest"),
    first(
        [(*law, *spread) for law, spread in zip(LAWS, SPREADS, strict=True)],
        [(*law, *spread) for law in LAWS for spread in SPREADS],
    ),
)
def test_interval_of_the_exponent_holds_the_true_one_as_often_as_it_says(
    exponent: float, sizes: tuple[int, ...], count: int, noise: float, widest: float
) -> None:
    random = np.random.default_rng(len(sizes) * 100 + count)
    found = [fit(draw(random, exponent, sizes, count, noise)) for _ in range(TRIALS)]
    right = sum(one.low <= exponent <= one.high for one in found)  # type: ignore[operator]
    # 95 % are aimed at; three standard deviations of chance are 5 %
    assert right / TRIALS >= 0.90
    # and it is not much wider than the range in which 95 % of the estimates are. With 5 samples the interval
    # of a size's median is all their range, and in four of ten sizes that holds a late one
    low, high = np.quantile([one.exponent for one in found], (0.025, 0.975))  # type: ignore[arg-type]
    widths = [one.high - one.low for one in found]  # type: ignore[operator]
    assert np.median(widths) <= widest * (high - low)


@pytest.mark.parametrize(("count", "noise"), first([(5, 0.05)], [(8, 0.1), (15, 0.2)]))
def test_a_square_is_distinguished_from_a_line_and_a_cube(count: int, noise: float) -> None:
    random = np.random.default_rng(count)
    found = [fit(draw(random, 2.0, (50, 100, 200, 400), count, noise)) for _ in range(TRIALS)]
    assert all(one.low > 1 and one.high < 3 for one in found)  # type: ignore[operator]
    assert sum(one.model == "n^2" for one in found) / TRIALS >= 0.95


@pytest.mark.parametrize(
    "sizes", [(50, 100, 200), pytest.param((50, 100, 200, 400, 800), marks=pytest.mark.long)]
)
def test_a_power_between_the_laws_is_seldom_taken_for_one_of_them(sizes: tuple[int, ...]) -> None:
    random = np.random.default_rng(15)
    found = [fit(draw(random, 1.5, sizes, 10, 0.1)) for _ in range(TRIALS)]
    assert sum(one.model != "undecided" for one in found) / TRIALS <= 0.10


def test_a_straight_line_is_seldom_called_bent() -> None:
    random = np.random.default_rng(3)
    found = [fit(draw(random, 2.0, (50, 100, 200, 400), 10, 0.2)) for _ in range(TRIALS)]
    assert sum(bool(one.note and "bends" in one.note) for one in found) / TRIALS <= 0.03


@share_of_examples(0.4)
@given(series, st.randoms(use_true_random=False), st.integers(min_value=-10, max_value=10))
def test_fit_holds_its_exponent_and_depends_on_no_order_and_no_unit(
    points: dict[int, list[float]], random: object, power: int
) -> None:
    found = fit(points)
    assert (found.coefficients is None) == (found.model == "undecided")
    enough = found.exponent is not None and min(len(values) for values in points.values() if values) >= 5
    assert (found.low is not None, found.high is not None) == (enough, enough)
    if enough:
        assert found.low <= found.exponent <= found.high  # type: ignore[operator]
    shuffled = {n: list(values) for n, values in points.items()}
    for values in shuffled.values():
        random.shuffle(values)  # type: ignore[attr-defined]
    assert fit(dict(reversed(shuffled.items()))) == found
    scaled = fit({n: [value * 2.0**power for value in values] for n, values in points.items()})
    for name in ("exponent", "low", "high"):
        assert getattr(scaled, name) == pytest.approx(getattr(found, name), abs=1e-6)
