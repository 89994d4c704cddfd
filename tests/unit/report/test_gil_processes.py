"""Recordings of several processes in one report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import exit_status
from gilprograms import example
from gilsim import MS, Simulation

from fairlead.gil.analysis.timeline import TimelineCollector
from fairlead.gil.analysis.together import analyse_together, in_order
from fairlead.record.gil_summary import GilSummary
from fairlead.record.recording import Recording
from fairlead.report.gil import html as gil_html
from fairlead.report.gil import perfetto as gil_perfetto
from fairlead.report.gil import text as gil_text

pytestmark = pytest.mark.ends

BOOT = "9f0e5d0c-boot"


def clock(boot: str | None = BOOT) -> dict[str, Any]:
    return {"name": "CLOCK_MONOTONIC", "resolution_ns": 1, "boot": boot}


def saved(place: Path, program: str, **meta: Any) -> Path:
    simulation = Simulation(example(program), until_ns=300 * MS)
    return simulation.writer(**{"clock": clock(), **meta}).save(place)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A convoy of process 12, and one of 11, whose recording began 100 ms earlier."""
    place = tmp_path_factory.mktemp("recordings")
    return [
        saved(place / "app.flrec.12", "convoy", pid=12, parent_pid=11),
        saved(place / "app.flrec", "convoy", pid=11, start_ns=900 * MS),
    ]


@pytest.fixture(scope="module")
def collector() -> TimelineCollector:
    return TimelineCollector()


@pytest.fixture(scope="module")
def summary(files: list[Path], collector: TimelineCollector) -> GilSummary:
    return analyse_together(in_order([Recording(file) for file in files]), watch=collector.watch)


def test_processes_stand_in_order_share_no_number_and_are_named_by_findings(summary: GilSummary) -> None:
    assert [(one.meta["pid"], one.start_seconds) for one in summary.processes] == [(11, 0.0), (12, 0.1)]
    assert summary.processes[0].gils == (0,)
    assert summary.processes[1].gils == (1,)
    serials = [thread.serial for thread in summary.threads]
    assert len(set(serials)) == len(serials)
    pid_of = {thread.serial: summary.gil_name(thread.gil) for thread in summary.threads}
    assert {
        pid_of[cell.waiter] == pid_of.get(cell.holder, pid_of[cell.waiter]) for cell in summary.blame
    } == {True}
    (convoy,) = (finding for finding in summary.findings if finding.kind == "convoy")
    assert convoy.title.startswith(("pid 11: io waits", "pid 12: io waits"))
    assert convoy.title.endswith("(and in another process)")
    assert set(convoy.threads) == {f"{name} (pid {pid})" for name in ("io", "cpu") for pid in (11, 12)}


def test_all_processes_are_on_one_time_axis(summary: GilSummary, collector: TimelineCollector) -> None:
    timeline = collector.timeline(round(summary.wall_seconds * 1e9))
    begins = {lane.gil: int(lane.holds[0, 0]) for lane in timeline.lanes if len(lane.holds)}
    assert begins[0] == begins[1]  # the same moment of the clock, 100 ms after the first recording began
    assert begins[0] >= 100 * MS
    assert summary.wall_seconds == pytest.approx(0.4)


def test_text_has_a_table_and_the_page_a_group_of_lanes_for_each_process(
    summary: GilSummary, collector: TimelineCollector
) -> None:
    text = gil_text.render(summary)
    assert "2 processes" in text
    first, second = text.index("Threads of pid 11, app.py"), text.index("Threads of pid 12, app.py")
    assert first < text.index("\n  cpu (pid 11)") < second < text.index("\n  cpu (pid 12)")
    assert "forked by 11" in text[second:]
    assert max(map(len, text.splitlines())) <= 100
    page = gil_html.render(summary, collector.timeline(round(summary.wall_seconds * 1e9)))
    data = json.loads(page.split('id="fairlead-data">')[1].split("</script>")[0])
    assert [lane["group"] for lane in data["lanes"]] == [0, 0, 1, 1]
    assert {lane["name"] for lane in data["lanes"]} == {
        f"{name} (pid {pid})" for name in ("io", "cpu") for pid in (11, 12)
    }
    assert "<h3>pid 11</h3>" in page
    assert "2 processes" in page


def test_perfetto_has_a_process_each_and_no_track_twice(files: list[Path]) -> None:
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = pb.Trace()
    trace.ParseFromString(b"".join(gil_perfetto.render(*in_order([Recording(file) for file in files]))))
    tracks = [packet.track_descriptor for packet in trace.packet if packet.HasField("track_descriptor")]
    processes = {track.uuid: track.process.pid for track in tracks if track.HasField("process")}
    assert sorted(processes.values()) == [11, 12]
    assert len({track.uuid for track in tracks}) == len(tracks)
    for track in tracks:
        if track.HasField("thread"):
            assert processes[track.parent_uuid] == track.thread.pid
    ends = [flow for p in trace.packet for flow in p.track_event.terminating_flow_ids]
    assert len(set(ends)) == len(ends) > 0


def test_exports_have_the_threads_of_all_processes(files: list[Path], tmp_path: Path) -> None:
    assert exit_status("report", *files, "--format", "firefox", "-o", tmp_path / "out.json") == 0
    threads = json.loads((tmp_path / "out.json").read_text())["threads"]
    assert sorted((thread["pid"], thread["name"]) for thread in threads) == [
        (pid, name) for pid in (11, 12) for name in ("cpu", "io")
    ]
    start = threads[0]["markers"]["schema"]["startTime"]
    assert len({min(row[start] for row in thread["markers"]["data"]) for thread in threads[::2]}) == 1
    assert exit_status("report", *files, "--format", "collapsed", "-o", tmp_path / "out") == 0
    assert {line.split(";")[0] for line in (tmp_path / "out").read_text().splitlines()} == {
        "pid 11",
        "pid 12",
    }
    assert exit_status("report", *files, "--format", "speedscope", "-o", tmp_path / "out") == 0
    profiles = json.loads((tmp_path / "out").read_text())["profiles"]
    assert [profile["name"] for profile in profiles] == [
        "waits for the GIL of pid 11",
        "waits for the GIL of pid 12",
    ]


@pytest.mark.parametrize(
    ("meta", "says"),
    [
        ({"pid": 13, "clock": clock("another")}, "have no clock in common"),
        ({"pid": 13, "clock": clock(None)}, "does not name the boot that its clock belongs to"),
        ({"pid": 12}, "are the same recording: name it once"),
        (None, "is not a recording of fairlead"),
    ],
)
def test_files_that_cannot_be_one_report_are_refused_in_a_line(
    files: list[Path],
    meta: dict[str, Any] | None,
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = tmp_path / "other"
    if meta is None:
        other.write_text("not one")
    else:
        saved(other, "convoy", **meta)
    assert exit_status("report", files[0], other) == 1
    told = capsys.readouterr().err
    assert says in told
    assert len(told.splitlines()) == 1
