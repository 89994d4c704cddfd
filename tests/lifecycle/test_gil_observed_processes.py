"""Recorded processes that fork, become others, cannot begin, and run out of disk."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from scheduled import HEAD, run

from fairlead.gil.observe.access import why_not
from fairlead.record.recording import BlockType, Recording

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def test_recorder_thread_is_no_reason_to_warn_of_a_fork_and_comes_back_after_it(tmp_path: Path) -> None:
    program = """
import warnings
warnings.simplefilter("error")
with gil.record(sys.argv[1]):
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    before = os.path.getsize(sys.argv[1])
    while os.path.getsize(sys.argv[1]) <= before:
        time.sleep(0.001)
print(json.dumps("grows"))
"""
    assert run(program, str(tmp_path / "out.flrec")) == "grows"


def test_recorded_process_that_becomes_another_program_leaves_a_readable_recording(tmp_path: Path) -> None:
    program = """
gil.record(sys.argv[1]).start()
spinners(2, daemon=True)
while os.path.getsize(sys.argv[1]) < 10_000:
    time.sleep(0.001)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[2]])
"""
    after = "import os; print(len(os.listdir('/proc/self/fd')))"
    plain = subprocess.run([sys.executable, "-c", after], capture_output=True, text=True, check=True)
    path = tmp_path / "out.flrec"
    assert run(program, str(path), after) == json.loads(plain.stdout)
    recording = Recording(path)
    kinds = {block.type for block in recording.blocks()}
    assert BlockType.EVENTS in kinds
    assert BlockType.END not in kinds
    assert recording.problems


def test_recording_that_cannot_be_begun_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    program = """
from fairlead.errors import OutputError
said = []
for place in sys.argv[1:]:
    try:
        gil.record(place).start()
    except OutputError as error:
        said.append(str(error))
with gil.observe():
    pass
print(json.dumps([said, threading.active_count()]))
"""
    said, threads = run(program, str(tmp_path), str(tmp_path / "no/where.flrec"), "/dev/full")
    assert len(said) == 3
    assert all("cannot be written" in line and "choose another place" in line for line in said)
    assert threads == 1


def test_full_disk_ends_the_recording_and_not_the_program(tmp_path: Path) -> None:
    """The limit of a file's size stands for the disk's: a write ends short, and the next one fails."""
    path = tmp_path / "out.flrec"
    program = """
import resource
from fairlead.errors import OutputError
resource.setrlimit(resource.RLIMIT_FSIZE, (100_001, resource.RLIM_INFINITY))
recorder = gil.record(sys.argv[1], counters_interval=0.01).start()
while os.path.getsize(sys.argv[1]) < 10_000:
    time.sleep(0.001)
for _ in range(5000):
    os.stat("/")
try:
    recorder.stop()
except OutputError as error:
    print(json.dumps(str(error)))
"""
    said = run(program, str(path))
    assert "is not complete: File too large; what was written can be read" in said
    assert path.stat().st_size <= 100_001
    recording = Recording(path)
    assert {BlockType.META, BlockType.EVENTS} <= {block.type for block in recording.blocks()}
    assert [problem for problem in recording.problems if "cut" in problem or "damaged" in problem] == []


def test_full_disk_at_the_end_of_the_process_is_reported_on_stderr(tmp_path: Path) -> None:
    program = """
import resource
gil.record(sys.argv[1]).start()
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
for _ in range(1000):
    time.sleep(0)
"""
    command = [sys.executable, "-c", HEAD + program, str(tmp_path / "out.flrec")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1
    assert "fairlead: " in done.stderr
    assert "is not complete: File too large" in done.stderr
