"""Runs side by side: ratios, tests, corrections, and what cannot be said."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from samples import sample

from fairlead.errors import UsageError
from fairlead.lab.analysis import compare as comparing
from fairlead.lab.analysis.compare import holm
from fairlead.lab.analysis.summarise import summarise
from fairlead.measure.ratio import contrast
from fairlead.record.comparison import Comparison, SeriesChange
from fairlead.record.sample import Sample
from fairlead.record.summary import Summary

pytestmark = pytest.mark.ends

HERE = {"hostname": "here", "cores": 2, "affinity": [0, 1], "policy": "other"}
SIZES = (50, 100, 200)


def interpreter(version: str) -> dict[str, Any]:
    return {"name": version, "executable": f"/opt/python{version}", "version": f"{version}.0"}


def run(
    factor: float = 1.0,
    *,
    seed: int = 1,
    count: int = 9,
    noise: float = 0.02,
    version: str = "3.13",
    sizes: tuple[int, ...] = SIZES,
    environment: dict[str, Any] | None = None,
    foreign_share: float = 0.01,
    params: dict[str, Any] | None = None,
    repeats: int = 1,
) -> list[Sample]:
    random = np.random.default_rng(seed)
    own = {"interpreter": interpreter(version), "environment": environment or HERE}
    return [
        sample(
            "made.up", n, float(1e-5 * n * n * factor * random.lognormal(0, noise)),
            params={"n": n, **(params or {})}, foreign_share=foreign_share, run=f"run {name}", round=number,
            **own,
        )
        for name in range(repeats)
        for n in sizes
        for number in range(count)
    ]  # fmt: skip


def summary(samples: list[Sample]) -> Summary:
    return summarise(samples, catalogue={})


def compare(*runs: Summary) -> Comparison:
    return comparing.compare([(f"run {number}", run) for number, run in enumerate(runs)])


def interpreters(series: SeriesChange) -> list[str]:
    return [member.series.interpreter["name"] for member in series.members]


@pytest.mark.parametrize(
    ("factor", "change", "within"), [(2.0, "slower", None), (0.5, "faster", None), (1.0, "within", 1.1)]
)
def test_compare_calls_a_change_by_its_name(factor: float, change: str, within: float | None) -> None:
    (series,) = compare(summary(run(repeats=4)), summary(run(factor, seed=2, repeats=4))).series
    assert [(cell.change, cell.within, cell.advice) for cell in series.cells] == [(change, within, None)] * 3
    for cell in series.cells:
        assert cell.ratio == pytest.approx(factor, rel=0.05)
        assert cell.low <= cell.ratio <= cell.high
        assert (cell.samples_base, cell.samples, cell.runs_base, cell.runs) == (36, 36, 4, 4)


ONE_A_SIDE = "one run a side cannot tell less than 15 %: fairlead lab run --repeat 5"


def test_one_run_a_side_shows_no_difference_of_the_size_that_runs_have_anyway() -> None:
    one = summary(run())
    found = compare(one, one)
    assert {cell.within for series in found.series for cell in series.cells} == {1.25}
    assert {(cell.ratio, cell.p) for series in found.series for cell in series.cells} == {(1.0, 1.0)}
    assert (found.unmatched, found.differing, found.problems) == ((), (), (ONE_A_SIDE,))
    (series,) = compare(summary(run(noise=0.001)), summary(run(1.13, noise=0.001, seed=2))).series
    assert {(cell.change, cell.within, cell.advice) for cell in series.cells} == {("within", 1.5, None)}
    (series,) = compare(summary(run(noise=0.001)), summary(run(1.4, noise=0.001, seed=2))).series
    assert {cell.change for cell in series.cells} == {"slower"}
    for cell in series.cells:
        assert 1.39 < cell.low < 1.4 < cell.high < 1.41, "the interval is that of these two runs"


def test_what_runs_differ_by_is_measured_where_a_side_has_three() -> None:
    """Runs at two levels: the one run of the other side is at a third, of the same spread."""

    def leveled(levels: tuple[float, ...]) -> Summary:
        runs = [run(level, seed=seed, noise=0.001) for seed, level in enumerate(levels, start=1)]
        return summary([replace(one, run=str(number)) for number, own in enumerate(runs) for one in own])

    close = compare(leveled((1.0, 1.002, 0.998, 1.001)), leveled((1.1,)))
    assert {cell.change for cell in close.series[0].cells} == {"slower"}
    assert close.problems[0].startswith("4 and 1 runs cannot tell less than ")
    apart = compare(leveled((1.0, 1.2, 0.8, 1.1)), leveled((1.1,)))
    assert {cell.change for cell in apart.series[0].cells} == {"undecided"}


def test_compare_with_five_samples_of_many_cells_finds_what_is_twice_as_slow() -> None:
    """The least p of a rank test of five samples a side is 0.008: too much for 60 cells."""
    sizes = tuple(range(10, 70))
    base, other = (summary(run(factor, seed=7, count=5, noise=0.1, sizes=sizes)) for factor in (1.0, 2.0))
    (series,) = compare(base, other).series
    assert {cell.change for cell in series.cells} == {"slower"}


FEW = "fewer than 3 samples, or all alike: repeat both runs with a larger --budget"


@pytest.mark.parametrize(
    ("base", "other", "advice"),
    [
        # two samples have no spread to go by, nor have those of a clock that is too coarse
        (run(count=2), run(3.0), FEW),
        (run(noise=0), run(3.0, noise=0), FEW),
        (run(noise=1.5), run(noise=1.5, seed=2), "a wide interval: repeat both runs with a larger --budget"),
        (run(), run(2.0, foreign_share=0.4),
         "run b was disturbed: others took 40 % of its time: repeat it on a quieter machine"),
        ([*run(noise=0.01), *run(20.0, noise=0.01)], run(),
         "run a has two populations here: compare their modes, not the means"),
    ],
    ids=["few samples", "all alike", "noisy", "other load", "bimodal"],
)  # fmt: skip
def test_what_cannot_be_decided_is_undecided_and_says_what_to_do(
    base: list[Sample], other: list[Sample], advice: str
) -> None:
    (series,) = compare(summary(base), summary(other)).series
    assert {(cell.change, cell.advice) for cell in series.cells} == {("undecided", advice)}
    if advice == FEW:
        assert {(cell.low, cell.p) for cell in series.cells} == {(None, 1.0)}


def test_what_the_machine_may_account_for_is_no_change() -> None:
    slower = [replace(one, spin_s=0.0012) for one in run(1.2, seed=2, repeats=4)]
    runs = [summary([replace(one, spin_s=0.001) for one in run(repeats=4)]), summary(slower)]
    (series,) = compare(*runs).series
    assert {(cell.change, cell.within, cell.advice) for cell in series.cells} <= {
        ("within", 1.25, None),
        ("undecided", None, "the machine's speed may be all of it: repeat both runs with a larger --budget"),
    }
    elsewhere = summary([replace(one, environment={**HERE, "hostname": "there"}) for one in slower])
    (series,) = compare(runs[0], elsewhere).series
    assert {cell.change for cell in series.cells} == {"slower"}, "of two machines the speed is the question"


def test_runs_as_a_whole_are_compared_by_their_series_once_three_are_quiet() -> None:
    kinds = [{"kind": kind} for kind in "abcd"]
    base = [one for params in kinds for one in run(params=params)]
    other = [
        one for seed, params in enumerate(kinds[:3], start=2) for one in run(1.1, seed=seed, params=params)
    ]
    other += run(9.0, seed=2, params=kinds[3], foreign_share=0.4)
    (whole,) = compare(summary(base), summary(other)).wholes
    assert (whole.base, whole.run, whole.series, whole.speed) == ("a", "b", 3, None)
    assert whole.low <= 1.1 <= whole.high < 1.2
    assert compare(summary(base), summary(run(params=kinds[0]))).wholes == ()


def test_compare_lists_what_only_one_run_measured() -> None:
    one = summary([*run(sizes=(50, 100)), *run(sizes=(50,), version="3.12")])
    other = summary([*run(sizes=(50, 200)), *run(sizes=(50,), params={"work": "spin"})])
    found = compare(one, other)
    assert [(lone.run, lone.interpreter["name"], lone.variant, lone.sizes) for lone in found.unmatched] == [
        ("a", "3.13", {}, (100,)),
        ("a", "3.12", {}, (50,)),
        ("b", "3.13", {}, (200,)),
        ("b", "3.13", {"work": "spin"}, (50,)),
    ]
    assert [[cell.n for cell in series.cells] for series in found.series] == [[50]]
    found = compare(summary(run(sizes=(50,))), summary(run(sizes=(100,))))
    assert found.series == ()
    assert [(lone.run, lone.sizes) for lone in found.unmatched] == [("a", (50,)), ("b", (100,))]


def test_runs_with_other_busy_processes_beside_are_not_paired() -> None:
    quiet, busy = summary(run()), summary(run(2.0, seed=2, environment={**HERE, "beside": 2}))
    found = compare(quiet, busy, summary(run(2.0, seed=3, environment={**HERE, "beside": 2})))
    assert [(series.members[0].run, series.members[1].run) for series in found.series] == [("b", "c")]
    assert [(one.run, one.sizes) for one in found.unmatched] == [("a", SIZES)]
    assert found.differing == ("beside",)


def test_interpreters_are_matched_by_name_first_or_one_with_another() -> None:
    (series,) = compare(summary(run(version="3.12")), summary(run(2.0, version="3.13"))).series
    assert interpreters(series) == ["3.12", "3.13"]
    assert {cell.change for cell in series.cells} == {"slower"}
    both = summary([*run(version="3.12"), *run(2.0, version="3.13")])
    found = compare(both, summary(run(version="3.13")))
    assert [interpreters(one) for one in found.series] == [["3.13", "3.13"]]
    assert [lone.interpreter["name"] for lone in found.unmatched] == ["3.12"]


def test_compare_between_machines_names_what_differs_and_a_run_of_several() -> None:
    there = {**HERE, "hostname": "there", "cores": 8, "load": 3.0}
    found = compare(summary(run()), summary(run(environment=there)))
    assert found.differing == ("hostname", "cores")
    assert len(found.series) == 1
    there = {**HERE, "hostname": "there"}
    found = compare(summary([*run(), *run(environment=there)]), summary(run()))
    assert found.problems == ("run a comes from 2 environments",)


def test_compare_of_several_runs_holds_each_against_the_first_that_has_the_cell() -> None:
    found = compare(
        summary(run(sizes=(50, 100))),
        summary(run(2.0, seed=2, sizes=(50, 200))),
        summary(run(0.5, seed=3, sizes=(50, 100, 200, 400))),
    )
    assert [one.letter for one in found.runs] == ["a", "b", "c"]
    (series,) = found.series
    assert [(cell.n, cell.base, cell.run, cell.change) for cell in series.cells] == [
        (50, "a", "b", "slower"),
        (50, "a", "c", "faster"),
        (100, "a", "c", "faster"),
        (200, "b", "c", "faster"),
    ]
    assert [(lone.run, lone.sizes) for lone in found.unmatched] == [("c", (400,))]


def test_compare_of_a_series_that_the_first_run_lacks_takes_the_next_as_base() -> None:
    spin = {"work": "spin"}
    found = compare(
        summary(run()), summary(run(params=spin)), summary([*run(seed=2), *run(3.0, params=spin)])
    )
    assert [(one.variant, [member.run for member in one.members]) for one in found.series] == [
        ({}, ["a", "c"]),
        (spin, ["b", "c"]),
    ]
    assert {cell.change for cell in found.series[1].cells} == {"slower"}


def test_compare_corrects_for_the_cells_of_all_runs() -> None:
    runs = [summary(run(1.0 + seed / 50, seed=seed, count=5, noise=0.05)) for seed in range(4)]
    two = {cell.n: cell.p for cell in compare(*runs[:2]).series[0].cells}
    for cell in compare(*runs).series[0].cells:
        if cell.run == "b":
            assert cell.p >= two[cell.n]


def test_runs_are_called_by_letters_however_many_there_are() -> None:
    one = summary(run(sizes=(50, 100), count=5))
    letters = [each.letter for each in compare(*[one] * 28).runs]
    assert (letters[:2], letters[25:]) == (["a", "b"], ["z", "aa", "ab"])


def test_holm_gives_the_textbook_correction_and_no_contrast_is_of_what_is_no_time() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    with pytest.raises(UsageError, match="finite"):
        contrast([1.0], [float("nan")])


@pytest.mark.parametrize(("m", "n"), [(3, 3), (5, 5), (8, 30), (60, 70)])
def test_welchs_test_agrees_with_scipy(m: int, n: int) -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy is the oracle; install the oracle group")
    random = np.random.default_rng(m * 100 + n)
    for shift in (1.0, 1.5, 3.0):
        a, b = random.lognormal(0, 0.5, m), shift * random.lognormal(0, 0.3, n)
        found = contrast(a.tolist(), b.tolist())
        theirs = stats.ttest_ind(np.log(b), np.log(a), equal_var=False)
        freedom = int(theirs.df)
        assert found.p == pytest.approx(2 * stats.t.sf(abs(theirs.statistic), freedom), rel=1e-6)
        reach = stats.t.ppf(0.975, freedom) * (math.log(found.value) / theirs.statistic)
        assert math.log(found.high / found.value) == pytest.approx(reach, rel=1e-6)
        assert math.log(found.value / found.low) == pytest.approx(reach, rel=1e-6)
