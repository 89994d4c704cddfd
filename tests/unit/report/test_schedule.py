"""The picture of who runs: what is drawn is the schedule, and what is counted is what is drawn."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from fairlead.report.summary.pictures import schedule

pytestmark = pytest.mark.ends


@pytest.mark.parametrize("n", range(1, 13))
def test_costs_of_a_schedule_are_triangles(n: int) -> None:
    assert schedule.turns(schedule.passes("start", n)) == 2 * sum(range(1, n + 1)) + 1
    assert schedule.turns(schedule.passes("pass", n)) == sum(range(1, n + 1))


def test_three_starts_run_in_the_published_order_and_the_sum_is_written_out() -> None:
    runs = [p.runs for p in schedule.passes("start", 3)]
    assert runs == [(0,), (1,), (0, 1), (2, 1), (0, 2, 1), (3, 2, 1), (0,)]
    start, lock = schedule.passes("start", 3), schedule.passes("pass", 3)
    assert schedule.sum_in_words(start, 3) == "1 + 1 + 2 + 2 + 3 + 3 + 1 = 13 = 2 (1 + 2 + 3) + 1"
    assert schedule.sum_in_words(lock, 3) == "1 + 2 + 3 = 6"
    assert schedule.passes("", 6) == ()
    assert schedule.svg("", 6, "threads") == ""


@pytest.mark.parametrize("kind", ["start", "pass"])
def test_woken_thread_never_runs_in_the_same_pass_and_runs_first_in_the_next(kind: str) -> None:
    drawn = schedule.passes(kind, 6)  # type: ignore[arg-type]
    for now, following in pairwise(drawn):
        assert now.waits is not None
        assert now.waits not in now.runs
        assert following.runs[0] == now.waits
    assert drawn[-1].waits is None


@pytest.mark.parametrize("kind", ["start", "pass"])
@pytest.mark.parametrize("n", [1, 2, 6])
def test_picture_shows_a_box_for_each_turn_and_each_wait(kind: str, n: int) -> None:
    drawn = schedule.passes(kind, n)  # type: ignore[arg-type]
    picture = ElementTree.fromstring(schedule.svg(kind, n, "threads"))  # type: ignore[arg-type]
    boxes = [r.get("class", "").split() for r in picture.iter("rect")]
    assert sum("turn" in b for b in boxes) == schedule.turns(drawn)
    assert sum("new" in b for b in boxes) == n
    assert sum("wait" in b for b in boxes) == sum(p.waits is not None for p in drawn)
    sums = [int(t.text or "") for t in picture.iter("text") if t.get("class") == "sum"]
    assert sums == [len(p.runs) for p in drawn]
    assert f"{schedule.turns(drawn)} turns in all" in picture.get("aria-label", "")


def test_picture_stays_inside_its_frame_and_its_words_are_text() -> None:
    picture = ElementTree.fromstring(schedule.svg("start", 6, "processes"))
    _, _, width, height = map(float, picture.get("viewBox", "").split())
    for rect in picture.iter("rect"):
        assert float(rect.get("x", "")) + float(rect.get("width", "")) <= width
        assert float(rect.get("y", "")) + float(rect.get("height", "")) <= height
    picture = ElementTree.fromstring(schedule.svg("pass", 2, '"<b>threads'))
    assert any(t.text == '"<b>thread 1' for t in picture.iter("text"))


@pytest.mark.parametrize(("many", "one"), [("threads", "thread"), ("processes", "process"), ("n", "n")])
def test_singular(many: str, one: str) -> None:
    assert schedule.singular(many) == one
