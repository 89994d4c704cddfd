"""What a claim concludes from samples, and what keeps it open."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from samples import sample

from fairlead.lab.analysis.claims import FEWEST_OF_TWO, Taken, claims
from fairlead.lab.analysis.summarise import summarise
from fairlead.lab.catalogue import registry
from fairlead.lab.catalogue.declared import Declared
from fairlead.record.sample import Sample
from fairlead.record.summary import Claim
from fairlead.report.summary import claims as words

pytestmark = pytest.mark.ends

HERE = {"hostname": "here", "cores": 2, "affinity": [0, 1], "policy": "other"}
PY = {"name": "3.13", "implementation": "CPython", "version": "3.13.0", "executable": "/py"}
COUNTDOWN = {"steps": 5_000_000, "interval_ms": 5, "scheduler": "off", "policy": "other", "cores": "all"}
RR = {"work": "yield", "policy": "rr", "cores": "one"}


def taken(
    experiment: str, params: dict[str, Any], times: Callable[[int], Iterable[float]], *sizes: int, **more: Any
) -> list[Sample]:
    """A sample of each size for each time, round by round."""
    return [
        sample(
            experiment, n, time, params={"n": n, **params}, round=number, elapsed_s=1.0,
            **{"interpreter": PY, "environment": HERE, "run": "first", **more},
        )
        for n in sizes for number, time in enumerate(times(n))
    ]  # fmt: skip


def noisy(seed: int, median: float, count: int = 8, spread: float = 0.03) -> list[float]:
    return [float(median * one) for one in np.random.default_rng(seed).lognormal(0, spread, count)]


def countdown(seed: int, *sizes: int, speed: float = 1.0, **more: Any) -> list[Sample]:
    """One thread is as fast as two; ``speed`` is what the machine takes longer in this run."""
    return taken("gil.countdown", COUNTDOWN, lambda n: noisy(10 * seed + n, 0.08 * speed), *sizes, **more)


def only(samples: list[Sample]) -> Claim:
    (claim,) = summarise(samples).claims
    return claim


def test_two_sides_of_different_runs_are_not_paired() -> None:
    claim = only([*countdown(1, 1, speed=1.5, run="spring"), *countdown(2, 2, run="autumn")])
    assert (claim.verdict, claim.value, claim.low) == ("open", None, None)
    assert words.why_open(claim) == "its two sides were never measured in one run"


def test_all_runs_count_each_once_and_two_are_as_uncertain_as_two_are() -> None:
    alone = only(countdown(1, 1, 2))
    two = only([*countdown(1, 1, 2), *countdown(2, 1, 2, speed=1.5, run="second")])
    assert (alone.rounds, alone.runs, two.rounds, two.runs) == (8, 1, 16, 2)
    means = [math.log(only(countdown(seed, 1, 2)).value or 0) for seed in (1, 2)]
    assert math.log(two.value or 0) == pytest.approx(sum(means) / 2)
    assert math.log(two.high or 0) - math.log(two.value or 0) == pytest.approx(
        63.657 * abs(means[0] - means[1]) / 2, rel=1e-4
    )
    many = only([s for n in range(1, 6) for s in countdown(n, 1, 2, speed=1 + n / 3, run=str(n))])
    assert (many.verdict, many.runs, many.rounds) == ("settled", 5, 40)
    assert "over 5 runs" in words.sentence(many)


def test_what_of_the_runs_is_not_in_the_ratio_is_said() -> None:
    claim = only([*countdown(1, 1, 2), *countdown(2, 2, run="second"), *countdown(3, 1)])
    assert claim.runs == 1
    assert claim.note == (
        "1 of 2 runs have no round with both times; of 8 samples there is another of the same run and round, "
        "which counts"
    )
    assert claim.note in words.sentence(claim)


def test_machines_are_claimed_about_apart() -> None:
    there = {**HERE, "hostname": "there"}
    found = summarise([*countdown(1, 1, 2), *countdown(2, 1, 2, environment=there, run="there")]).claims
    assert [(one.runs, one.rounds) for one in found] == [(1, 8), (1, 8)]
    assert [one.text.rpartition(" ")[2] for one in found] == ["(here)", "(there)"]


@pytest.mark.parametrize("others", [{"foreign_share": 0.9}, {"stolen_share": 0.4}, {"throttled_s": 0.5}])
def test_claim_is_not_settled_by_samples_that_others_disturbed(others: dict[str, float]) -> None:
    claim = only(countdown(1, 1, 2, **others))
    assert (claim.verdict, claim.low is None) == ("open", False)
    assert words.why_open(claim).startswith("disturbed: others took ")
    law = {"work": "sleep0", "scheduler": "off", "policy": "other", "cores": "all"}
    square = taken("square.mutex", law, lambda n: noisy(n, 1e-5 * n * n), 50, 100, 200, **others)
    claim = only(square)
    assert (claim.verdict, claim.low is None) == ("open", False)
    assert words.why_open(claim).startswith("disturbed: others took ")


def test_ways_that_others_disturbed_are_not_ranked() -> None:
    def standings(foreign: float) -> set[str]:
        ways = [("sequential", 1.0), ("threads", 0.5)]
        params = {"workers": "default", "delay_ms": 100, "policy": "other", "cores": "all"}
        made = summarise(
            [
                one
                for case, time in ways
                for one in taken(
                    f"models.io-{case}",
                    {**params, "case": case},
                    lambda n, t=time: noisy(n, t),
                    30,
                    foreign_share=foreign,
                )
            ]
        )
        return {place.standing for place in made.rankings[0].places}

    assert standings(0.02) == {"best", "slower"}
    assert standings(0.4) == {"undecided"}


def test_a_median_of_two_runs_has_no_interval_and_one_of_three_is_over_them() -> None:
    runs = [countdown(seed, 1, speed=1 + seed / 10, run=str(seed)) for seed in range(3)]
    two, three = ([one for own in runs[:count] for one in own] for count in (2, 3))
    (cell,) = summarise(two).series[0].cells
    assert (cell.low, cell.modes) == (None, (cell.median,)), "runs that differ are no modes"
    (cell,) = summarise(three).series[0].cells
    logs = [math.log(float(np.median([one.wall_s for one in own]))) for own in runs]  # type: ignore[misc]
    reach = 4.303 * float(np.std(logs, ddof=1)) / math.sqrt(3)
    assert cell.high == pytest.approx(math.exp(sum(logs) / 3 + reach), rel=1e-3)


def two_modes(rounds: int, fast: int, slow_ratio: float, fast_ratio: float) -> list[Sample]:
    def times(n: int) -> list[float]:
        ratios = [fast_ratio] * fast + [slow_ratio] * (rounds - fast)
        return [
            time * (ratio if n == 1 else 1)
            for time, ratio in zip(noisy(n, 0.08, rounds), ratios, strict=True)
        ]

    return taken("gil.countdown", COUNTDOWN, times, 1, 2)


@pytest.mark.parametrize("fast", [5, 1], ids=["often", "rarely"])
def test_ratio_with_two_modes_shows_both_and_no_interval(fast: int) -> None:
    claim = only(two_modes(12, fast, 114, 2.5))
    assert (claim.value, claim.low, claim.high, claim.unseen) == (None, None, None, None)
    assert [mode.rounds for mode in claim.modes] == [fast, 12 - fast]
    assert [mode.value for mode in claim.modes] == pytest.approx([2.5, 114], rel=0.05)
    assert claim.verdict == "contradicts the source", "both are above the threshold, as no published one is"
    assert words.ours(claim) == " or ".join(words.value(claim, mode.value) for mode in claim.modes)
    claim = only(two_modes(12, fast, 114, 1.0))
    assert claim.verdict == "open", "the fast one is not"


def test_two_modes_need_ten_rounds_and_a_single_far_sample_is_a_mode_only_if_it_is_far() -> None:
    claim = only(two_modes(FEWEST_OF_TWO - 1, 4, 114, 2.5))
    assert (claim.verdict, len(claim.modes)) == ("open", 2)
    assert words.why_open(claim) == "two modes need 10 rounds or more: give a larger --budget"
    claim = only(two_modes(12, 1, 2, 6))
    assert claim.modes == ()
    assert claim.unseen == pytest.approx(1 - 0.01 ** (1 / 12))
    assert "a mode in fewer than 32 % of rounds may be unseen" in words.sentence(claim)
    assert words.tally([claim]).endswith("; a mode in fewer than 32 % of rounds may be unseen")


def at(n: float) -> float:
    """The published time of the lock between processes on one core, SCHED_RR, as a power between sizes."""
    points = registry.catalogue()["square.process-mutex"].subject.references
    (reference,) = (one for one in points if one.variant == {"policy": "rr", "cores": "one"})
    return reference.at(int(n)) or 0.0


def rr_claim(law: Callable[[int], float]) -> Claim:
    found = summarise(
        taken("square.process-mutex", RR, lambda n: noisy(n, law(n), spread=0.02), 40, 60, 90, 130)
    )
    (claim,) = (one for one in found.claims if one.topic == "process lock, SCHED_RR")
    return claim


def test_documents_own_curve_at_our_sizes_agrees_with_itself() -> None:
    claim = rr_claim(at)
    (published,) = claim.published
    assert published.value == pytest.approx(1.71, abs=0.01), "n^2.06 is of 40 to 360"
    assert claim.low is not None
    assert claim.high is not None
    assert claim.low <= published.value <= claim.high
    assert claim.verdict == "settled"


def test_square_behind_a_fixed_cost_contradicts_no_square() -> None:
    claim = rr_claim(lambda n: 0.02 + 2e-6 * n * n)
    assert claim.high is not None
    assert claim.high < 1.5
    assert claim.verdict == "open"
    assert words.why_open(claim).startswith("behind a fixed cost it may be n^")
    claim = rr_claim(lambda n: 2e-4 * n)
    assert claim.verdict == "contradicts the source", "a line has nothing steep behind it"


def test_published_exponent_of_other_sizes_than_ours_is_none() -> None:
    law = {"work": "sleep0", "scheduler": "off", "policy": "other", "cores": "all"}
    claim = only(taken("square.thread-start", law, lambda n: noisy(n, 1e-5 * n * n), 40, 60, 90, 130))
    assert claim.published == ()


def test_exponent_of_several_runs_is_the_mean_of_theirs() -> None:
    def run(name: str, power: float) -> list[Sample]:
        law = {"work": "sleep0", "scheduler": "off", "policy": "other", "cores": "all"}
        return taken(
            "square.mutex", law, lambda n: noisy(n, 1e-5 * n**power, spread=0.001), 50, 100, 200, run=name
        )

    claim = only([*run("a", 1.9), *run("b", 2.0), *run("c", 2.1)])
    assert claim.value == pytest.approx(2.0, abs=0.01)
    assert claim.high is not None
    assert claim.high - 2.0 == pytest.approx(4.303 * 0.1 / math.sqrt(3), rel=0.05)
    apart = only(
        [s for name, n in zip("ab", (50, 100), strict=True) for s in run(name, 2.0) if s.params["n"] >= n]
    )
    assert (apart.low, apart.verdict) == (None, "open")
    assert words.why_open(apart) == "fewer than 2 of the runs have all sizes, and a slope is one run's"


def test_side_is_the_series_with_fewest_parameters_that_it_does_not_name() -> None:
    declared = Declared(
        topic="it", says="slower", otherwise="not", more_than=1.1,
        of={"kind": "a", "n": 1}, over={"kind": "b", "n": 1},
    )  # fmt: skip
    kinds = [({"kind": "a", "extra": 1}, 0.1), ({"kind": "a"}, 0.2), ({"kind": "b"}, 0.3)]
    made = summarise(
        [
            one
            for params, time in kinds
            for one in taken("made.up", params, lambda _, time=time: [time] * 5, 1)
        ],  # type: ignore[misc]
        catalogue={},
    )
    all_taken = [Taken(made.subjects[0], one, {}, "here") for one in made.series]
    (claim,) = claims({"made.up": [declared]}, all_taken)
    assert claim.value == pytest.approx(2 / 3), "not the one that has an extra parameter"


def test_small_ratios_have_digits_and_a_clock_that_was_never_set_is_doubted() -> None:
    claim = only(two_modes(12, 0, 1 / 300, 1.0))
    assert words.ours(claim).startswith("x0.0034 [0.0033, 0.003")
    made = summarise(countdown(1, 1, 2, started="1970-01-01T00:00:07+00:00"))
    assert "the clock was wrong: 1970-01-01 00:00 UTC" in words.conditions(made)
