"""A results file survives its writer's death and the end of its space (a full disk: test_lab_run.py)."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import python

from fairlead.record.results import ResultsWriter, read_results

pytestmark = pytest.mark.once

PROGRAM = """
import sys
from fairlead.errors import OutputError
from fairlead.record.results import ResultsWriter
from fairlead.record.sample import Sample

writer = ResultsWriter(sys.argv[1])
number = 0
try:
    while True:
        number += 1
        writer.write(Sample(experiment="e", params={"n": number}, interpreter={}, environment={},
                            status="ok", wall_s=0.5, details={"padding": "x" * 500}))
        print(number, flush=True)
except OutputError as error:
    print("OutputError", error, flush=True)
"""


def test_writer_killed_at_any_moment_loses_nothing_finished(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    for round_ in range(3):
        path.unlink(missing_ok=True)
        command = [sys.executable, "-c", PROGRAM, str(path)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        with child.stdout:
            for _ in range(20 + round_):
                child.stdout.readline()
            child.kill()
            told = [int(line) for line in child.stdout if line.endswith("\n")]
        assert child.wait() == -signal.SIGKILL
        results = read_results(path)
        assert results.problems == ()
        numbers = [sample.params["n"] for sample in results.samples]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= max(told, default=20 + round_)


@pytest.mark.parametrize("limit", [5_000, 5_001])
def test_writer_at_the_end_of_its_space_cuts_back_to_whole_lines_and_counts_them(
    tmp_path: Path, limit: int
) -> None:
    path = tmp_path / "samples.jsonl"

    def small_files_only() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = python("-c", PROGRAM, path, preexec_fn=small_files_only)
    *told, last = done.stdout.splitlines()
    assert last.startswith(f"OutputError {path}: ")
    assert f"; {len(told)} samples are safe in it; make room and resume the run" in last
    results = read_results(path)
    assert results.problems == ()
    assert [sample.params["n"] for sample in results.samples] == [int(number) for number in told]
    with ResultsWriter(path) as writer:
        assert writer.count == len(told)
