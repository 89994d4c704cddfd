"""Which way of doing the same work is the best, by the rules that are written down."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.lab.ranking import rankings
from fairlead.record.summary import Cell, Fit, Series, Subject

NO_FIT = Fit(exponent=None, low=None, high=None, model="undecided", verdict="stable", advice=None)
PY = {"name": "3.13"}


def subject(case: str, group: str = "work") -> Subject:
    return Subject(
        id=f"{group}-{case}" if group else case,
        title=case,
        question="?",
        explanation="",
        size_name="tasks",
        growth=False,
        group=group,
    )


def series(
    case: str,
    median: float | None,
    spread: float | None = 0.1,
    *,
    cpu_s: float | None = 1.0,
    memory: float | None = 100.0,
    n: int = 10,
    python: dict[str, Any] = PY,
    **variant: Any,
) -> Series:
    known = median is not None and spread is not None
    cell = Cell(
        params={"n": n},
        n=n,
        values=() if median is None else (median,),
        median=median,
        low=median - spread if known else None,  # type: ignore[operator]
        high=median + spread if known else None,  # type: ignore[operator]
        iqr=None,
        outliers=0,
        modes=(),
        factor=None,
        cpu_s=cpu_s,
        cpu_percent=None,
        max_rss_kb=None,
        sum_rss_kb=memory,
        ctx_voluntary=None,
        ctx_involuntary=None,
        foreign_share=None,
        verdict="stable",
        advice=None,
    )
    return Series(
        experiment=f"work-{case}",
        interpreter=python,
        variant={"case": case, **variant},
        label="",
        cells=(cell,),
        fit=NO_FIT,
    )


def standings(*ways: Series) -> dict[str, str]:
    subjects = [subject(one.experiment.removeprefix("work-")) for one in ways]
    (ranking,) = rankings(subjects, ways)
    return {place.case: place.standing for place in ranking.places}


def test_fastest_is_best_where_the_others_are_clearly_slower() -> None:
    assert standings(series("a", 1.0), series("b", 2.0), series("c", 3.0)) == {
        "a": "best",
        "b": "slower",
        "c": "slower",
    }


def test_of_those_as_fast_the_one_with_the_least_processor_time_is_best() -> None:
    ways = series("a", 1.0, cpu_s=3.0), series("b", 1.05, cpu_s=1.0), series("c", 2.0, cpu_s=0.1)
    assert standings(*ways) == {"a": "as fast", "b": "best", "c": "slower"}


@pytest.mark.parametrize(("cpu_s", "best"), [(1.05, "b"), (1.2, "a")])
def test_of_those_with_as_much_processor_time_the_one_with_less_memory_is_best(
    cpu_s: float, best: str
) -> None:
    found = standings(series("a", 1.0, memory=500.0), series("b", 1.0, memory=100.0, cpu_s=cpu_s))
    assert found == {"a": "as fast", "b": "as fast", best: "best"}


def test_what_was_not_measured_beside_the_time_counts_as_the_most() -> None:
    assert standings(series("a", 1.0, cpu_s=None, memory=None), series("b", 1.0))["b"] == "best"


def test_without_intervals_nothing_is_said() -> None:
    assert standings(series("a", 1.0, None), series("b", 2.0, None)) == {"a": "undecided", "b": "undecided"}


def test_times_are_over_the_fastest_and_cases_without_samples_have_no_place() -> None:
    ways = series("a", 2.0), series("b", 1.0), series("c", None)
    (ranking,) = rankings([subject("a"), subject("b"), subject("c")], ways)
    assert [(place.case, place.times) for place in ranking.places] == [("a", 2.0), ("b", 1.0)]
    assert (ranking.group, ranking.n, ranking.interpreter) == ("work", 10, PY)


def test_sizes_interpreters_and_settings_are_ranked_apart() -> None:
    other = {"name": "3.14"}
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


def test_one_way_alone_and_experiments_without_a_group_are_not_ranked() -> None:
    assert rankings([subject("a")], [series("a", 1.0)]) == ()
    alone = [subject("work-a", ""), subject("work-b", "")]
    assert rankings(alone, [series("a", 1.0), series("b", 1.0)]) == ()
