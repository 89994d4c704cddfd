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
from commands import CONVOY, FAIRLEAD, environment, fairlead

from fairlead.cli import top
from fairlead.gil.observe.access import why_not
from fairlead.record.gil_summary import GilThread

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def test_columns_that_one_can_do_without_go_where_there_is_no_room_for_them() -> None:
    table = top.rows([GilThread(serial=1, name="cpu", native_id=1, held_seconds=0.5)], 1.0, 20)
    dispensable = ["forced/s", "waits/s", "turns/s", "off CPU"]
    for width, left_out in (90, 0), (80, 1), (70, 2), (60, 3), (50, 4), (10, 4):
        head, row = top._fitting(table, width)
        assert head == tuple(name for name in table[0] if name not in dispensable[:left_out])
        assert len(row) == len(head)


def test_top_in_a_terminal_shows_the_columns_that_fit(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(CONVOY)
    terminal, inner = pty.openpty()
    termios.tcsetwinsize(inner, (30, 60))
    command = [*FAIRLEAD, "top", "--every", "100ms", "--", sys.executable, "app.py"]
    own = environment(TERM="xterm")
    for name in ("COLUMNS", "NO_COLOR", "TTY_INTERACTIVE", "TTY_COMPATIBLE"):
        own.pop(name, None)
    process = subprocess.Popen(command, cwd=tmp_path, env=own, stdin=inner, stdout=inner, stderr=inner)
    os.close(inner)
    shown = b""
    while chunk := read_terminal(terminal):
        shown += chunk
    os.close(terminal)
    assert process.wait(timeout=100) == 0, shown
    assert all(heading in shown for heading in (b"held", b"waited", b"longest wait"))
    assert b"forced/s" not in shown
    own_screen, _, after = shown.rpartition(b"\x1b[?1049l")
    assert b"done" not in own_screen, "what the program writes is kept aside"
    assert after.index(b"GIL held") < after.index(b"done")
    assert "…".encode() not in shown


def read_terminal(terminal: int) -> bytes:
    """What comes next; nothing when everyone has hung up."""
    try:
        return os.read(terminal, 65536)
    except OSError as error:
        if error.errno == errno.EIO:
            return b""
        raise


def test_top_without_a_terminal_prints_snapshots_and_passes_the_status_on(tmp_path: Path) -> None:
    program = tmp_path / "app.py"
    program.write_text(CONVOY + "\nsys.exit(5)")
    ran = fairlead("top", "--every", "100ms", "--", sys.executable, "app.py", cwd=tmp_path)
    assert ran.returncode == 5, ran.stderr
    assert all(word in ran.stdout for word in ("GIL held", "cpu", "done"))
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


def test_top_has_a_section_for_each_process_of_a_program_that_forks(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(FORKS)
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
