"""Two runs side by side, for the terminal and for programs."""

from __future__ import annotations

import json as json_module
import random
import re
from dataclasses import replace
from typing import Any

import pytest
import summaries

from fairlead.record.comparison import Comparison
from fairlead.record.summary import Summary
from fairlead.report import json, text, words

pytest.importorskip("rich")
pytest.importorskip("numpy")


def run(exponent: float = 2.04, python: dict[str, Any] | None = None, **more: Any) -> Summary:
    return summaries.summary(
        summaries.series(random.Random(exponent), python=python, exponent=exponent), **more
    )


def compared(a: Summary, b: Summary) -> Comparison:
    from fairlead.lab.compare import compare

    return compare(a, b)


@pytest.fixture
def comparison() -> Comparison:
    """Faster below 100, slower above: the exponent has grown."""
    return compared(run(1.5), run(2.5))


def rows(page: str) -> dict[int, str]:
    return {int(line.split()[0]): line for line in page.splitlines() if re.match(r" +\d+  ", line)}


def test_every_cell_is_shown_with_ratio_and_change(comparison: Comparison) -> None:
    shown = rows(text.render_comparison(comparison))
    for cell in comparison.series[0].cells:
        assert f"{cell.ratio:.2f}" in shown[cell.n]
        assert shown[cell.n].endswith(cell.change)
    assert shown[50].endswith("faster")
    assert shown[400].endswith("slower")


def test_fits_eighty_plain_columns_and_sums_up_at_the_end(comparison: Comparison) -> None:
    page = text.render_comparison(comparison)
    assert max(map(len, page.splitlines())) <= 80
    assert page.isascii()
    assert page.endswith("\nOf 4 cells in b, held against a: 1 faster, 2 slower, 1 no difference shown.\n")
    series = comparison.series[0]
    assert f"a {words.fit(series.fit_a)}\n" in page
    assert f"b {words.fit(series.fit_b)}\n" in page


def test_colour_is_written_only_when_asked(comparison: Comparison) -> None:
    assert "\x1b" not in text.render_comparison(comparison)
    assert "\x1b[31mslower" in text.render_comparison(comparison, colour=True)


def test_interpreters_are_named_once_or_both() -> None:
    other = summaries.interpreter(path="/elsewhere/python")
    assert "\n  CPython 3.13.0\n" in text.render_comparison(compared(run(), run()))
    crossed = text.render_comparison(compared(run(), run(python=summaries.PYTHONS[2])))
    assert "\n  a: CPython 3.13.0; b: CPython 3.15.2\n" in crossed
    twins = " ".join(text.render_comparison(compared(run(), run(python=other))).split())
    assert "a: CPython 3.13.0 (/opt/pythons/3.13/bin/python); b: CPython 3.13.0 (/elsewhere/python)" in twins


def test_advice_gathers_the_sizes_that_it_is_about(comparison: Comparison) -> None:
    cells = tuple(replace(c, advice="more samples") for c in comparison.series[0].cells[:2])
    advised = replace(comparison, series=(replace(comparison.series[0], cells=cells),))
    assert "! n = 50, 100: more samples" in text.render_comparison(advised)


def test_what_only_one_run_has_and_what_differs_is_told() -> None:
    a, b = run(environment={"cores": 2}), run(environment={"cores": 8}, problems=("line 3: cut",))
    alone = replace(a.series[0], experiment="square.semaphore")
    page = text.render_comparison(compared(replace(a, series=(*a.series, alone)), b))
    assert "! cores differs: 2 in a, 8 in b; compare exponents, not times" in page
    assert "a: square.semaphore, CPython 3.13.0: n = 50, 100, 200, 400" in page
    assert "line 3: cut" in page


def test_runs_without_a_common_cell_are_said_to_be() -> None:
    page = text.render_comparison(compared(run(), summaries.summary()))
    assert page.endswith("nothing can be compared.\n")


def test_hostile_names_reach_the_terminal_as_text(comparison: Comparison) -> None:
    bad = "\x1b[31m[red]\u202e"
    series = replace(
        comparison.series[0],
        experiment=bad,
        title=bad,
        label_a=bad,
        interpreter_a=summaries.interpreter(bad, bad, path=bad),
        cells=tuple(replace(c, advice=bad) for c in comparison.series[0].cells),
    )
    page = text.render_comparison(
        replace(comparison, series=(series,), differing=(bad,), environment_a={bad: bad}, problems=(bad,))
    )
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", page)
    assert "[31m[red]" in page


def test_json_gives_back_the_comparison(comparison: Comparison) -> None:
    data = json_module.loads(json.render_comparison(comparison))
    assert data["version"] == 1
    (series,) = data["series"]
    assert series["interpreter_a"] == summaries.PYTHONS[0]
    assert series["fit_b"]["exponent"] == comparison.series[0].fit_b.exponent
    expected = [(c.n, c.ratio, c.p, c.change) for c in comparison.series[0].cells]
    assert [(c["n"], c["ratio"], c["p"], c["change"]) for c in series["cells"]] == expected
