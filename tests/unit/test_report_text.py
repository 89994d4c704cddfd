"""The report for the terminal."""

from __future__ import annotations

import random
import re
import sys
from dataclasses import replace

import pytest
import summaries

from fairlead.errors import MissingExtra
from fairlead.record.summary import Summary
from fairlead.report import names, text, words
from fairlead.report.headline import headline

pytest.importorskip("rich")


@pytest.fixture(params=[1, 2, 3])
def summary(request: pytest.FixtureRequest) -> Summary:
    print(f"seed {request.param}")
    return summaries.realistic(request.param)


def test_fits_eighty_columns_in_plain_characters(summary: Summary) -> None:
    page = text.render(summary)
    assert max(map(len, page.splitlines())) <= 80
    assert "\x1b" not in page
    assert page.isascii()


def test_every_cell_and_fit_is_shown(summary: Summary) -> None:
    page = text.render(summary)
    rows = [line.split() for line in page.splitlines()]
    for series in summary.series:
        for cell in series.cells:
            assert any(row[:1] == [str(cell.n)] and row[-1] == cell.verdict for row in rows)
        if series.cells:
            assert words.fit(series.fit) in page
    roster = names.Roster(summary.series)
    assert all(who.label in page for who in roster)


def test_figures_of_an_experiment_have_columns_of_their_own() -> None:
    page = text.render(summaries.with_metrics())
    assert max(map(len, page.splitlines())) <= 80
    (head,) = [line for line in page.splitlines() if line.split()[:2] == ["threads", "request"]]
    assert head.split("  ")[-1].strip() == "verdict"
    for title in ("rate", "p99", "memory", "held", "slower"):
        assert title in head
    assert "elapsed" not in page
    (row,) = [line for line in page.splitlines() if line.split()[:1] == ["4"]]
    for figure in ("2,500/s", "5.10 ms", "900 KiB", "98 %", "x1.80"):
        assert figure in row


def test_figure_that_was_not_measured_is_a_dash() -> None:
    page = text.render(summaries.with_metrics(metrics={}))
    (row,) = [line for line in page.splitlines() if line.split()[:1] == ["4"]]
    assert row.split()[-6:] == [*["-"] * 5, "stable"]


def test_overview_holds_one_row_for_each_measured_series(summary: Summary) -> None:
    page = text.render(summary)
    overview = page[page.index("experiment, interpreter") :]
    verdicts = re.findall(r"(stable|noisy|bimodal|undecided)$", overview, re.MULTILINE)
    assert len(verdicts) == sum(map(words.measured, summary.series))


def test_headline_comes_last(summary: Summary) -> None:
    page = " ".join(text.render(summary).split())
    assert page.endswith(str(headline(summary)))


def test_skips_failures_warnings_and_problems_are_told() -> None:
    rng = random.Random(1)
    failed = replace(
        summaries.series(rng, verdict="noisy", advice="Close the browser."),
        failures=("2 timeout: killed after 30 s; give it smaller sizes",),
    )
    page = text.render(
        summaries.summary(
            failed, summaries.skipped("square.mutex", reason="no fork here"), problems=("line 7: cut",)
        )
    )
    assert "skipped: no fork here" in page
    assert "missing: 2 timeout: killed after 30 s; give it smaller sizes" in page
    assert "! n = 400 noisy: Close the browser." in page
    assert "line 7: cut" in page


def test_colour_is_written_only_when_asked(summary: Summary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    plain = text.render(summary)
    monkeypatch.delenv("FORCE_COLOR")
    coloured = text.render(summary, colour=True)
    assert "\x1b" not in plain
    assert "\x1b[32mstable" in coloured
    assert [
        line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", coloured).splitlines()
    ] == plain.splitlines()


@pytest.mark.parametrize("width", [40, 60, 132])
def test_other_widths_are_kept_too(summary: Summary, width: int) -> None:
    assert max(map(len, text.render(summary, width=width).splitlines())) <= width


def test_hostile_names_reach_the_terminal_as_text() -> None:
    bad = summaries.interpreter("\x1b]0;owned\x07[red]x[/red] \u202e", "3.13 [bold]:smile:", path="/x" * 2000)
    page = text.render(
        summaries.summary(summaries.series(random.Random(1), python=bad, label="\x9b31m[link]"))
    )
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", page)
    assert "[bold]:smile:" in page
    assert "[link]" in page


def test_empty_summary_says_so() -> None:
    assert "holds no sample" in text.render(summaries.summary())


def test_without_rich_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(MissingExtra, match=r"rich.*fairlead\[lab\]"):
        text.render(summaries.summary())
