"""The loss that is expected of a choice: its limits, and how often the rule is right in simulated rounds."""

from __future__ import annotations

import math
import random
from statistics import NormalDist

import pytest
from advices import candidate, work

from fairlead.advice.choosing import choose
from fairlead.advice.loss import UNKNOWN, expected_loss, versus
from fairlead.lab.analysis.statistics import Ratio

pytestmark = pytest.mark.ends


def test_rounds_that_agree_lose_what_they_show_and_two_are_uncertain() -> None:
    same = versus({1: 1.1, 2: 2.2, 3: 3.3}, {1: 1.0, 2: 2.0, 3: 3.0})
    assert same is not None
    assert same.value == pytest.approx(1.1)
    assert expected_loss(1.1, same) == pytest.approx(0.1, abs=1e-6)
    assert expected_loss(1 / 1.1, same) == pytest.approx(0.0, abs=1e-6)
    assert versus({1: 1.0, 2: 1.0, 4: 1.0}, {1: 1.0, 2: 1.0, 3: 1.0}) is None
    assert expected_loss(1.0, None) == pytest.approx(UNKNOWN / math.sqrt(2 * math.pi), rel=0.1)


@pytest.mark.parametrize("ratio", [0.9, 1.0, 1.2])
def test_expected_loss_is_the_mean_of_what_is_longer(ratio: float) -> None:
    sure = NormalDist(math.log(ratio), 0.3)
    half = math.exp(1.96 * 0.3)
    drawn = [sure.inv_cdf((i + 0.5) / 20_000) for i in range(20_000)]
    mean = sum(max(0.0, math.exp(x) - 1) for x in drawn) / len(drawn)
    found = Ratio(ratio, ratio / half, ratio * half, rounds=5)
    assert expected_loss(ratio, found) == pytest.approx(mean, rel=1e-3)


def test_the_less_is_known_the_more_may_be_lost() -> None:
    def loss(spread: float) -> float:
        rounds = {n: math.exp(spread * (-1) ** n) for n in range(6)}
        return expected_loss(1.0, versus(rounds, dict.fromkeys(range(6), 1.0)))

    losses = [loss(spread) for spread in (0.01, 0.05, 0.2, 0.5)]
    assert losses == sorted(losses)


@pytest.mark.parametrize("sd", [0.05, 0.12, 0.25])
@pytest.mark.parametrize("gain", [1.0, 1.1, 2.0, 20.0])
def test_choice_is_right_and_its_interval_holds_the_truth(gain: float, sd: float) -> None:
    """Runs of this SD, half of which both ways of a round share: the choice costs little, and the interval
    of the speed-up leaves the truth out about once in twenty, neither much more often nor never."""
    draw = random.Random(1)
    held, lost = 0, []
    seeds = 200
    for _ in range(seeds):
        rounds = range(5)
        mood = {n: draw.gauss(0, sd * 0.7) for n in rounds}
        slow = {n: math.exp(mood[n] + draw.gauss(0, sd * 0.7)) for n in rounds}
        fast = {n: math.exp(mood[n] + draw.gauss(0, sd * 0.7)) / gain for n in rounds}
        found = versus(slow, fast)
        assert found is not None
        held += found.low <= gain <= found.high
        total = {name: sorted(times.values())[2] for name, times in (("slow", slow), ("fast", fast))}
        candidates = [
            candidate("sequential", 1, 60.0),
            candidate("threads", 2, total["slow"], rounds=tuple(slow.items())),
            candidate("processes", 2, total["fast"], rounds=tuple(fast.items())),
        ]
        pick = choose(candidates, work(gil=0.0, free=1.0, waiting=0.0), 100, 2)
        lost.append(gain - 1 if pick.kind == "threads" else 0.0)
    assert 0.90 <= held / seeds <= 0.99
    assert sum(lost) / seeds <= 0.05, "what the wrong choices cost on average"
    if gain >= 2:
        assert sum(map(bool, lost)) <= 0.01 * seeds
