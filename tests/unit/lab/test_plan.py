"""From what the user asked for to the series that are run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from interpreters import PYTHON

from fairlead.errors import OutputError, UsageError
from fairlead.lab.catalogue import registry
from fairlead.lab.run.plan import BUDGETS_S, Plan, PlannedSeries, RunOptions, make_plan

pytestmark = pytest.mark.ends

OLD = replace(PYTHON, name="1.5", version="1.5.2")
ENVIRONMENT = {"affinity": [2, 3, 5]}


def planned(options: RunOptions, *, refused: str | None = None) -> tuple[PlannedSeries, ...]:
    return make_plan(options, [PYTHON], ENVIRONMENT, refused).series


def test_plan_of_the_whole_catalogue_and_what_cannot_be_run_is_skipped() -> None:
    plan = make_plan(RunOptions(), [PYTHON], ENVIRONMENT, None)
    wanted = [e.id for e in registry.catalogue().values() for _ in e.variants_for("quick")]
    assert [one.experiment for one in plan.series] == wanted
    assert plan.budget_s == BUDGETS_S["quick"]
    plan = make_plan(RunOptions(ids=("square.mutex",)), [PYTHON, OLD], ENVIRONMENT, None)
    assert [one.skipped is None for one in plan.series] == [True, False]
    assert "1.5.2" in str(plan.series[1].skipped)
    (one,) = planned(RunOptions(ids=("square.mutex",), policy="rr"), refused="not allowed")
    assert one.skipped == "not allowed"


def test_busy_processes_beside_are_part_of_what_samples_record_and_none_are_not() -> None:
    options = RunOptions(ids=("square.mutex",))
    assert make_plan(options, [PYTHON], ENVIRONMENT, None).environment == ENVIRONMENT
    beside = make_plan(replace(options, beside=2), [PYTHON], ENVIRONMENT, None)
    assert beside.environment == {**ENVIRONMENT, "beside": 2}


def test_plan_gives_every_parameter_to_the_probe_and_the_users_before_its_own() -> None:
    (one,) = planned(RunOptions(ids=("square.mutex",)))
    usual = {"work": "sleep0", "gil": "as built", "scheduler": "off"}
    assert one.params == usual | {"policy": "other", "cores": "all"}
    assert one.cpus == (2, 3, 5)
    (one,) = planned(RunOptions(ids=("square.mutex",), sizes=(7, 8), work="spin", cpus=(5,), budget_s=9.0))
    assert (one.sizes, one.params["work"], one.cpus) == ((7, 8), "spin", (5,))


def test_plan_variant_on_one_core_is_pinned_to_the_first_that_is_allowed() -> None:
    pinned = {
        one.cpus for one in planned(RunOptions(ids=("square.process-mutex",))) if one.params["cores"] == "one"
    }
    assert pinned == {(2,)}
    chosen = planned(RunOptions(ids=("square.process-mutex",), cpus=(3, 5)))
    assert {one.cpus for one in chosen if one.params["cores"] == "one"} == {(3,)}


@pytest.mark.parametrize("experiment", ["models.io-threads", "models.mixed-async", "models.blocking-async"])
def test_plan_variant_on_two_cores_is_pinned_skipped_or_that_on_all_of_them(experiment: str) -> None:
    def two(*cpus: int) -> list[PlannedSeries]:
        series = planned(RunOptions(ids=(experiment,), mode="full", cpus=cpus))
        assert len({tuple(one.params.items()) for one in series}) == len(series)
        return [one for one in series if one.params["cores"] == "two"]

    (pinned,) = two(2, 3, 5)
    assert (pinned.cpus, pinned.skipped) == ((2, 3), None)
    assert two(3, 5) == [], "all of two cores are measured once"
    (skipped,) = two(5)
    assert skipped.skipped == "needs two cores, and this run has one"


def test_plan_under_round_robin_yields_and_runs_what_comes_out_the_same_once() -> None:
    (one,) = planned(RunOptions(ids=("square.mutex",), policy="rr"))
    assert (one.policy, one.params["work"]) == ("rr", "yield")
    (one,) = planned(RunOptions(ids=("square.mutex",), policy="rr", work="sleep0"))
    assert one.params["work"] == "sleep0"
    series = planned(RunOptions(ids=("square.process-mutex",), mode="full", policy="rr", work="yield"))
    keys = [sorted(one.params.items()) for one in series]
    assert len(keys) == 2
    assert keys[0] != keys[1]


def test_plan_saved_and_loaded_is_the_same_and_one_that_cannot_be_saved_says_so(tmp_path: Path) -> None:
    plan = make_plan(RunOptions(), [PYTHON, OLD], ENVIRONMENT, "no")
    plan.save(tmp_path)
    assert Plan.load(tmp_path) == plan
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
    with pytest.raises(OutputError, match="cannot be written"):
        make_plan(RunOptions(), [PYTHON], ENVIRONMENT, None).save(tmp_path / "absent")


def test_plan_takes_a_parameter_for_those_that_have_it_and_a_variant_by_its_label() -> None:
    series = planned(RunOptions(ids=("gil.countdown", "gil.sha256"), parameters=(("interval_ms", "0.5"),)))
    assert {one.experiment: one.params.get("interval_ms") for one in series} == {
        "gil.countdown": 0.5,
        "gil.sha256": None,
    }
    (one,) = planned(RunOptions(ids=("gil.convoy",), variants=("2 CPU threads, scheduled",)))
    assert (one.params["computing"], one.params["scheduler"]) == (2, "interactive")


def test_budget_is_that_of_each_interpreter_that_can_measure_anything() -> None:
    newer = replace(PYTHON, name="3.14", version="3.14.0")
    assert make_plan(RunOptions(), [PYTHON, newer, OLD], ENVIRONMENT, None).budget_s == 2 * BUDGETS_S["quick"]
    assert make_plan(RunOptions(budget_s=7.0), [PYTHON, newer], ENVIRONMENT, None).budget_s == 7.0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (RunOptions(cpus=(4,)), "core 4 is not one"),
        (RunOptions(ids=("nope",)), "unknown experiment"),
        (RunOptions(ids=("gil.sha256",), parameters=(("interval_ms", "5"),)), "has this parameter"),
        (RunOptions(ids=("gil.countdown",), parameters=(("interval_ms", "7"),)), "is not known"),
        (RunOptions(ids=("gil.convoy",), variants=("alone", "2 CPU thread")), "is not known"),
    ],
)
def test_plan_of_what_there_is_not_says_what_there_is(options: RunOptions, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        planned(options)


@pytest.mark.parametrize("experiment", registry.catalogue())
def test_plan_takes_every_declared_value_and_every_variant(experiment: str) -> None:
    declared = registry.catalogue()[experiment]
    for name, parameter in declared.parameters.items():
        for value in parameter.choices:
            series = planned(RunOptions(ids=(experiment,), mode="full", parameters=((name, str(value)),)))
            assert series
            assert {(type(one.params[name]), one.params[name]) for one in series} == {(type(value), value)}
    for variant in declared.variants:
        (one,) = planned(RunOptions(ids=(experiment,), variants=(variant.label,)))
        assert variant.params.items() <= one.params.items()
