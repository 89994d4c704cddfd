"""Runs side by side: in the terminal, as a page, and for programs."""

from __future__ import annotations

import json as json_module
import random
import re
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import summaries

from fairlead.lab.analysis.compare import compare
from fairlead.record.comparison import Comparison
from fairlead.record.summary import Summary
from fairlead.report.common import words
from fairlead.report.comparison import html as comparison_html
from fairlead.report.comparison import json as comparison_json
from fairlead.report.comparison import sentences
from fairlead.report.comparison import text as comparison_text

pytestmark = pytest.mark.ends


def run(exponent: float = 2.04, python: dict[str, Any] | None = None, **more: Any) -> Summary:
    return summaries.summary(
        summaries.series(random.Random(exponent), python=python, exponent=exponent), **more
    )


def compared(*runs: Summary) -> Comparison:
    return compare([(f"runs/{number}", run) for number, run in enumerate(runs)])


@pytest.fixture
def comparison() -> Comparison:
    """Faster below 100, slower above: the exponent has grown; and a third that is as the first."""
    return compared(run(1.5), run(2.5), run(1.5))


FORMS = (comparison_text, comparison_html, comparison_json)


def rows(page: str) -> dict[tuple[int, str], str]:
    """The lines of the tables by size and run."""
    found, n = {}, 0
    for line in page.splitlines():
        if match := re.match(r" +(\d+ )? *([a-c]) +[\d.]+ [mu]?s\b", line):
            n = int(match[1] or n)
            found[n, match[2]] = line
    return found


def test_every_cell_is_shown_with_ratio_and_change(comparison: Comparison) -> None:
    shown = rows(comparison_text.render(comparison))
    assert len(shown) == 3 * 4
    for cell in comparison.series[0].cells:
        assert cell.base == "a"
        line = shown[cell.n, cell.run]
        assert f" {cell.ratio:.2f} " in line
        assert line.endswith(sentences.called(cell))
    assert shown[50, "b"].endswith("faster")
    assert shown[400, "b"].endswith("slower")
    assert shown[400, "c"].endswith("within 25 %"), "two runs may differ by 5 % each"


def test_text_fits_eighty_columns_sums_up_and_is_coloured_only_when_asked(comparison: Comparison) -> None:
    page = comparison_text.render(comparison)
    assert max(map(len, page.splitlines())) <= 80
    assert page.isascii()
    assert page.endswith(
        "\nOf 4 cells in b, held against a: 1 faster, 2 slower, 1 within 25 %.\n"
        "Of 4 cells in c, held against a: 4 within 25 %.\n"
    )
    for member in comparison.series[0].members:
        assert f"{member.run} {words.fit(member.series.fit)}\n" in page
    assert "\x1b" not in comparison_text.render(comparison)
    assert "\x1b[31mslower" in comparison_text.render(comparison, colour=True)


def test_interpreters_are_named_once_or_each() -> None:
    other = summaries.interpreter(path="/elsewhere/python")
    assert "\n  CPython 3.13.0\n" in comparison_text.render(compared(run(), run()))
    crossed = comparison_text.render(compared(run(), run(python=summaries.PYTHONS[2])))
    assert "\n  a: CPython 3.13.0; b: CPython 3.15.2\n" in crossed
    twins = " ".join(comparison_text.render(compared(run(), run(python=other))).split())
    assert "a: CPython 3.13.0 (/opt/pythons/3.13/bin/python); b: CPython 3.13.0 (/elsewhere/python)" in twins


def test_advice_gathers_the_sizes_and_runs_that_it_is_about(comparison: Comparison) -> None:
    cells = tuple(
        replace(cell, advice="more samples") for cell in comparison.series[0].cells if cell.run == "b"
    )
    advised = replace(comparison, series=(replace(comparison.series[0], cells=cells[:2]),))
    assert "! b, n = 50, 100: more samples" in comparison_text.render(advised)
    short = [summaries.summary(summaries.series(random.Random(seed), sizes=(100, 200))) for seed in range(4)]
    few = []
    for one in short:
        (series,) = one.series
        cells = tuple(
            replace(cell, values=cell.values[:2], rounds=cell.rounds[:2], modes=cell.modes[:1])
            for cell in series.cells
        )
        few.append(replace(one, series=(replace(series, cells=cells),)))
    page = " ".join(comparison_text.render(compared(*few), width=200).split())
    assert page.count("fewer than 3 samples") == 1
    assert "b, c, d, n = 100, 200: fewer than 3 samples, or all alike: repeat both runs" in page


def test_what_only_one_run_has_and_what_differs_is_listed() -> None:
    a, b = run(environment={"cores": 2}), run(environment={"cores": 8}, problems=("line 3: cut",))
    alone = replace(a.series[0], experiment="square.semaphore")
    page = comparison_text.render(compared(replace(a, series=(*a.series, alone)), b, a))
    assert "! cores differs: 2 in a and c, 8 in b; compare exponents, not times" in page
    assert "a: square.semaphore, CPython 3.13.0: n = 50, 100, 200, 400" in page
    assert "line 3: cut" in page


def test_runs_without_a_common_cell_are_said_to_be() -> None:
    bare = compared(run(), summaries.summary())
    assert "nothing can be compared." in comparison_text.render(bare)
    assert "nothing can be compared." in comparison_html.render(bare)
    assert json_module.loads(comparison_json.render(bare))["series"] == []


@pytest.mark.parametrize("form", FORMS)
def test_hostile_names_stay_text(form: ModuleType, comparison: Comparison) -> None:
    bad = "\x1b[31m[red]\u202e<script>=1"
    one = comparison.series[0]
    series = replace(
        one,
        subject=replace(one.subject, id=bad, title=bad, size_name=bad, question=bad),
        members=tuple(
            replace(m, series=replace(m.series, label=bad, interpreter=summaries.interpreter(bad, bad, bad)))
            for m in one.members
        ),
        cells=tuple(replace(cell, advice=bad) for cell in one.cells),
    )
    page = form.render(
        replace(
            comparison,
            runs=tuple(replace(r, name=bad, environment={bad: bad}) for r in comparison.runs),
            series=(series,),
            differing=(bad,),
            problems=(bad,),
        )
    )
    assert not re.search("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", page)
    assert form is not comparison_html or "<script" not in page


def test_page_and_json_have_every_run_and_every_cell(comparison: Comparison) -> None:
    page = comparison_html.render(comparison)
    for one in comparison.runs:
        assert one.name in page
    for cell in comparison.series[0].cells:
        assert f"<td>{cell.ratio:.2f}</td><td>{words.bounds(cell.low, cell.high)}</td>" in page
    places = [float(place) for place in re.findall(r"left: ([\d.]+)%", page)]
    assert places
    assert all(0 <= place <= 100 for place in places)
    assert len(page) < 100_000
    data = json_module.loads(comparison_json.render(comparison))
    assert data["version"] == 4
    assert [one["name"] for one in data["runs"]] == ["runs/0", "runs/1", "runs/2"]
    (series,) = data["series"]
    assert [member["interpreter"] for member in series["members"]] == [summaries.PYTHONS[0]] * 3
    assert series["members"][1]["fit"]["exponent"] == comparison.series[0].members[1].series.fit.exponent
    expected = [(c.n, c.run, c.ratio, c.p, c.change, c.within) for c in comparison.series[0].cells]
    keys = ("n", "run", "ratio", "p", "change", "within")
    assert [tuple(cell[key] for key in keys) for cell in series["cells"]] == expected
