"""A real program, recorded and reported in every form."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
FAIRLEAD = [sys.executable, "-c", "from fairlead.cli import main; main()"]
PROGRAM = """
import hashlib, re, threading, time

def compute():
    while not stop.is_set():
        sum(range(500))

def hold():
    # the regular expression engine does not let go of the GIL, and each further letter takes it twice as long
    length, longest = 10, 0
    while longest < 0.08:
        begun = time.thread_time()
        re.match(r"(?:a*)*b", "a" * length)
        longest = time.thread_time() - begun
        length += 1
        time.sleep(0.001)

def answer():
    for _ in range(150):
        time.sleep(0.0005)
    stop.set()

stop = threading.Event()
threads = [threading.Thread(target=work, name=work.__name__) for work in (compute, hold, answer)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("real")
    (directory / "app.py").write_text(PROGRAM)
    command = [*FAIRLEAD, "record", "-o", "app.flrec", "--", sys.executable, "app.py"]
    subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=50)
    return directory / "app.flrec"


def report(recording: Path, *options: str) -> bytes:
    command = [*FAIRLEAD, "report", str(recording), *options]
    return subprocess.run(command, check=True, capture_output=True, timeout=50).stdout


def test_report_of_a_real_convoy_names_who_computes_and_who_waits(recording: Path) -> None:
    data = json.loads(report(recording, "--format", "json"))
    assert data["problems"] == []
    assert data["trust"]["complete"] is True
    convoy = next(finding for finding in data["findings"] if finding["kind"] == "convoy")
    assert "answer" in convoy["threads"]
    behind = {(cell["waiter_name"], cell["holder_name"]): cell["seconds"] for cell in data["blame"]}
    waited = next(thread["waited_seconds"] for thread in data["threads"] if thread["name"] == "answer")
    assert behind["answer", "compute"] + behind.get(("answer", "hold"), 0) > 0.7 * waited


def test_report_of_a_real_long_hold_names_the_function(recording: Path) -> None:
    data = json.loads(report(recording, "--format", "json"))
    long_holds = [finding for finding in data["findings"] if finding["kind"] == "long-hold"]
    hold = next(finding for finding in long_holds if finding["threads"] == ["hold"])
    assert any(
        frame[0] == "hold" and frame[1].endswith("app.py")
        for loss in data["stacks"]
        if loss["holder_name"] == "hold"
        for frame in loss["holder_frames"]
    )
    assert hold["evidence"]["longest_after_request_ms"] > 20


def test_report_in_every_form_shows_the_real_threads(recording: Path) -> None:
    assert b"compute" in report(recording)
    for form, suffix in (("html", ".html"), ("perfetto", ".perfetto-trace")):
        report(recording, "--format", form)
        assert b"compute" in Path(f"{recording}{suffix}").read_bytes()
