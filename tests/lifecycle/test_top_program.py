"""``fairlead top`` around real programs."""

from __future__ import annotations

import errno
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from commands import CONVOY, FAIRLEAD, fairlead

from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text(CONVOY)
    return path


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("columns", "last"), [(60, ("held", "waited", "longest wait")), (120, ("turns/s", "waits/s", "forced/s"))]
)
def test_top_in_a_terminal_shows_the_columns_that_fit(
    tmp_path: Path, columns: int, last: tuple[str, ...]
) -> None:
    terminal, inner = pty.openpty()
    termios.tcsetwinsize(inner, (30, columns))
    command = [*FAIRLEAD, "top", "--every", "100ms", "--", sys.executable, "app.py"]
    environment = {**os.environ, "TERM": "xterm"}
    for name in ("COLUMNS", "NO_COLOR", "TTY_INTERACTIVE", "TTY_COMPATIBLE"):
        environment.pop(name, None)
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdin=inner, stdout=inner, stderr=inner
    )
    os.close(inner)
    shown = b""
    while chunk := read_terminal(terminal):
        shown += chunk
    os.close(terminal)
    assert process.wait(timeout=100) == 0, shown
    assert all(heading.encode() in shown for heading in last)
    assert (b"forced/s" in shown) == ("forced/s" in last)
    assert "…".encode() not in shown


def read_terminal(terminal: int) -> bytes:
    """What comes next; nothing when everyone has hung up."""
    try:
        return os.read(terminal, 65536)
    except OSError as error:
        if error.errno == errno.EIO:
            return b""
        raise


def test_top_without_a_terminal_prints_snapshots_and_passes_the_status_on(
    program: Path, tmp_path: Path
) -> None:
    program.write_text(CONVOY + "\nsys.exit(5)")
    ran = fairlead("top", "--every", "100ms", "--", sys.executable, "app.py", cwd=tmp_path)
    assert ran.returncode == 5, ran.stderr
    assert "GIL held" in ran.stdout
    assert "cpu" in ran.stdout
    assert "done" in ran.stdout
    assert list(tmp_path.iterdir()) == [program]


FORKS = """
import os, sys, threading, time
ends = os.pipe()
child = os.fork()
name = "parent" if child else "child"
stop = threading.Event()
threading.Thread(target=stop.wait, name=f"{name}-thread").start()
if not child:
    os.read(ends[0], 1)
    stop.set()
    sys.exit()
os.close(ends[0])
print("forked", os.getpid(), child, flush=True)
sys.stdin.readline()
os.write(ends[1], b"x")
os.waitpid(child, 0)
stop.set()
"""


def test_top_has_a_section_for_each_process_of_a_program_that_forks(program: Path, tmp_path: Path) -> None:
    program.write_text(FORKS)
    command = [*FAIRLEAD, "top", "--every", "50ms", "--", sys.executable, "app.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        parent, child = next(line for line in lines if line.startswith("forked")).split()[1:]
        assert any(line.startswith(f"pid {child}: ") for line in lines)
        assert any("child-thread" in line or "MainThread" in line for line in lines)
        assert any(line.startswith(f"pid {parent}: ") for line in lines)
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.read()
    assert process.returncode == 0
