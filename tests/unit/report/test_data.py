"""JSON and CSV: what other programs read."""

from __future__ import annotations

import csv as csv_module
import io
import json as json_module
import math
import random
import runpy
from dataclasses import replace
from pathlib import Path

import jsonschema
import pyperf as peer
import pytest
import summaries

from fairlead.record.summary import Summary
from fairlead.report.summary import claims, csv, json, pyperf

pytestmark = pytest.mark.ends


@pytest.fixture(scope="module")
def summary() -> Summary:
    return summaries.realistic(1)


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def loaded(summary: Summary) -> dict:
    return json_module.loads(json.render(summary), parse_constant=refuse)


def test_json_contains_every_cell(summary: Summary) -> None:
    results = loaded(summary)["results"]
    cells = [(s, c) for s in summary.series for c in s.cells]
    assert len(results) == len(cells)
    for result, (series, cell) in zip(results, cells, strict=True):
        assert [result[key] for key in ("experiment", "interpreter", "params", "samples", "values")] == [
            series.experiment, series.interpreter["name"], cell.params, len(cell.values), list(cell.values),
        ]  # fmt: skip
        assert [result[key] for key in ("median", "iqr", "rounds")] == [
            cell.median,
            cell.iqr,
            [list(where) for where in cell.rounds],
        ]
        for key in ("exponent", "low", "high", "model"):
            assert result["fit"][key] == getattr(series.fit, key)


def test_json_has_environment_interpreters_claims_skips_failures_and_problems(summary: Summary) -> None:
    data = loaded(summary)
    assert data["version"] == 3
    assert data["environment"] == summary.environment
    assert data["interpreters"] == {p["name"]: p for p in summaries.PYTHONS}
    assert [(s["experiment"], s["interpreter"]) for s in data["skipped"]] == [
        ("square.process-start", "3.13t")
    ]
    assert data["skipped"][0]["reason"].startswith("needs fork")
    assert data["problems"] == list(summary.problems)
    assert data["failures"] == []
    data = loaded(summary)
    assert data["conditions"]["rejected"] == 3
    told = [(c["topic"], c["interpreter"], c["value"], c["low"], c["verdict"]) for c in data["claims"]]
    assert told == [
        (c.topic, c.interpreter["name"], c.value, c.low, c.verdict) for c in claims.ordered(summary)
    ]
    failed = replace(summaries.skipped("square.mutex"), skipped=None, failures=("3 crashed: signal 11",))
    (told,) = loaded(summaries.summary(failed))["failures"]
    assert told == {
        "experiment": "square.mutex", "interpreter": "3.13", "label": "", "params": {},
        "reason": "3 crashed: signal 11",
    }  # fmt: skip


def test_json_of_odd_numbers_names_and_half_characters() -> None:
    curve = summaries.series(random.Random(1))
    odd = replace(curve.cells[0], median=math.nan, high=math.inf, cpu_s=-math.inf)
    data = loaded(summaries.summary(replace(curve, cells=(odd,)), environment={"load": [math.nan]}))
    assert [data["results"][0][key] for key in ("median", "high", "cpu_s")] == [None, None, None]
    assert data["environment"] == {"load": [None]}
    rng = random.Random(1)
    twins = [summaries.interpreter(version=v) for v in ("3.13.0", "3.13.1")]
    data = loaded(summaries.summary(*(summaries.series(rng, python=p) for p in twins)))
    assert sorted(data["interpreters"]) == ["CPython 3.13.0", "CPython 3.13.1"]
    assert {r["interpreter"] for r in data["results"]} == set(data["interpreters"])
    bad = summaries.interpreter("\udc80\u202e</script>")
    rendered = json.render(summaries.summary(summaries.series(random.Random(1), python=bad)))
    assert rendered.isascii()
    assert json_module.loads(rendered)["results"][0]["interpreter"] == "\udc80\u202e</script>"


def rows(summary: Summary) -> list[dict[str, str]]:
    return list(csv_module.DictReader(io.StringIO(csv.render(summary), newline=""), strict=True))


def test_csv_has_a_row_for_each_cell_and_ends_its_lines_as_the_standard_says(summary: Summary) -> None:
    cells = [(s, c) for s in summary.series for c in s.cells]
    table = [row for row in rows(summary) if row["kind"] == "measured"]
    assert len(table) == len(cells)
    for row, (series, cell) in zip(table, cells, strict=True):
        assert row["experiment"] == series.experiment
        assert json_module.loads(row["params"]) == cell.params
        assert int(row["n"]) == cell.n
        assert float(row["median_s"]) == cell.median
        assert float(row["fit_exponent"]) == series.fit.exponent
    rendered = csv.render(summary)
    assert rendered.endswith("\r\n")
    assert rendered.count("\n") == rendered.count("\r\n") == 1 + len(rows(summary))


def test_csv_says_what_was_skipped_what_failed_and_what_it_all_means(summary: Summary) -> None:
    told = {(row["kind"], row["experiment"], row["text"]) for row in rows(summary)}
    for series in summary.series:
        if series.skipped:
            assert ("skipped", series.experiment, series.skipped) in told
        for failure in series.failures:
            assert ("missing", series.experiment, failure) in told
    table = [row for row in rows(summary) if row["kind"] == "claim"]
    assert len(table) == len(summary.claims)
    for row, claim in zip(table, claims.ordered(summary), strict=True):
        assert (row["variant"], row["verdict"]) == (claim.topic, claim.verdict)
        assert (float(row["value"]), float(row["value_low"])) == (claim.value, claim.low)
        assert row["text"] == claims.sentence(claim)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", " =", "\uff1d"])
def test_csv_names_cannot_be_formulas(start: str) -> None:
    bad = summaries.interpreter(f"{start}cmd|' /C calc'!A0", "1", implementation=f'{start}HYPERLINK("x","y")')
    curve = replace(
        summaries.series(random.Random(1), python=bad, label=f"{start}1+1"), experiment=f"{start}2"
    )
    for row in (row for row in rows(summaries.summary(curve)) if row["kind"] == "measured"):
        for key in ("experiment", "interpreter", "name", "variant"):
            assert row[key][0] == "'", (key, row[key])


def test_csv_leaves_what_was_not_measured_empty_and_of_nothing_is_a_head() -> None:
    curve = summaries.series(random.Random(1))
    odd = replace(curve.cells[0], cpu_s=None, factor=math.nan)
    (row,) = (r for r in rows(summaries.summary(replace(curve, cells=(odd,)))) if r["kind"] == "measured")
    assert (row["cpu_s"], row["factor"], row["text"]) == ("", "", "")
    assert csv.render(summaries.summary()).startswith("kind,experiment,interpreter,")
    assert rows(summaries.summary()) == []


SCHEMA = Path(__file__).parents[3] / "tools" / "site" / "results_schema.py"


def test_json_is_what_its_schema_says_and_nothing_beside(summary: Summary) -> None:
    schema = json_module.loads(runpy.run_path(str(SCHEMA))["text"]())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(loaded(summary))
    for spoilt in (
        {**loaded(summary), "more": 1},
        {**loaded(summary), "samples": "7"},
        {**loaded(summary), "claims": [{}]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(schema).validate(spoilt)


def test_pyperf_reads_every_value_compares_two_interpreters_and_takes_one_sample(summary: Summary) -> None:
    suite = peer.BenchmarkSuite.loads(pyperf.render(summary))
    cells = [cell for series in summary.series for cell in series.cells if cell.values]
    assert [list(one.get_values()) for one in suite.get_benchmarks()] == [list(c.values) for c in cells]
    assert len(set(suite.get_benchmark_names())) == len(cells)
    assert {one.get_unit() for one in suite.get_benchmarks()} == {"second"}
    halves = [
        replace(summary, series=tuple(s for s in summary.series if s.interpreter["name"] == name))
        for name in ("3.13", "3.15")
    ]
    one, other = (
        set(peer.BenchmarkSuite.loads(pyperf.render(half)).get_benchmark_names()) for half in halves
    )
    assert one & other, "benchmarks of one interpreter are named without it, so that two can be compared"
    series = next(one for one in summary.series if one.cells)
    cell = replace(series.cells[0], values=(0.5,))
    alone = replace(summary, series=(replace(series, cells=(cell,)),))
    (benchmark,) = peer.BenchmarkSuite.loads(pyperf.render(alone)).get_benchmarks()
    assert benchmark.get_values() == (0.5,)
