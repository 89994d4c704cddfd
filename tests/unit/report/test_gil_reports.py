"""Reports of a recording as text and JSON, and the command that makes them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import exit_status
from gilprograms import example
from gilsim import MS, Simulation
from recordings import RecordingWriter

from fairlead.gil.analysis.analyse import analyse
from fairlead.record.gil_summary import GilSummary
from fairlead.record.recording import BlockType, Recording
from fairlead.report.gil import json as gil_json
from fairlead.report.gil import text as gil_text

pytestmark = pytest.mark.ends


def test_text_says_finding_threads_blame_stack_and_trust(convoy_summary: GilSummary) -> None:
    text = gil_text.render(convoy_summary)
    assert re.match(r"io waits 5\.\d+ ms a turn, \d+ times: cpu computes in work \(cpu\.py:10\)\.\n", text)
    assert re.search(r"^  Waited:  io \d+ ms$", text, re.M)
    assert re.search(r"^  Do:      Run it under: fairlead run -- app.py --fast,", text, re.M)
    assert "The GIL of app.py --fast" in text
    assert text.index("\nThreads\n") < text.index("1. convoy")
    assert "1. convoy: io needs the GIL for 20 us" in text
    assert "io   behind  cpu" in text
    assert "cpu: work (cpu.py:10)" in text
    assert "events are here; the clock counts in 1 ns" in text


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_text_lines_fit_and_no_number_is_parted_from_its_unit(convoy_summary: GilSummary, width: int) -> None:
    lines = gil_text.render(convoy_summary, width).splitlines()
    assert max(map(len, lines)) <= width
    assert [line for line in lines if line[-1:].isdigit() and not line.startswith("  ")] == []


def test_text_of_long_or_equal_names_fits_and_distinguishes_them(tmp_path: Path) -> None:
    simulation = Simulation(example("convoy"), until_ns=100 * MS)
    for thread in simulation.threads:
        thread.name = f"{thread.name}-" + "x" * 60
    text = gil_text.render(analyse(Recording(simulation.writer().save(tmp_path / "long.flrec"))), 80)
    assert [line for line in text.splitlines() if len(line) > 80] == []
    simulation = Simulation(example("saturation"), until_ns=100 * MS)
    for thread in simulation.threads:
        thread.name = "same\x1b[31m"
    text = gil_text.render(analyse(Recording(simulation.writer().save(tmp_path / "same.flrec"))))
    assert "#1" in text
    assert "#2" in text
    assert "\x1b" not in text


SNAPSHOT = {"t_ns": 3_000_000_000, "threads": [], "blame": []}


@pytest.mark.parametrize(
    ("modes", "load", "says"),
    [
        ([], None, "policy not recorded"),
        ([0], None, "policy stock"),
        ([0, 1, 1], None, "policy stock then interactive"),
        ([1, 9], None, "policy interactive then policy 9"),
        (
            [1],
            {"own_ns": 10**9, "machine_ns": 3 * 10**9, "cores": 2},
            "policy interactive, other programs used 50 % of 2 cores",
        ),
    ],
)
def test_text_names_the_policy_and_the_load(
    modes: list[int], load: dict[str, int] | None, says: str, tmp_path: Path
) -> None:
    writer = Simulation(example("convoy"), until_ns=100 * MS).writer()
    for mode in modes:
        snapshot = {**SNAPSHOT, "scheduler": {"mode": mode, "tripped": 0}}
        writer.block(BlockType.COUNTERS, json.dumps(snapshot | ({"load": load} if load else {})).encode())
    summary = analyse(Recording(writer.save(tmp_path / "a.flrec")))
    about = next(line for line in gil_text.render(summary, 200).splitlines() if "events; " in line)
    assert about.endswith(f"; {says}")
    assert ("fairlead run" in summary.findings[0].advice) == (modes in ([], [0]))


def test_json_has_the_names_of_the_records(convoy_summary: GilSummary) -> None:
    data = json.loads(gil_json.render(convoy_summary))
    assert data["schema"] == 1
    io = next(thread for thread in data["threads"] if thread["name"] == "io")
    for name in (
        "name", "native_id", "acquisitions", "held_seconds", "waited_seconds", "max_wait_seconds",
        "forced_drops", "voluntary_drops", "wait_histogram",
    ):  # fmt: skip
        assert name in io
    assert sum(io["wait_histogram"]) == io["contended"]
    assert {(cell["waiter_name"], cell["holder_name"]) for cell in data["blame"]} >= {
        ("io", "cpu"),
        ("io", None),
    }
    assert data["findings"][0]["kind"] == "convoy"
    assert data["trust"]["complete"] is True


def test_report_command_writes_text_to_the_terminal_or_into_a_file(
    convoy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_status("report", convoy) == 0
    assert "convoy" in capsys.readouterr().out
    target = tmp_path / "out.json"
    assert exit_status("report", convoy, "--format", "json", "-o", target) == 0
    assert json.loads(target.read_text())["wall_seconds"] == 0.5
    assert exit_status("report", convoy, "-o", tmp_path / "no" / "where.txt") == 1
    assert "where.txt cannot be written: No such file" in capsys.readouterr().err
    cut = tmp_path / "cut.flrec"
    cut.write_bytes(convoy.read_bytes()[:-100])
    assert exit_status("report", cut) == 0
    assert capsys.readouterr().out.startswith("Problem: recording ends in the middle of block")


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("text", "out"), ("text", "out.txt"), ("json", "out.json"), ("html", "out.html"),
        ("firefox", "out.firefox.json"), ("speedscope", "out.speedscope.json"), ("collapsed", "out.folded"),
        ("perfetto", "out.perfetto-trace"),
    ],
)  # fmt: skip
def test_report_command_takes_the_form_from_the_name_of_the_file(
    form: str, name: str, convoy: Path, tmp_path: Path
) -> None:
    asked, named = tmp_path / "asked", tmp_path / name
    assert exit_status("report", convoy, "--format", form, "-o", asked) == 0
    assert exit_status("report", convoy, "-o", named) == 0
    assert named.read_bytes() == asked.read_bytes()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"MZ something", "is not a recording"),
        (RecordingWriter(version=9).meta().bytes(), "version 9"),
    ],
)
def test_report_command_what_cannot_be_read_is_one_line_and_status_1(
    content: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.flrec"
    path.write_bytes(content)
    assert exit_status("report", path) == 1
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
