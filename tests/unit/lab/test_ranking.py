"""Which way of doing the same work is the best, by the rules that are written down."""

from __future__ import annotations

from dataclasses import MISSING, fields, replace
from typing import Any

import pytest

from fairlead.lab.analysis.ranking import rankings, sped_up
from fairlead.record.summary import Cell, Series, Subject

pytestmark = pytest.mark.ends

ROUNDS = 12
PY = {"name": "3.13", "version": "3.13.0", "free_threaded": False}
FREE = {"name": "3.13t", "version": "3.13.1", "free_threaded": True}


def subject(case: str, group: str = "work") -> Subject:
    return Subject(
        id=f"{group}-{case}" if group else case, title=case, question="?", explanation="", size_name="tasks",
        growth=False, group=group,
    )  # fmt: skip


def series(
    case: str,
    median: float | None,
    spread: float | None = 0.02,
    *,
    cpu_s: float | None = 1.0,
    memory: float | None = 100.0,
    n: int = 10,
    python: dict[str, Any] = PY,
    wrong: float = 0,
    **variant: Any,
) -> Series:
    if median is None:
        values: list[float] = []
    elif spread is None:
        values = [median] * (ROUNDS // 4)
    else:
        values = [median * (1 + spread * (-1) ** number / 2) for number in range(ROUNDS)]
    unknown = dict.fromkeys(field.name for field in fields(Cell) if field.default is MISSING)
    known = {
        "params": {"n": n}, "n": n, "values": tuple(values),
        "rounds": tuple((0, number) for number in range(len(values))),
        "median": median, "outliers": 0, "modes": (), "cpu_s": cpu_s, "sum_rss_kb": memory,
        "metrics": {"wrong_answers": wrong},
    }  # fmt: skip
    return Series(
        experiment=f"work-{case}", interpreter=python, variant={"case": case, **variant}, label="",
        cells=(Cell(**{**unknown, **known}),),
    )  # fmt: skip


def standings(*ways: Series) -> dict[str, str]:
    subjects = [subject(one.experiment.removeprefix("work-")) for one in ways]
    (ranking,) = rankings(subjects, ways)
    return {place.case: place.standing for place in ranking.places}


@pytest.mark.parametrize(
    ("ways", "standing"),
    [
        ({"a": (1.0, {}), "b": (2.0, {}), "c": (3.0, {})}, "best slower slower"),
        # of those as fast the one with the least processor time is best
        ({"a": (1.0, {"cpu_s": 3.0}), "b": (1.0, {}), "c": (2.0, {"cpu_s": 0.1})}, "as fast, best slower"),
        # of those with as much processor time the one with less memory
        ({"a": (1.0, {"memory": 500.0}), "b": (1.0, {"cpu_s": 1.05})}, "as fast, best"),
        ({"a": (1.0, {"memory": 500.0}), "b": (1.0, {"cpu_s": 1.2})}, "best as fast"),
        # what was not measured counts as the most
        ({"a": (1.0, {"cpu_s": None, "memory": None}), "b": (1.0, {})}, "as fast, best"),
        # fewer than five rounds
        ({"a": (1.0, {"spread": None}), "b": (2.0, {"spread": None})}, "undecided undecided"),
        # what changes from round to round in both ways is no noise
        ({"a": (1.0, {"spread": 1.0}), "b": (1.15, {"spread": 1.0})}, "best slower"),
    ],
)
def test_best_way_is_the_fastest_and_of_those_as_fast_the_cheapest(
    ways: dict[str, tuple[float, dict[str, Any]]], standing: str
) -> None:
    found = standings(*(series(case, median, **given) for case, (median, given) in ways.items()))
    assert " ".join(found.values()) == standing.replace(",", "")


def test_more_noise_makes_no_more_ways_the_best() -> None:
    """The ratios of a round jump from 0.6 to 1.7: nothing is known, and so nothing is called as fast."""
    noisy = series("b", 1.1, 1.0)
    shifted = replace(noisy.cells[0], values=noisy.cells[0].values[1:] + noisy.cells[0].values[:1])
    found = standings(series("a", 1.0, 1.0, cpu_s=3.0), replace(noisy, cells=(shifted,)))
    assert found == {"a": "as fast", "b": "undecided"}


def test_what_changes_from_round_to_round_in_both_ways_is_no_noise() -> None:
    ways = series("a", 1.0, 1.0), series("b", 1.15, 1.0)
    assert standings(*ways) == {"a": "best", "b": "slower"}


def test_times_are_over_the_fastest_and_one_way_alone_is_not_ranked() -> None:
    ways = series("a", 2.0), series("b", 1.0), series("c", None)
    (ranking,) = rankings([subject("a"), subject("b"), subject("c")], ways)
    assert [(place.case, place.times) for place in ranking.places] == [("a", 2.0), ("b", 1.0)]
    assert (ranking.group, ranking.n, ranking.interpreter) == ("work", 10, PY)
    assert rankings([subject("a")], [series("a", 1.0)]) == ()
    alone = [subject("work-a", ""), subject("work-b", "")]
    assert rankings(alone, [series("a", 1.0), series("b", 1.0)]) == ()


def test_sizes_interpreters_and_settings_are_ranked_apart() -> None:
    other = {"name": "3.14", "version": "3.14.0", "free_threaded": False}
    ways = [
        series(case, 1.0, n=n, python=python, workers=workers)
        for case in "ab"
        for n in (10, 20)
        for python in (PY, other)
        for workers in ("default", "cores")
    ]
    found = rankings([subject("a"), subject("b")], ways)
    assert len(found) == 8
    assert all(len(ranking.places) == 2 for ranking in found)


def test_way_with_wrong_answers_is_no_candidate_and_no_measure_for_the_others() -> None:
    subjects = [subject(case) for case in "abc"]
    ways = [series("a", 1.0, wrong=3), series("b", 2.0), series("c", 4.0)]
    (ranking,) = rankings(subjects, ways)
    found = [(place.standing, place.times) for place in ranking.places]
    assert found == [("wrong", 0.5), ("best", 1.0), ("slower", 2.0)]
    (hopeless,) = rankings(subjects, [series("a", 1.0, wrong=1), series("b", 2.0, wrong=1)])
    assert [place.standing for place in hopeless.places] == ["wrong", "wrong"]


def test_ways_of_a_free_threaded_build_stand_in_the_table_of_its_version() -> None:
    ways = [series("a", 1.0, python=FREE), series("a", 4.0), series("b", 4.0)]
    (ranking,) = rankings([subject("a"), subject("b")], ways)
    assert ranking.interpreter == PY
    found = [(place.case, place.standing) for place in ranking.places]
    assert found == [("a", "slower"), ("b", "slower"), ("free-threaded a", "best")]


@pytest.mark.parametrize(
    "others", [[], [{"name": "3.14", "version": "3.14.0"}], [PY, {**PY, "name": "3.13#2"}]]
)
def test_free_threaded_build_without_just_one_of_its_version_has_a_table_of_its_own(
    others: list[dict[str, Any]],
) -> None:
    ways = [series(case, 1.0, python=python) for python in [FREE, *others] for case in "ab"]
    found = rankings([subject("a"), subject("b")], ways)
    assert [ranking.interpreter["name"] for ranking in found] == [*(one["name"] for one in others), "3.13t"]


METHODS = replace(subject("x"), group="work-x", ways="method", base="alone")


def method(name: str, median: float | None, **more: Any) -> Series:
    return series("x", median, method=name, **more)


def test_ways_of_one_experiment_are_the_values_of_its_parameter() -> None:
    ways = [method(name, 1.0 + index, workers="cores") for index, name in enumerate(("alone", "threads"))]
    ways += [method("alone", 1.0, workers="2"), method("threads", 1.0, workers="2")]
    found = rankings([METHODS], ways)
    assert [[place.case for place in ranking.places] for ranking in found] == [["alone", "threads"]] * 2


def test_speed_up_is_over_the_base_with_a_gil_and_the_same_number_of_tasks() -> None:
    ways = [
        method("threads", 1.0, python=FREE),
        method("alone", 8.0, python=FREE),
        method("alone", 4.0),
        method("threads", 5.0),
        method("threads", 3.0, n=20),
        method("processes", None),
    ]
    assert [one.cells[0].metrics.get("speed_up") for one in sped_up([METHODS], ways)] == [
        4.0, 0.5, 1.0, 0.8, None, None,
    ]  # fmt: skip
    alone = sped_up([METHODS], ways[:2])
    assert [one.cells[0].metrics["speed_up"] for one in alone] == [8.0, 1.0]
    ways = [series("a", 1.0), series("b", 1.0)]
    assert sped_up([subject("a"), subject("b")], ways) == ways
