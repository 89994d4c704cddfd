"""A program that runs already, for ``--pid`` and ``ctl``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import fairlead

TURN = """
import sys, time
print("ready", flush=True)
end = time.monotonic() + 100
while time.monotonic() < end:
    time.sleep(0.01)
"""


@contextmanager
def running(code: str, *before: str) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    command = [*before, sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def scheduled(pid: int, cwd: Path, *options: str) -> None:
    ran = fairlead("run", "--pid", str(pid), *options, cwd=cwd)
    if "cannot be attached to" in ran.stderr:
        pytest.skip(ran.stderr)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"process {pid}: policy interactive" in ran.stdout


def status(pid: int, cwd: Path) -> str:
    ran = fairlead("ctl", "--pid", str(pid), "status", cwd=cwd)
    return ran.stdout + ran.stderr
