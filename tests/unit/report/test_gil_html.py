"""The page of a recording: complete, and safe with names that come from the recorded program."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from gilprograms import example
from gilsim import MS, Simulation

from fairlead.gil.analysis import timeline as timelines
from fairlead.gil.analysis.analyse import analyse
from fairlead.gil.analysis.timeline import TimelineCollector
from fairlead.record.gil_summary import GilSummary
from fairlead.record.gil_timeline import Timeline
from fairlead.record.recording import Recording
from fairlead.report.gil import html as gil_html

pytestmark = pytest.mark.ends

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e"


def gathered(simulation: Simulation, tmp_path: Path, **meta: Any) -> tuple[GilSummary, Timeline]:
    collector = TimelineCollector()
    path = simulation.writer(**meta).save(tmp_path / "simulated.flrec")
    summary = analyse(Recording(path), watch=collector.watch)
    return summary, collector.timeline(round(summary.wall_seconds * 1e9))


def drawn(page: str) -> Any:
    return json.loads(re.search(r'id="fairlead-data">(.*?)</script>', page, re.S)[1])  # type: ignore[index]


def test_page_of_a_convoy_has_every_part_and_that_of_an_empty_recording_says_so(tmp_path: Path) -> None:
    page = gil_html.render(*gathered(Simulation(example("convoy"), until_ns=300 * MS), tmp_path))
    parts = (
        "Convoy",
        "Timeline",
        "Which thread blocked which",
        "Where time was lost",
        "How far to trust this",
    )
    assert [part for part in parts if part not in page] == []
    assert "work (cpu.py:10)" in page
    assert [lane["name"] for lane in drawn(page)["lanes"]] == ["cpu", "io"]
    assert "http://" not in page
    assert "https://" not in page
    page = gil_html.render(*gathered(Simulation({}, until_ns=MS), tmp_path))
    assert "No thread took the GIL" in page
    assert drawn(page)["lanes"] == []


def test_page_is_inert_and_its_intervals_survive_the_way_into_it(tmp_path: Path) -> None:
    simulation = Simulation(example("convoy"), until_ns=100 * MS)
    for thread in simulation.threads:
        thread.name = HOSTILE
    page = gil_html.render(*gathered(simulation, tmp_path, argv=[HOSTILE], executable=HOSTILE))
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "<img" not in page
    assert "\u202e" not in page
    summary, timeline = gathered(Simulation(example("convoy"), until_ns=50 * MS), tmp_path)
    data = drawn(gil_html.render(summary, timeline))
    for lane, packed in zip(timeline.lanes, data["lanes"], strict=True):
        words = memoryview(base64.b64decode(packed["holds"])).cast("I")
        assert [word * data["unit"] for word in words] == lane.holds.flatten().tolist()


def test_timeline_bins_add_up_to_the_totals_and_intervals_are_those_of_the_books(tmp_path: Path) -> None:
    simulation = Simulation(example("saturation"), until_ns=777 * MS)
    summary, timeline = gathered(simulation, tmp_path)
    assert timeline.shortest_ns == 0
    for lane in timeline.lanes:
        thread = next(t for t in summary.threads if t.serial == lane.serial)
        assert (
            lane.held.sum()
            == (lane.holds[:, 1] - lane.holds[:, 0]).sum()
            == simulation.truth.held[lane.serial]
        )
        assert lane.waited.sum() == simulation.truth.waited[lane.serial]
        assert len(lane.waits) in (thread.contended, thread.contended + 1)
        assert lane.held.max() <= timeline.bin_ns


def test_timeline_of_too_many_intervals_keeps_the_long_ones_and_every_total(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timelines, "MOST_INTERVALS", 200)
    simulation = Simulation(example("convoy"), until_ns=400 * MS)
    _, timeline = gathered(simulation, tmp_path)
    assert timeline.shortest_ns > 0
    assert 0 < sum(len(lane.holds) + len(lane.waits) for lane in timeline.lanes) <= 200
    for lane in timeline.lanes:
        assert lane.held.sum() == simulation.truth.held[lane.serial]
        assert all((lane.waits[:, 1] - lane.waits[:, 0]) >= timeline.shortest_ns)


def test_timeline_more_threads_than_lanes_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timelines, "MOST_LANES", 3)
    monkeypatch.setattr(timelines, "MOST_THREADS", 5)
    _, timeline = gathered(Simulation(example("switch-storm"), until_ns=5 * MS), tmp_path)
    assert (len(timeline.lanes), timeline.left_out) == (3, 3)
