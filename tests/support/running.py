"""A program that runs already, for ``--pid`` and ``ctl``."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import FAIRLEAD, here

from fairlead.gil.schedule import outside

TURN = """
import sys, time
print("ready", flush=True)
end = time.monotonic() + 100
while time.monotonic() < end:
    time.sleep(0.01)
"""


@contextmanager
def running(code: str, *before: str, first: str = "ready") -> Iterator[subprocess.Popen[str]]:
    """It has said its first line when it is handed over, and is killed at the end."""
    pipe = subprocess.PIPE
    command = [*before, sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert line(process) == first
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str], ask: str = "") -> str:
    """The next line that it says, after it was told this."""
    if ask:
        tell(process, ask)
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def tell(process: subprocess.Popen[str], words: str) -> None:
    assert process.stdin is not None
    process.stdin.write(words + "\n")
    process.stdin.flush()


def news(process: subprocess.Popen[str]) -> str:
    """The next line on its standard error."""
    assert process.stderr is not None
    return process.stderr.readline()


def ctl(*words: str | int) -> subprocess.CompletedProcess[str]:
    """``fairlead ctl --pid``, which waits for as long as it takes a thread to answer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outside, "_LOOK_AT_MOST_S", 0.0)
        return here("ctl", "--pid", *words)


def status(pid: int) -> str:
    ran = ctl(pid, "status")
    return ran.stdout + ran.stderr


def attached(*words: str | int | Path) -> subprocess.CompletedProcess[str]:
    """A command with ``--pid``; skips the test where this system does not let us into another process."""
    ran = here(*map(str, words))
    if "cannot be attached to" in ran.stderr:
        pytest.skip(ran.stderr)
    return ran


def scheduled(pid: int, for_s: float | None = None) -> None:
    """It has all that is asked for, and it is said how to end it."""
    ran = attached("run", "--pid", pid, *([] if for_s is None else ["--for", f"{for_s}s"]))
    span = "" if for_s is None else f" for {for_s:g} s"
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == (
        f"process {pid}: policy interactive{span}; to end it: fairlead ctl --pid {pid} stock\n"
    )


def watched(pid: int, *words: str) -> None:
    """Has ``fairlead top`` watch it until it has shown lines with all these words, and then Ctrl-C."""
    command = [*FAIRLEAD, "top", "--every", "50ms", "--pid", str(pid)]
    pipe, awaited = subprocess.PIPE, set(words)
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        for shown in watching.stdout:
            awaited -= {word for word in awaited if word in shown}
            if not awaited:
                watching.send_signal(signal.SIGINT)
                break
        watching.stdout.read()
        why = watching.stderr.read()
    if "cannot be attached to" in why:
        pytest.skip(why)
    assert (watching.returncode, why, awaited) == (0, "", set())
