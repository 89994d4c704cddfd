"""The report for the terminal."""

from __future__ import annotations

import functools
import random
import re
import sys
from dataclasses import replace

import pytest
import summaries

from fairlead.errors import MissingExtraError
from fairlead.record.summary import Metric
from fairlead.report.common import names, words
from fairlead.report.summary import claims, text

pytestmark = pytest.mark.ends


WHOLE = summaries.realistic(1)


@functools.cache
def page(detail: int = 0, width: int = 80, seed: int = 1) -> str:
    """Of a whole run, which takes its time to lay out."""
    return text.render(summaries.realistic(seed), detail=detail, width=width)


@pytest.mark.parametrize(("detail", "seed"), [(0, 1), (1, 1), (2, 1), (1, 2), (1, 3)])
def test_fits_eighty_columns_in_plain_characters(detail: int, seed: int) -> None:
    shown = page(detail, 80, seed)
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown
    assert shown.replace("±", "").isascii()


@pytest.mark.parametrize(
    ("detail", "width"), [(0, 40), (0, 132), (2, 60), (1, 60), (1, 81), (1, 102), (2, 80)]
)
def test_other_widths_are_kept_too_and_no_figure_is_split_from_its_unit(detail: int, width: int) -> None:
    lines = page(detail, width).splitlines()
    assert max(map(len, lines)) <= width
    assert [line for line in lines if re.match(r"\s*(ms|us|s|%|MiB|KiB|k/s|M/s)(\s|$)", line)] == []


def test_a_run_on_one_interpreter_fits_in_twenty_lines() -> None:
    curve = summaries.series(random.Random(1))
    found = [summaries.ratio_claim(curve, topic=f"claim {i}", main=i < 15) for i in range(20)]
    page = text.render(summaries.summary(curve, claims=tuple(found)))
    assert len(page.splitlines()) <= 19, "and one line says where the page is"
    shown = [line for line in page.splitlines() if line.startswith("settled")]
    assert len(shown) == 15, "of many claims the main ones"
    assert "5 more with -v" in page
    (line,) = [line for line in shown if "claim 3 " in line]
    assert "x42.0 [37.1, 48.0]" in line


def test_a_claim_stands_in_one_line_with_its_verdict_times_and_source() -> None:
    shown = page()
    for claim in WHOLE.claims:
        assert any(
            line.split()[0] == claims.sign(claim) and claims.ours(claim) in line and claim.topic in line
            for line in shown.splitlines()
        ), claim
    assert all(who.label in shown for who in names.Roster(WHOLE.series))
    claim = summaries.exponent_claim(WHOLE.series[0], verdict="contradicts the source")
    shown = text.render(replace(WHOLE, claims=(claim,)))
    assert "contrary: settled, against what was published for CPython, 2 cores" in shown


def test_cells_fits_claims_and_conditions_are_shown_where_they_are_asked_for() -> None:
    shown = " ".join(page(2).split())
    assert shown.count("quiet: load 2 %, core speed ± 20 %, stolen 0 %, throttled 0 s; ") == 1
    assert shown.count("samples, 3 rejected") == 1
    squeezed = " ".join(page(2).split())
    rows = [" ".join(line.split()) for line in page(2).splitlines()]
    for series in WHOLE.series:
        for cell in series.cells:
            assert any(row.startswith(f"{cell.n} {words.cell(cell)} {len(cell.values)} ") for row in rows)
        if series.cells:
            assert words.fit(series.fit) in squeezed
    for claim in WHOLE.claims:
        assert claims.sentence(claim) in squeezed
    shown = " ".join(page(1).split())
    for series in WHOLE.series:
        for cell in (series.cells[:1] + series.cells[-1:]) if series.cells else ():
            assert words.cell(cell) in shown
    assert "published for" in shown


def test_figures_of_an_experiment_have_columns_of_their_own() -> None:
    page = text.render(summaries.with_metrics(), detail=2)
    assert max(map(len, page.splitlines())) <= 80
    (head,) = [line for line in page.splitlines() if line.split()[:2] == ["threads", "request"]]
    for title in ("runs", "rate", "p99", "memory", "held", "slower"):
        assert title in head
    assert "elapsed" not in page
    (row,) = [line for line in page.splitlines() if line.split()[:1] == ["4"]]
    for figure in ("2,500/s", "5.10 ms", "900 KiB", "98 %", "x1.80"):
        assert figure in row


def test_table_wider_than_the_page_leaves_columns_out_and_cuts_none() -> None:
    measured = {f"figure_{i}": 1234.5 for i in range(8)}
    titles = [f"figure {i} of a long name" for i in range(8)]
    wide = summaries.with_metrics(measured)
    subject = replace(
        wide.subjects[0],
        metrics=tuple(
            Metric(name=name, title=title, unit="s") for name, title in zip(measured, titles, strict=True)
        ),
    )
    page = text.render(replace(wide, subjects=(subject,)), detail=2)
    (head,) = [line for line in page.splitlines() if titles[0] in line]
    shown = [title for title in titles if title in head]
    assert shown == titles[: len(shown)], head
    left_out = page.split("for want of width without: ")[1].split("\n\n")[0]
    assert " ".join(left_out.split()).startswith(", ".join(titles[len(shown) :]))


def test_figure_that_was_not_measured_is_a_dash_and_has_no_column_where_none_was() -> None:
    without = summaries.with_metrics(metrics={}).series[0].cells
    measured = summaries.with_metrics()
    mixed = replace(measured.series[0], cells=(*measured.series[0].cells[:-1], without[-1]))
    page = text.render(replace(measured, series=(mixed,)), detail=2)
    (row,) = [line for line in page.splitlines() if line.split()[:1] == ["4"]]
    assert row.split()[-5:] == ["-"] * 5
    page = text.render(summaries.with_metrics(metrics={}), detail=2)
    (row,) = [line for line in page.splitlines() if line.split()[:1] == ["4"]]
    assert "-" not in row.split()


def test_skips_failures_notes_and_problems_are_shown_and_no_sample_is_said() -> None:
    rng = random.Random(1)
    failed = replace(
        summaries.series(rng, note="two sizes cannot show a bend"),
        failures=("2 timeout: killed after 30 s; give it smaller sizes",),
    )
    both = summaries.summary(
        failed, summaries.skipped("square.mutex", reason="no fork here"), problems=("line 7: cut",)
    )
    page = text.render(both, detail=1)
    assert "skipped: no fork here" in page
    assert "missing: 2 timeout: killed after 30 s; give it smaller sizes" in page
    assert "two sizes cannot show a bend" in page
    assert "line 7: cut" in page
    short = " ".join(text.render(both).split())
    assert "2 series incomplete (-v); 1 line could not be read" in short
    assert "holds no sample" in text.render(summaries.summary())


def test_tables_are_shown_where_there_is_no_claim_to_show() -> None:
    curve = summaries.series(random.Random(1))
    page = text.render(summaries.summary(curve, environment={"kernel": "Linux 6.1.0", "fairlead": "0.1.0"}))
    assert words.fit(curve.fit) in page
    assert "see the tables" not in page
    assert "\nLinux 6.1.0; CPython 3.13.0; fairlead 0.1.0, 2026-03-02\n" in page


def test_colour_is_written_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    plain = text.render(WHOLE)
    monkeypatch.delenv("FORCE_COLOR")
    coloured = text.render(WHOLE, colour=True)
    assert "\x1b" not in plain
    assert "\x1b[32msettled" in coloured
    assert [
        line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", coloured).splitlines()
    ] == plain.splitlines()


def test_hostile_names_reach_the_terminal_as_text() -> None:
    bad = summaries.interpreter("\x1b]0;owned\x07[red]x[/red] \u202e", "3.13 [bold]:smile:", path="/x" * 2000)
    page = text.render(
        summaries.summary(summaries.series(random.Random(1), python=bad, label="\x9b31m[link]")), detail=2
    )
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", page)
    assert "[bold]:smile:" in page
    assert "[link]" in page


def test_without_rich_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(MissingExtraError, match=r"rich.*fairlead\[lab\]"):
        text.render(summaries.summary())
