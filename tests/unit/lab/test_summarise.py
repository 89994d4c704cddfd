"""From samples to a summary: grouping, factors, failures, skips, and nothing lost without a word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairlead.lab.analysis.summarise import summarise
from fairlead.lab.catalogue import registry
from fairlead.record.sample import Sample
from fairlead.record.summary import Metric, Subject

pytestmark = pytest.mark.ends

PY313 = {"name": "3.13", "executable": "/opt/python3.13", "version": "3.13.0", "gil": True, "jit": False}
PYPY = {"name": "pypy3.11", "executable": "/opt/pypy3.11", "version": "3.11.13", "gil": True, "jit": True}
HERE = {"hostname": "here", "kernel": "6.1", "cores": 2, "affinity": [0, 1], "policy": "other", "load": 0.1}
PARAMS = {"work": "sleep0", "policy": "other", "cores": "all"}

WAKE = registry.Experiment(
    subject=Subject(id="wake", title="Wake", question="How long?", explanation="So.", size_name="threads"),
    path=Path("wake.py"),
    parameters={"work": registry.Parameter(default="sleep0", choices=("sleep0", "yield"), help="")},
    variants=(
        registry.Variant(label="", params={}, modes=("quick",)),
        registry.Variant(label="rr, 1 core", params={}, modes=("quick",), policy="rr", cores="one"),
    ),
    sizes={"quick": (50, 100, 200)},
    timeout_s=30,
    pythons=">=2.7",
)
CATALOGUE = {"wake": WAKE}


def sample(n: int, wall_s: float | None = None, **changes: Any) -> Sample:
    given: dict[str, Any] = {
        "experiment": "wake", "params": {"n": n, **PARAMS}, "interpreter": PY313, "environment": HERE,
        "status": "ok", "wall_s": 1e-5 * n * n if wall_s is None else wall_s, "foreign_share": 0.01,
    }  # fmt: skip
    return Sample(**{**given, **changes})


def square(**changes: Any) -> list[Sample]:
    sizes = [(n, turn) for turn in range(7) for n in (50, 100, 200)]
    return [sample(n, 1e-5 * n * n * (1 + 0.01 * turn), round=turn, **changes) for n, turn in sizes]


def test_summarise_of_a_square_gives_cells_factors_and_fit() -> None:
    summary = summarise(square(user_s=0.2, sys_s=0.1, max_rss_kb=9000), catalogue=CATALOGUE)
    (series,) = summary.series
    assert [cell.n for cell in series.cells] == [50, 100, 200]
    assert [cell.factor for cell in series.cells] == pytest.approx([1, 4, 16])
    assert [len(cell.values) for cell in series.cells] == [7, 7, 7]
    assert series.cells[0].params == {"n": 50, **PARAMS}
    assert series.cells[0].cpu_s == pytest.approx(0.3)
    assert series.cells[0].max_rss_kb == 9000
    assert series.cells[0].ctx_voluntary is None
    assert series.variant == PARAMS
    assert (series.fit.model, series.fit.note) == ("n^2", None)
    assert (series.label, series.skipped, series.failures) == ("", None, ())
    assert (summary.samples, summary.environments, summary.environment) == (21, 1, HERE)
    assert summary.subjects == (WAKE.subject,)


LATE = replace(
    WAKE,
    value="late",
    subject=replace(
        WAKE.subject,
        value_name="lateness",
        metrics=(
            Metric(name="late", title="lateness", unit="s"),
            Metric(name="told", title="told", unit="count"),
            Metric(name="absent", title="absent", unit="KiB"),
        ),
    ),
)


def test_summarise_takes_the_metric_that_the_experiment_declares_for_its_time() -> None:
    samples = [
        sample(n, 1.0, details={"metrics": {"late": 0.001 * n, "told": told, "stranger": 5}})
        for told in (1, 2, 9)
        for n in (50, 100, 200)
    ]
    (series,) = summarise(samples, catalogue={"wake": LATE}).series
    assert [cell.median for cell in series.cells] == pytest.approx([0.05, 0.1, 0.2])
    assert [cell.metrics for cell in series.cells] == [
        {"late": pytest.approx(0.001 * n), "told": 2} for n in (50, 100, 200)
    ]
    assert series.fit.exponent == pytest.approx(1)


@pytest.mark.parametrize("given", [None, "1", True, -1.0, 0, 1e300, 10**400])
def test_summarise_of_a_metric_that_is_no_time_has_no_value_of_it(given: Any) -> None:
    samples = [
        sample(50, 1.0, details={"metrics": {"late": given}}),
        sample(50, 1.0, details={"metrics": [1]}),
    ]
    (series,) = summarise(samples, catalogue={"wake": LATE}).series
    assert [cell.values for cell in series.cells] == [()]


def test_summarise_fits_nothing_to_an_experiment_that_does_not_ask_for_growth() -> None:
    flat = replace(WAKE, subject=replace(WAKE.subject, growth=False))
    (series,) = summarise(square(), catalogue={"wake": flat}).series
    assert (series.fit.exponent, series.fit.note) == (None, None)


def test_summarise_says_which_answers_were_wrong_and_why_a_metric_is_missing() -> None:
    checked = replace(
        WAKE,
        subject=replace(
            WAKE.subject,
            growth=False,
            ways="work",
            base="spin",
            group="wake",
            metrics=(Metric(name="wrong_answers", title="wrong", unit="count"), registry.SPEED_UP),
        ),
    )
    told = {"metrics": {"wrong_answers": 3}, "not_measured": {"gil_share": "there is no GIL"}}
    samples = [sample(50, 1.0, details=told), sample(50, 1.0, details={"not_measured": [1]})]
    (series,) = summarise(samples, catalogue={"wake": checked}).series
    assert series.failures == ("n=50: 3 of 50 answers were wrong: no way to do this work",)
    assert series.not_measured == {"gil_share": "there is no GIL"}
    assert "speed_up" not in series.cells[0].metrics, "the base was not measured"


def test_summarise_keeps_the_order_of_values_and_counts_from_the_smallest_measured_size() -> None:
    summary = summarise([sample(50, 3.0), sample(50, 1.0), sample(50, 2.0)], catalogue=CATALOGUE)
    assert summary.series[0].cells[0].values == (3.0, 1.0, 2.0)
    failed = sample(50, status="failed", wall_s=None, reason="no")
    (series,) = summarise([failed, sample(100), sample(200)], catalogue=CATALOGUE).series
    assert [cell.factor for cell in series.cells] == pytest.approx([None, 1, 4])


def test_summarise_turns_samples_that_failed_into_lines_and_keeps_their_times_out() -> None:
    summary = summarise(
        [
            *[sample(100) for _ in range(5)],
            *[sample(100, status="timeout", wall_s=9.0, reason="30 s were up; try a smaller n")] * 3,
            sample(100, status="crashed", wall_s=None, reason="signal 11"),
            sample(100, status="crashed", wall_s=None, reason="signal 6"),
            sample(200, status="garbage", wall_s=None),
        ],
        catalogue=CATALOGUE,
    )
    (series,) = summary.series
    assert series.failures == (
        "3 of 10 samples at n=100 timed out: 30 s were up; try a smaller n",
        "2 of 10 samples at n=100 crashed: signal 11 (and other reasons: 1)",
        "1 of 1 samples at n=200 printed no result: no reason given",
    )
    assert len(series.cells[0].values) == 5
    assert series.cells[1].median is None
    assert summary.samples == 11


def test_summarise_says_what_was_not_run_and_why() -> None:
    skip = sample(50, status="skipped", params=PARAMS, wall_s=None, reason="needs fork")
    (series,) = summarise([skip], catalogue=CATALOGUE).series
    assert (series.skipped, series.cells, series.failures) == ("needs fork", (), ())
    assert series.fit.exponent is None
    assert series.fit.note == "nothing was run: needs fork"
    skips = [sample(n, status="skipped", wall_s=None, reason="over the budget") for n in (800, 400, 400)]
    whole = sample(1, status="skipped", params=PARAMS, wall_s=None, reason="no fork")
    summary = summarise([*square(), *skips, whole], catalogue=CATALOGUE)
    assert summary.samples == len(square()), "what was skipped is no sample"
    (series,) = summary.series
    assert series.skipped is None
    assert [cell.n for cell in series.cells] == [50, 100, 200]
    assert series.failures == (
        "n=400, n=800 not run (3 times): over the budget",
        "the series not run: no fork",
    )


def test_summarise_separates_interpreters_variants_and_experiments() -> None:
    rr = {**PARAMS, "policy": "rr", "cores": "one"}
    summary = summarise(
        [
            sample(50, experiment="unknown.thing", params={"n": 50, "x": 1}),
            sample(50, interpreter=PYPY),
            sample(50),
            sample(50, params={"n": 50, **rr}, environment={**HERE, "policy": "rr", "affinity": [0]}),
            sample(50, params={"n": 50, **PARAMS, "work": "yield"}),
        ],
        catalogue=CATALOGUE,
    )
    found = [(one.experiment, one.interpreter["name"], one.label) for one in summary.series]
    assert found == [
        ("wake", "pypy3.11", ""),
        ("wake", "3.13", ""),
        ("wake", "3.13", "rr, 1 core"),
        ("wake", "3.13", "work yield"),
        ("unknown.thing", "3.13", "x 1"),
    ]
    assert summary.environments == 1
    assert [subject.id for subject in summary.subjects] == ["wake", "unknown.thing"]
    assert "does not know the experiment" in summary.subjects[1].explanation


def test_summarise_keeps_machines_and_cores_apart_and_names_them() -> None:
    there = {**HERE, "hostname": "there", "kernel": "6.8"}
    summary = summarise([*square(), *square(environment=there), sample(400)], catalogue=CATALOGUE)
    assert [one.label for one in summary.series] == ["hostname here", "hostname there"]
    assert (summary.environments, summary.environment) == (2, HERE)
    summary = summarise([sample(50), sample(50, environment={**HERE, "affinity": [1]})], catalogue=CATALOGUE)
    assert [one.label for one in summary.series] == ["affinity [0, 1]", "affinity [1]"]
    assert summary.environments == 1


def test_summarise_counts_what_was_read_twice_once_and_gives_the_span_in_utc() -> None:
    samples = [sample(50, started=f"2026-01-01T00:00:0{second}+00:00") for second in range(5)]
    summary = summarise([*samples, *samples[:2]], ["damaged"], catalogue=CATALOGUE)
    assert summary.samples == 5
    assert summary.problems == ("damaged", "2 samples were read twice; counted once")
    summary = summarise(
        [
            sample(50, 2.0, started="2026-01-01T12:00:00+02:00"),
            sample(50, 3.0, started="2026-01-01T10:00:05", elapsed_s=4.0),
            sample(50, 1e12, started="2026-01-01T10:00:04"),
            sample(50, 1.0, started="0001-01-01T00:00:00+05:00"),
            sample(50, 1.0),
        ],
        catalogue=CATALOGUE,
    )
    assert summary.started == "2026-01-01T10:00:00+00:00"
    assert summary.finished == "2026-01-01T10:00:09+00:00"


def test_summarise_of_nothing_is_empty_and_without_a_catalogue_that_of_this_version() -> None:
    summary = summarise([], catalogue=CATALOGUE)
    assert (summary.series, summary.subjects, summary.samples, summary.started) == ((), (), 0, None)
    experiment = next(iter(registry.catalogue().values()))
    summary = summarise([sample(50, experiment=experiment.id)])
    assert summary.subjects == (experiment.subject,)
