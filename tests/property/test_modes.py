"""How often one population is called two, and two are found: simulated with fixed seeds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from examples import first

from fairlead.lab.analysis.modes import FEWEST, modes

pytestmark = pytest.mark.once

Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
TRIALS = 600

ONE: dict[str, Draw] = {
    "uniform": lambda random, shape: random.uniform(size=shape),
    "normal": lambda random, shape: random.normal(size=shape),
    "normal, 5 % of spread": lambda random, shape: random.normal(0, 0.05, size=shape),
    "exponential": lambda random, shape: random.exponential(size=shape),
    "laplace": lambda random, shape: random.laplace(size=shape),
    "student": lambda random, shape: random.standard_t(3, size=shape),
}


def share_of_two(draw: Draw, size: int) -> float:
    rows = np.exp(draw(np.random.default_rng(1000 + size), (TRIALS, size)))
    return sum(len(modes(row.tolist())) == 2 for row in rows) / TRIALS


@pytest.mark.parametrize("size", first([5, 8, 15], [6, 7, 10, 12, 20, 30]))
@pytest.mark.parametrize("name", ONE)
def test_one_population_is_hardly_ever_called_two(name: str, size: int) -> None:
    # 1 % is aimed at for the worst, the uniform; three standard deviations of chance are allowed for
    assert share_of_two(ONE[name], size) <= 0.01 + 3 * (0.01 * 0.99 / TRIALS) ** 0.5


@pytest.mark.parametrize("size", first([8, 20], [5, 10, 15, 30]))
def test_one_population_with_a_tenth_of_disturbed_samples_is_rarely_called_two(size: int) -> None:
    def disturbed(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        late = np.log(random.uniform(1.2, 3, size=shape))
        return random.normal(0, 0.05, size=shape) + np.where(random.uniform(size=shape) < 0.1, late, 0)

    assert share_of_two(disturbed, size) <= 0.05


@pytest.mark.parametrize(("size", "least"), [(8, 0.4), (10, 0.7), (15, 0.95), (30, 0.99)])
def test_two_populations_far_apart_are_found(size: int, least: float) -> None:
    def two(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        return random.normal(0, 0.2, size=shape) + np.where(random.uniform(size=shape) < 0.5, 3.0, 0)

    assert share_of_two(two, size) >= least


def test_few_or_equal_samples_are_one_population_and_tight_groups_two() -> None:
    assert modes([0.190, 4.10, 0.191, 4.11, 0.1905]) == (0.1905, pytest.approx(4.105))
    assert modes([1.0, 1.001, 1.05, 1.051, 1.0005, 1.0505]) == (pytest.approx(1.0255),)
    assert modes([1.0, 1.0, 9.0, 9.0][: FEWEST - 1]) == (5.0,)
    assert modes([]) == ()
    assert modes([0.25] * 10) == (0.25,)
