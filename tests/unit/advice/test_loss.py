"""The loss that is expected of a choice: its limits, and how often the rule is right in simulated rounds."""

from __future__ import annotations

import math
import random
from statistics import NormalDist

import pytest
from advices import candidate, work

from fairlead.advice.choosing import choose
from fairlead.advice.loss import error, expected_loss, gain, versus

pytestmark = pytest.mark.ends


BASE = {1: 1.0, 2: 1.2, 3: 1.0, 4: 1.2}


def test_rounds_that_agree_lose_what_they_show() -> None:
    slow, fast = {1: 1.1, 2: 2.2, 3: 3.3}, {1: 1.0, 2: 2.0, 3: 3.0}
    same = versus(slow, fast)
    assert same is not None
    assert same.value == pytest.approx(1.1)
    off = error(slow, fast, BASE)
    assert off == pytest.approx(0.0, abs=1e-9)
    assert expected_loss(1.1, off) == pytest.approx(0.1, abs=1e-6)
    assert expected_loss(1 / 1.1, off) == pytest.approx(0.0, abs=1e-6)
    assert versus({1: 1.0, 2: 1.0, 4: 1.0}, {1: 1.0, 2: 1.0, 3: 1.0}) is None


def test_error_of_too_few_rounds_is_that_of_another_ways_processes_or_unknown() -> None:
    spread = math.log(1.2) / math.sqrt(3)  # the standard deviation of four that are half there, half here
    assert error({1: 1.0}, {1: 2.0}, BASE) == pytest.approx(spread * math.sqrt(2))
    assert error({1: 1.0, 2: 1.0}, {1: 2.0, 2: 2.0}, BASE) == pytest.approx(spread)
    assert error({1: 1.0}, {1: 2.0}, {1: 1.0, 2: 1.2}) is None


def test_gain_is_the_median_of_the_rounds_that_both_ran_in() -> None:
    assert gain({1: 2.0, 2: 4.0, 3: 3.0}, {1: 1.0, 2: 1.0, 3: 1.0}) == 3.0
    assert gain({1: 2.0, 2: 9.0, 3: 9.0}, {1: 1.0}) == 2.0


@pytest.mark.parametrize("ratio", [0.9, 1.0, 1.2])
def test_expected_loss_is_the_mean_of_what_is_longer(ratio: float) -> None:
    sure = NormalDist(math.log(ratio), 0.3)
    drawn = [sure.inv_cdf((i + 0.5) / 20_000) for i in range(20_000)]
    mean = sum(max(0.0, math.exp(x) - 1) for x in drawn) / len(drawn)
    assert expected_loss(ratio, 0.3) == pytest.approx(mean, rel=1e-3)


def test_the_less_is_known_the_more_may_be_lost() -> None:
    losses = [expected_loss(1.0, spread) for spread in (0.01, 0.05, 0.2, 0.5)]
    assert losses == sorted(losses)


@pytest.mark.parametrize("sd", [0.05, 0.12, 0.25])
@pytest.mark.parametrize("times", [1.0, 1.1, 2.0, 20.0])
def test_choice_is_right_and_its_interval_holds_the_truth(times: float, sd: float) -> None:
    """Runs of this SD, half of which all ways of a round share: the choice costs little, and the interval
    of the speed-up leaves the truth out about once in twenty, neither much more often nor never."""
    draw = random.Random(1)
    held, lost = 0, []
    seeds = 200
    for _ in range(seeds):
        rounds = range(5)
        mood = {n: draw.gauss(0, sd * 0.7) for n in rounds}
        slow = {n: math.exp(mood[n] + draw.gauss(0, sd * 0.7)) for n in rounds}
        fast = {n: math.exp(mood[n] + draw.gauss(0, sd * 0.7)) / times for n in rounds}
        found = versus(slow, fast)
        assert found is not None
        held += found.low <= times <= found.high
        base = {n: 60.0 * math.exp(mood[n]) for n in rounds}
        candidates = [
            candidate("sequential", 1, 60.0, rounds=tuple(base.items()), speedup=1.0),
            candidate("threads", 2, 1.0, rounds=tuple(slow.items()), speedup=gain(base, slow)),
            candidate("processes", 2, 1.0, rounds=tuple(fast.items()), speedup=gain(base, fast)),
        ]
        pick = choose(candidates, work(gil=0.0, free=1.0, waiting=0.0), 100, 2)
        lost.append(times - 1 if pick.kind == "threads" else 0.0)
    assert 0.90 <= held / seeds <= 0.99
    assert sum(lost) / seeds <= 0.05, "what the wrong choices cost on average"
    if times >= 2:
        assert sum(map(bool, lost)) <= 0.01 * seeds
