"""Recordings as collapsed stacks and for speedscope."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import exit_status

from fairlead.record.gil_summary import GilSummary, StackLoss
from fairlead.report.gil import stacks as gil_stacks

pytestmark = pytest.mark.ends


def is_speedscope(file: dict[str, Any]) -> bool:
    """By the model that speedscope publishes (its file-format-spec.ts): what must be there, of which
    type, and nothing else."""
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert file.keys() <= {"$schema", "shared", "profiles", "name", "activeProfileIndex", "exporter"}
    assert file.keys() >= {"$schema", "shared", "profiles"}
    for frame in file["shared"]["frames"]:
        assert frame.keys() <= {"name", "file", "line", "col"}
        assert isinstance(frame["name"], str)
        assert isinstance(frame.get("file", ""), str)
        assert isinstance(frame.get("line", 0), int)
    for profile in file["profiles"]:
        assert profile.keys() == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert profile["type"] == "sampled"
        assert profile["unit"] in ("none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes")
        assert len(profile["samples"]) == len(profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"] - profile["startValue"]
        for sample in profile["samples"]:
            assert all(0 <= frame < len(file["shared"]["frames"]) for frame in sample)
    return True


def test_speedscope_file_keeps_to_the_model_and_adds_up_to_the_time_waited(
    convoy_summary: GilSummary,
) -> None:
    file = json.loads(gil_stacks.speedscope(convoy_summary))
    assert is_speedscope(file)
    assert file["name"] == "app.py --fast"
    waited = sum(loss.seconds for loss in convoy_summary.stacks)
    assert waited > 0
    assert sum(p["endValue"] for p in file["profiles"]) / 1e9 == pytest.approx(waited, abs=1e-6)
    names = {frame["name"] for frame in file["shared"]["frames"]}
    assert {"io", "cpu", "work", "waits for"} <= names
    assert {"name": "work", "file": "cpu.py", "line": 10} in file["shared"]["frames"]


def test_collapsed_stacks_lead_from_the_waiter_to_the_holders_innermost_frame(
    convoy_summary: GilSummary,
) -> None:
    lines = gil_stacks.collapsed(convoy_summary).splitlines()
    for line in lines:
        assert re.fullmatch(r"[^;]+(;[^;]+)+ [1-9]\d*", line)
        assert line.count(";waits for;") == 1
    dearest = lines[0].rpartition(" ")[0].split(";")
    assert dearest[0] == "io"
    at = dearest.index("waits for")
    assert dearest[at + 1 :] == ["cpu", "main (cpu.py:99)", "work (cpu.py:10)"]
    total = sum(int(line.rpartition(" ")[2]) for line in lines)
    assert total == pytest.approx(sum(loss.seconds for loss in convoy_summary.stacks) * 1e6, abs=len(lines))


def test_names_cannot_break_a_line_and_without_waits_there_are_no_stacks(convoy_summary: GilSummary) -> None:
    frames = (("f;g\nh", "a b;c.py", 3),)
    loss = StackLoss(
        gil=0,
        waiter=7,
        holder=0,
        holder_frames=(),
        waiter_frames=frames,
        seconds=1.0,
        waits=1,
        max_seconds=1.0,
    )
    text = gil_stacks.collapsed(replace(convoy_summary, threads=(), stacks=(loss,)))
    assert text == "thread 7;f,g h (a b,c.py:3);waits for;(no thread: the GIL was free) 1000000"
    alone = replace(convoy_summary, stacks=())
    assert gil_stacks.collapsed(alone) == ""
    assert is_speedscope(json.loads(gil_stacks.speedscope(alone)))


@pytest.mark.parametrize(("form", "suffix"), [("collapsed", ".folded"), ("speedscope", ".speedscope.json")])
def test_command_writes_them_beside_the_recording(
    form: str, suffix: str, convoy: Path, convoy_summary: GilSummary, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_status("report", convoy, "--format", form) == 0
    written = convoy.with_name(convoy.name + suffix)
    assert f"wrote {written}" in capsys.readouterr().err
    assert written.read_text(encoding="utf-8") == getattr(gil_stacks, form)(convoy_summary) + "\n"
