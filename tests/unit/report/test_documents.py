"""Theirs and ours: the tables of a document beside what was measured for them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import summaries
from samples import sample

from fairlead.lab.analysis.summarise import summarise
from fairlead.record.sample import Sample
from fairlead.record.summary import Summary
from fairlead.report.summary import documents, html, text

pytestmark = pytest.mark.ends

USUAL = {"interval_ms": 5, "policy": "other", "cores": "all"}


def six(
    experiment: str, wall_s: float, n: int, metrics: dict[str, float] | None = None, **params: Any
) -> list[Sample]:
    return [
        sample(
            experiment, n, wall_s, params={"n": n, **USUAL, **params}, interpreter=summaries.PYTHONS[0],
            started=f"2026-03-02T10:{n % 60:02}:{number:02}+00:00", round=number,
            details={"metrics": metrics or {}},
        )
        for number in range(6)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def summary() -> Summary:
    taken = [
        one for n in (1, 2, 4, 8) for one in six("gil.countdown", 13.0, n, steps=100_000_000, scheduler="off")
    ]
    taken += six("gil.sha256", 1.0, 1, megabytes=128)
    for beside, rate in (("nothing", 60_000.0), ("threads", 50.0)):
        metrics = {"requests_per_s": rate, "request_s": 1 / rate}
        taken += six("gil.convoy", 0.2, 1, metrics, beside=beside, computing=1, seconds=1, scheduler="off")
    return summarise(taken)


def test_published_figures_stand_beside_ours_with_the_claims_about_them(summary: Summary) -> None:
    (convoy,) = summary.documents
    tables = {one.title: one for one in documents.tables(summary, convoy)}
    found = tables["Counting down"].figures
    # all are of one source, which is named once
    assert found.sources == "CPython, 1e8 steps"
    assert found.heads == ("case", "figure", "n", "theirs", "ours", "ratio")
    theirs = [("1", "6.52 s", "x1.99"), ("2", "6.57 s", "x1.98")]
    theirs += [("4", "6.59 s", "x1.97"), ("8", "6.58 s", "x1.98")]
    assert found.rows == [("100 million steps", "wall", n, one, "13.0 s", ratio) for n, one, ratio in theirs]
    by_interval = tables["Counting down, by switch interval"].figures
    assert [row[3] for row in by_interval.rows] == ["6.53 s", "6.58 s", "7.20 s", "7.19 s"]
    first, second = tables["Counting down"].claims
    assert first.startswith("settled: 2 threads count down no faster than one: x1.00")
    assert second.startswith("settled: 8 threads count down no faster than one: x1.00")
    served = tables["An echo server, alone, beside a thread and beside processes"].figures
    assert served.rows == [
        ("alone", "CPython, alone", "rate", "1", "30.0 k/s", "60.0 k/s", "x2.00"),
        ("1 CPU thread", "CPython, beside a CPU thread", "rate", "1", "100/s", "50/s", "x0.50"),
    ]
    # with other parameters than theirs there is nothing to stand beside
    alone = tables["SHA-256 of eight messages of 128 MB"].figures
    assert (alone.heads[3:], [row[3:] for row in alone.rows]) == (("ours",), [("1.00 s ± 0 %",)])
    assert "The echo server and its client on one core, alone" not in tables


def test_a_figure_of_another_size_and_interpreter_is_shown_and_not_divided() -> None:
    taken = six("gil.battle", 0.5, 2000, {"series_s": 0.25}, count="nothing", check_interval=100)
    made = summarise([replace(one, interpreter=summaries.PYTHONS[1]) for one in taken])  # theirs is Python 2
    (battle,) = made.documents
    (table,) = documents.tables(made, battle)
    assert table.figures.sources == "CPython 2, 2 cores, OS X"
    assert table.figures.rows == [
        ("plain", "in series", "100000, ours 2000", "24.6 s", "250 ms"),
        ("plain", "wall", "100000, ours 2000", "45.5 s", "500 ms"),
    ]


def test_whose_it_is_is_said_where_its_figures_are(summary: Summary) -> None:
    (convoy,) = summary.documents
    credit = documents.credit(convoy)
    assert credit.startswith("Victor Skvortsov: Python behind the scenes #13")
    assert credit.endswith("the-gil-and-its-effects-on-python-multithreading/")
    assert f"<h3>{credit}</h3>" in html.render(summary)
    unknown = replace(convoy, author="", address="", licence="CC-BY-4.0", title="Cases")
    assert documents.credit(unknown) == "Author not known: Cases (CC-BY-4.0)"


def test_the_terminal_shows_the_tables_of_a_run_of_a_document_alone(summary: Summary) -> None:
    shown = text.render(summary)
    assert shown.startswith("Victor Skvortsov")
    assert re.search(r"^ +alone +CPython, alone +rate +1 +30.0 k/s +60.0 k/s +x2.00$", shown, re.MULTILINE)
    more = summarise(six("gil.signal", 1.0, 1, {"delay_s": 0.1}, signals=20))
    mixed = replace(
        summary, series=(*summary.series, *more.series), subjects=(*summary.subjects, *more.subjects)
    )
    assert "Victor Skvortsov" not in text.render(mixed)
