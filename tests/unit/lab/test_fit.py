"""The exponent, the law, and what is noted of both."""

from __future__ import annotations

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
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.exponent <= found.high
    assert (found.model, found.note) == (model, None)
    assert found.coefficients is not None
    intercept, slope = found.coefficients
    n = np.array(SIZES, dtype=float)
    drawn = intercept + slope * growth(found.model, n)
    assert drawn == pytest.approx([law(size) for size in SIZES], rel=0.1)


def test_fit_of_a_line_cannot_separate_n_from_n_log_n_and_says_so() -> None:
    found = fit(series(lambda n: 1e-3 * n))
    assert (found.model, found.coefficients) == ("undecided", None)
    assert found.exponent == pytest.approx(1, abs=0.05)
    assert found.note is not None
    assert "n and n log n fit about equally well" in found.note or "n log n and n fit" in found.note
    assert found.note.endswith("--sizes over a much wider range than 50 to 400 tell more")


def test_fit_of_a_cube_is_none_of_the_laws() -> None:
    found = fit(series(lambda n: 1e-7 * n**3))
    assert found.exponent == pytest.approx(3, abs=0.1)
    assert found.model == "undecided"
    assert found.note is not None
    assert "do not settle it" in found.note


def test_fit_of_a_square_behind_a_large_fixed_cost_holds_every_local_slope_in_its_interval() -> None:
    points = series(lambda n: 0.5 + 2e-5 * n * n, noise=0.005)
    found = fit(points)
    assert found.low is not None
    assert found.high is not None
    medians = [np.median(points[n]) for n in SIZES]
    local = np.diff(np.log(medians)) / np.diff(np.log(SIZES))
    assert found.low <= local.min()
    assert found.high >= local.max()
    assert found.model == "undecided"
    assert found.note is not None
    assert found.note.startswith("the curve bends, from n^")
    assert found.note.endswith(" over these sizes")


def test_fit_with_a_bimodal_size_gives_the_exponent_and_says_so() -> None:
    points = series(lambda n: 2e-5 * n * n)
    points[400] = [0.19, 4.1, 0.2, 4.2, 0.195, 4.05, 0.193, 4.15]
    found = fit(points)
    assert found.exponent is not None
    assert found.note is not None
    assert found.note.startswith("1 of 4 sizes have two populations")


def test_fit_of_times_all_over_the_place_has_an_interval_that_says_so() -> None:
    found = fit(series(lambda n: 2e-5 * n * n, sizes=(50, 70, 100), noise=0.5, count=7))
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low > 0.5


@pytest.mark.parametrize(
    ("points", "start"),
    [
        ({}, "no size was measured"),
        ({100: []}, "no size was measured"),
        ({100: [1.0] * 9}, "one size was measured"),
        ({100: [1.0] * 9, 200: []}, "one size was measured"),
    ],
)
def test_fit_of_fewer_than_two_sizes_has_no_exponent(points: dict[int, list[float]], start: str) -> None:
    found = fit(points)
    assert (found.exponent, found.low, found.high, found.model) == (None, None, None, "undecided")
    assert found.note == f"{start}: run with 3 --sizes or more, and the --budget for them"


def test_fit_of_two_sizes_gives_an_exponent_and_says_what_it_cannot_know() -> None:
    found = fit(series(lambda n: 2e-5 * n * n, sizes=(50, 100)))
    assert found.exponent == pytest.approx(2, abs=0.1)
    assert found.note == "two sizes cannot show a bend: run with 3 --sizes or more, and the --budget for them"


def test_fit_of_single_samples_a_size_is_noted() -> None:
    found = fit({n: [2e-5 * n * n] for n in SIZES})
    assert found.exponent == pytest.approx(2)
    assert (found.low, found.high) == (None, None), "no certainty from one sample a size"
    assert found.model == "undecided"
    assert found.note is not None
    assert "fewer than 5 samples" in found.note


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
