"""`fairlead demo`: what it draws and concludes, and where it cannot run."""

from __future__ import annotations

import sys

import pytest

from fairlead import cli
from fairlead.cli.demo import INTRODUCTION, conclusion, picture
from fairlead.lab.demo import WAYS, Demonstration, WayFigures

pytestmark = pytest.mark.ends


BESIDE_CALLS = ((5000.0, 4e7), (100_000.0, 3e7), (12_500.0, 4e6))
"""Calls, and steps of the computing thread, of each way."""


def seen(*p99_s: float, other_load: float | None = 0.0) -> Demonstration:
    figures = zip(WAYS, p99_s, BESIDE_CALLS, strict=False)
    ways = (WayFigures(name, p99 / 5, p99, 1e6, *beside, 3) for name, p99, beside in figures)
    return Demonstration(tuple(ways), other_load)


def test_bars_are_as_long_as_what_they_stand_for_and_figures_stand_below_each_other() -> None:
    groups, head, *rows = picture(seen(0.040, 0.010, 0.00001))
    assert [row.count("█") for row in rows] == [8, 2, 1]
    assert len({row.index("100 %") for row in rows}) == 1
    assert head.index("half in") == rows[0].index("8.00 ms")
    assert groups.index("beside C calls") == head.index("calls/s")
    assert {row.rindex("%") for row in rows} == {head.rindex("d")}


def test_row_has_the_calls_and_what_is_computed_beside_them() -> None:
    groups, _, *rows = picture(seen(0.040, 0.010, 0.004))
    assert [row[groups.index("beside C calls") :].split() for row in rows] == [
        ["5,000", "100", "%"],
        ["100,000", "75", "%"],
        ["12,500", "10", "%"],
    ]


def test_no_line_is_longer_than_a_terminal_is_wide() -> None:
    shown = seen(0.9999, 0.9999, 0.9999, other_load=0.5)
    assert max(map(len, [*INTRODUCTION, *picture(shown), *conclusion(shown)])) <= 80


def test_picture_grows_with_the_ways_that_were_measured() -> None:
    assert len(list(picture(seen(0.040)))) == 3


@pytest.mark.parametrize(
    ("p99_s", "other_load", "said"),
    [
        ((0.040, 0.010, 0.004), 0.0, "10.0 times sooner"),
        ((0.004, 0.004, 0.0041), 0.0, "as quick here"),
        ((0.004, 0.004, 0.010), 0.0, "2.5 times as long"),
        ((0.040, 0.010, 0.004), 0.4, "used 40 % of this machine"),
        ((0.040, 0.010, 0.004), None, "is not known"),
    ],
)
def test_conclusion_is_what_was_measured(
    p99_s: tuple[float, ...], other_load: float | None, said: str
) -> None:
    assert said in "\n".join(conclusion(seen(*p99_s, other_load=other_load)))


def test_conclusion_has_what_is_lost_beside_what_is_gained() -> None:
    said = " ".join(conclusion(seen(0.040, 0.010, 0.004)))
    assert "beside the C calls computes 0.10 times as much, and 2.50 times as many calls are made." in said


def test_where_no_gil_can_be_scheduled_it_says_why_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.modules["fairlead.cli.demo"], "why_not", lambda: "this interpreter has no GIL")
    with pytest.raises(SystemExit) as ended:
        cli.main(["demo"])
    assert ended.value.code == 1
    assert "no GIL; `fairlead lab run" in capsys.readouterr().err
