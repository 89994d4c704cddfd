"""The exponent, the law, and what is noted of both."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from fairlead.errors import UsageError
from fairlead.lab.analysis.fit import fit, growth

pytestmark = pytest.mark.ends

SIZES = (50, 100, 200, 400)


def series(
    law: Callable[[float], float], sizes: tuple[int, ...] = SIZES, count: int = 9, noise: float = 0.03
) -> dict[int, list[float]]:
    random = np.random.default_rng(7)
    return {n: (law(n) * random.lognormal(0, noise, count)).tolist() for n in sizes}


@pytest.mark.parametrize(
    ("law", "exponent", "model"),
    [
        (lambda n: 2e-5 * n * n, 2.0, "n^2"),
        (lambda n: 0.004 + 2e-5 * n * n, 1.9, "n^2"),
        (lambda n: 1e-4 * n * np.log(n), 1.2, "n log n"),
        (lambda n: 0.3, 0.0, "1"),  # noqa: ARG005
    ],
)
def test_fit_of_a_clean_law_finds_it(law: Callable[[float], float], exponent: float, model: str) -> None:
    found = fit(series(law))
    assert found.exponent == pytest.approx(exponent, abs=0.1)
    assert found.low <= found.exponent <= found.high  # type: ignore[operator]
    assert (found.model, found.note) == (model, None)
    intercept, slope = found.coefficients  # type: ignore[misc]
    n = np.array(SIZES, dtype=float)
    drawn = intercept + slope * growth(found.model, n)
    assert drawn == pytest.approx([law(size) for size in SIZES], rel=0.1)


MORE = ": run with 3 --sizes or more, and the --budget for them"


@pytest.mark.parametrize(
    ("points", "exponent", "note"),
    [
        (
            series(lambda n: 1e-3 * n),
            1,
            r"n( log n)? and n.* over a much wider range than 50 to 400 tell more",
        ),
        (series(lambda n: 1e-7 * n**3), 3, ".*do not settle it.*"),
        ({n: [2e-5 * n * n] for n in SIZES}, 2, ".*fewer than 5 samples.*"),
        (series(lambda n: 2e-5 * n * n, sizes=(50, 100)), 2, f"two sizes cannot show a bend{MORE}"),
    ],
)
def test_fit_that_settles_no_law_has_an_exponent_and_says_why(
    points: dict[int, list[float]], exponent: float, note: str
) -> None:
    found = fit(points)
    assert found.exponent == pytest.approx(exponent, abs=0.1)
    assert (found.model, found.coefficients) == ("undecided", None) or len(points) == 2
    assert re.fullmatch(note, found.note or "")
    single = min(map(len, points.values())) < 5
    assert ((found.low, found.high) == (None, None)) == single, "no certainty from one sample a size"


@pytest.mark.parametrize(
    ("points", "start"),
    [
        ({}, "no size"),
        ({100: []}, "no size"),
        ({100: [1.0] * 9}, "one size"),
        ({100: [1.0] * 9, 200: []}, "one size"),
    ],
)
def test_fit_of_fewer_than_two_sizes_has_no_exponent(points: dict[int, list[float]], start: str) -> None:
    found = fit(points)
    assert (found.exponent, found.low, found.high, found.model) == (None, None, None, "undecided")
    assert found.note == f"{start} was measured{MORE}"


def test_fit_with_a_bimodal_size_gives_the_exponent_and_says_so() -> None:
    found = fit(series(lambda n: 2e-5 * n * n) | {400: [0.19, 4.1, 0.2, 4.2, 0.195, 4.05, 0.193, 4.15]})
    assert found.exponent is not None
    assert re.fullmatch("1 of 4 sizes have two populations.*", found.note or "")


def test_fit_of_a_square_behind_a_large_fixed_cost_holds_every_local_slope_in_its_interval() -> None:
    points = series(lambda n: 0.5 + 2e-5 * n * n, noise=0.005)
    found = fit(points)
    local = np.diff(np.log([np.median(points[n]) for n in SIZES])) / np.diff(np.log(SIZES))
    assert found.low is not None
    assert found.low <= local.min() <= local.max() <= found.high
    assert found.model == "undecided"
    assert re.fullmatch(r"the curve bends, from n\^.* over these sizes", found.note or "")


def test_fit_of_times_all_over_the_place_has_an_interval_that_says_so() -> None:
    found = fit(series(lambda n: 2e-5 * n * n, sizes=(50, 70, 100), noise=0.5, count=7))
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low > 0.5


@pytest.mark.parametrize("unit", [1.0, 2.0, 1e3, 1e-6])
def test_fit_of_samples_without_any_spread_is_the_same_in_every_unit(unit: float) -> None:
    found = fit({1: [0.25 * unit] * 6, 2: [unit] * 6, 3: [unit] * 6})
    assert (found.low, found.high) == (pytest.approx(found.exponent), pytest.approx(found.exponent))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0])
def test_fit_refuses_what_is_no_time(bad: float) -> None:
    with pytest.raises(UsageError, match="finite numbers above zero"):
        fit({50: [1.0, bad], 100: [1.0]})


def test_fit_gives_the_slope_of_scipy_through_the_medians() -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy is the oracle; install the oracle group")
    points = series(lambda n: 3e-5 * n**1.7, noise=0.2)
    theirs = stats.linregress(np.log(SIZES), np.log([np.median(points[n]) for n in SIZES]))
    assert fit(points).exponent == pytest.approx(theirs.slope)
