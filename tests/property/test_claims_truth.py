"""Claims against a known truth: how often they are settled, how often rightly, and how wide intervals are.

``make truth`` (tools/lab_truth.py) makes thousands of them; here are some of each kind.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from examples import first
from samples import planned, sample

from fairlead.lab.analysis.claims import verdict_of
from fairlead.lab.catalogue.declared import Declared
from fairlead.lab.run.questions import Question
from fairlead.lab.run.sampling import ENOUGH, PlannedCell, SampleOrder
from fairlead.measure.ratio import Ratio, paired

pytestmark = pytest.mark.once

THRESHOLD = 1.1


def times(random: np.random.Generator, median: float, spread: float, rounds: int) -> list[float]:
    return [median * float(random.lognormal(0, spread)) for _ in range(rounds)]


def ratio(seed: int, true: float, spread: float, rounds: int) -> Ratio:
    """Of two cells whose times vary from run to run, and by half as much together from round to round."""
    random = np.random.default_rng((seed, rounds, round(100 * spread), round(10 * true)))
    drift = np.exp(random.normal(0, spread / 2, rounds))
    a, b = times(random, true, spread, rounds), times(random, 1.0, spread, rounds)
    found = paired([x * d / (y * d) for x, y, d in zip(a, b, drift, strict=True)])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("spread", "rounds"),
    first([(0.05, 3), (0.12, 12), (0.25, 30)], [(s, n) for s in (0.05, 0.12, 0.25) for n in (3, 5, 12, 30)]),
)
def test_the_interval_of_a_ratio_holds_the_true_one_in_99_of_100_cases(spread: float, rounds: int) -> None:
    trials = 2000
    held = 0
    for seed in range(trials):
        found = ratio(seed, 2.0, spread, rounds)
        held += found.low <= 2.0 <= found.high
    # three standard deviations of chance are 0.7 % either way: an interval that is too wide fails as well
    assert 0.983 <= held / trials <= 0.997


TOOL = Path(__file__).parents[2] / "tools" / "lab_truth.py"
spec = importlib.util.spec_from_file_location("lab_truth", TOOL)
assert spec is not None
assert spec.loader is not None
lab_truth = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lab_truth)


@pytest.mark.parametrize(
    "name", first(["lognormal", "modes", "five runs", "fixed cost"], lab_truth.SCENARIOS)
)
def test_reports_of_times_of_known_truth_are_right(name: str) -> None:
    """Through plan, order, questions, summary and report."""
    tally = lab_truth.simulate(name, 2 if name == "five runs" else 4)
    assert list(tally.faults()) == []
    assert tally.wrong == 0
    assert tally.claims >= 12
    assert (tally.two > 0) == (name in ("modes", "rare"))


def test_nothing_is_settled_while_others_take_a_third_of_the_time() -> None:
    tally = lab_truth.simulate("load", 2)
    assert (tally.claims >= 12, tally.settled) == (True, 0)


def test_a_published_figure_on_the_other_side_is_a_contradiction_only_once_it_is_settled() -> None:
    assert verdict_of((1.5, 1.9), 1.1, [300.0]) == ("settled", True)
    assert verdict_of((0.9, 1.0), 1.1, [1.85]) == ("contradicts the source", False)
    assert verdict_of((0.9, 1.2), 1.1, [1.85]) == ("open", True)
    assert verdict_of((0.9, 1.0), 1.1, [1.85, 1.01]) == ("settled", False), "sources that differ"
    assert verdict_of(None, 1.1, []) == ("open", True)


@pytest.mark.parametrize(
    ("ends", "sentence"),
    [
        ((1.2, 1.9), "3 threads are slower"),
        ((0.9, 1.05), "3 threads are no slower"),
        ((1.03, 1.07), "3 threads are no slower, or by less than 10 %"),
    ],
)
def test_a_difference_below_the_threshold_is_reported_as_small_and_not_as_none(
    ends: tuple[float, float], sentence: str
) -> None:
    claim = Declared(
        topic="threads",
        says="{n} threads are slower",
        otherwise="{n} threads are no slower",
        more_than=THRESHOLD,
    )
    _, above = verdict_of(ends, THRESHOLD, [])
    assert claim.said(above, ends, 3) == sentence


def test_a_claim_without_sentences_names_the_two_that_it_compares() -> None:
    claim = Declared(topic="locks")
    assert claim.said(True, (1.2, 1.9), 3, "theirs", "ours") == "ours takes less time than theirs"
    assert claim.said(False, (0.7, 0.9), 3, "theirs", "ours") == "ours takes no less time than theirs"


class Simulated:
    """A run on a machine whose clock only samples move: cells with a spread and a cost of their own."""

    def __init__(
        self, seed: int, budget_s: float, spreads: dict[str, float], costs: dict[str, float]
    ) -> None:
        self.now = 0.0
        random = np.random.default_rng(seed)
        series = tuple(planned(name, (10,)) for name in spreads)
        order = SampleOrder(series, budget_s, lambda: self.now, self.questions)
        self.cells: dict[str, PlannedCell] = {}
        for one in order.planned():
            name = one.cell.series.experiment
            self.cells[name] = one.cell
            cost = 0.0 if one.skip else costs[name]
            self.now += cost
            one.cell.samples[one.round] = sample(
                name, 10, float(random.lognormal(0, spreads[name])),
                status="skipped" if one.skip else "ok", reason=one.skip, elapsed_s=cost,
            )  # fmt: skip

    def questions(self, _lines: object, kept: object) -> list[Question]:
        by_name = {cell.series.experiment: cell for cell in kept}  # type: ignore[attr-defined]
        return [
            *(Question((cell,), "time") for name, cell in by_name.items() if name == "e"),
            Question((by_name["a"], by_name["b"]), "ratio"),
            Question((by_name["c"], by_name["d"]), "ratio"),
        ]


def test_rounds_go_to_the_claim_whose_interval_they_narrow_most_per_second() -> None:
    spreads = {"a": 0.3, "b": 0.3, "c": 0.02, "d": 0.02}
    even = dict.fromkeys(spreads, 1.0)
    noisy = Simulated(1, 100.0, spreads, even)
    rounds = {name: len(cell.samples) for name, cell in noisy.cells.items()}
    assert rounds["a"] == rounds["b"] > 3 * rounds["c"]
    assert rounds["c"] == rounds["d"] >= 5
    assert noisy.now > 95, "to the end of the budget"
    dear = Simulated(1, 400.0, dict.fromkeys(spreads, 0.1), {**even, "c": 10.0, "d": 10.0})
    assert len(dear.cells["a"].samples) > len(dear.cells["c"].samples) > 6, "a dear claim gets its part"


def test_cell_that_no_claim_is_about_gets_no_further_round_while_claims_can_use_it() -> None:
    spreads = {"a": 0.1, "b": 0.1, "c": 0.1, "d": 0.1, "e": 0.5}
    costs = {**dict.fromkeys(spreads, 1.0), "e": 0.1}
    rounds = len(Simulated(3, 100.0, spreads, costs).cells["e"].samples)
    assert rounds <= ENOUGH + 2.0 / costs["e"], "what the last round of a claim would not have fitted into"


def test_exponent_of_two_sizes_that_are_close_is_as_uncertain_as_noise_makes_it() -> None:
    """Between 5 and 6 threads a sample that took 30 times as long is a slope of 19."""
    noisy = {5: [1.0, 1.0, 30.0], 6: [1.0, 30.0, 1.0]}
    cells = [PlannedCell(planned("a", (n,)), n) for n in noisy]
    for cell in cells:
        cell.samples.update({r: sample("a", cell.n, time) for r, time in enumerate(noisy[cell.n])})
    assert 100 < Question(tuple(cells), "exponent").width() < math.inf


def test_cells_of_one_claim_are_measured_in_the_same_rounds() -> None:
    cells = Simulated(2, 60.0, {"a": 0.3, "b": 0.1, "c": 0.2, "d": 0.1}, dict.fromkeys("abcd", 1.0)).cells
    assert cells["a"].samples.keys() == cells["b"].samples.keys()
    assert cells["c"].samples.keys() == cells["d"].samples.keys()
    assert math.isfinite(Question((cells["a"], cells["b"]), "ratio").width())
