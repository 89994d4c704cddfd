"""Programs whose trouble is known, recorded and reported as a user does it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import fairlead

from fairlead.gil.analysis.analyse import analyse
from fairlead.gil.observe.access import why_not
from fairlead.record.gil_summary import GilSummary
from fairlead.record.recording import Recording

pytestmark = [pytest.mark.ends, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

LOCK = """
import threading, time
lock = threading.Lock()
def worker():
    for _ in range(3):
        with lock:  # wanted
            time.sleep(.15)
threads = [threading.Thread(target=worker, name=f"worker-{n}") for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
CHILD = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "import time; time.sleep(1)"])  # wanted
"""
CALLBACK = """
import asyncio, time
async def handler():
    for _ in range(4):
        await asyncio.sleep(.12)
        time.sleep(.3)  # wanted
asyncio.run(handler())
"""
COLLECTS = """
import gc, threading, time
kept = [[number] for number in range(400_000)]
over = threading.Event()
def tidy():
    for _ in range(12):
        gc.collect()  # wanted
        time.sleep(.01)
    over.set()
threading.Thread(target=tidy, name="tidy").start()
while not over.is_set():
    time.sleep(.001)
"""
DESTROYS = """
import gc, threading, time
gc.disable()
over = threading.Event()
def forget():
    for _ in range(2):
        kept = []
        for number in range(1200):
            kept += [[n] for n in range(2000)]
            time.sleep(0)
        del kept  # wanted
    over.set()
threading.Thread(target=forget, name="forget").start()
while not over.is_set():
    time.sleep(.001)
"""
STOPPED = """
import os, subprocess, sys, threading, time
sys.setswitchinterval(.05)
stop = '''
import os, signal, time
stopped, parent = 0, os.getppid()
for _ in range(5):
    time.sleep(.1)
    began = time.monotonic(); os.kill(parent, signal.SIGSTOP); time.sleep(.3)
    stopped += time.monotonic() - began; os.kill(parent, signal.SIGCONT)
print(stopped)
'''
child = subprocess.Popen([sys.executable, "-c", stop], stdout=subprocess.PIPE)
over = False
def compute():
    while not over:
        sum(range(1000))
threading.Thread(target=compute, name="compute").start()
while child.poll() is None:
    time.sleep(.0005)
over = True
print(child.stdout.read().decode())
"""
FAMILY = """
import json, os, threading, time
data = [{"a": n, "b": [n] * 10} for n in range(60_000)]
def export():
    for _ in range(4):
        json.dumps(data)  # wanted
    over.set()
if child := os.fork():
    os.waitpid(child, 0)
else:
    over = threading.Event()
    threading.Thread(target=export, name="export").start()
    while not over.is_set():
        time.sleep(.001)
"""


def recorded(directory: Path, program: str, *options: str) -> Path:
    (directory / "app.py").write_text(program)
    ran = fairlead("record", *options, "-o", "app.flrec", "--", sys.executable, "app.py", cwd=directory)
    assert ran.returncode == 0, ran.stderr
    return directory / "app.flrec"


def told(path: Path) -> Any:
    shown = fairlead("report", path, "--format", "json", cwd=path.parent)
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


def line_of(program: str) -> str:
    number = next(n for n, line in enumerate(program.splitlines(), start=1) if line.endswith("# wanted"))
    return f"(app.py:{number})"


@pytest.mark.parametrize(
    ("kind", "program"),
    [
        ("lock", LOCK),
        ("callback", CALLBACK),
        ("collection", COLLECTS),
        ("destruction", DESTROYS),
        ("long-hold", FAMILY),
    ],
    ids=["lock", "callback", "collection", "destruction", "family"],
)
def test_cause_is_found_with_the_users_own_line(kind: str, program: str, tmp_path: Path) -> None:
    """Whether it comes first also depends on what else the machine does: make judge counts that."""
    found = told(recorded(tmp_path, program))["findings"]
    assert any(one["kind"] == kind and line_of(program) in one["title"] for one in found), found


def test_wait_that_lasts_because_the_process_is_stopped_is_for_a_core(tmp_path: Path) -> None:
    """The thread that waits asks a switch interval after it began, if it runs."""
    (tmp_path / "app.py").write_text(STOPPED)
    command = ("record", "-o", "app.flrec", "--", sys.executable, "app.py")
    ran = fairlead(*command, cwd=tmp_path)
    stopped = float(ran.stdout.split()[0])
    (cell,) = (
        cell
        for cell in told(tmp_path / "app.flrec")["blame"]
        if (cell["waiter_name"], cell["holder_name"]) == ("MainThread", "compute")
    )
    assert cell["asked_seconds"] <= cell["seconds"] - cell["coreless_seconds"]
    assert cell["coreless_seconds"] >= 0.5 * stopped


def test_where_the_gil_costs_nothing_the_report_says_what_threads_did(tmp_path: Path) -> None:
    (finding,) = told(recorded(tmp_path, CHILD))["findings"]
    assert finding["kind"] == "not-the-gil"
    assert re.search(r"MainThread waits for a process.* " + re.escape(line_of(CHILD)), finding["advice"])


SHORT_HOLDS = """
import os, threading
def stats():
    for _ in range(100_000):
        os.stat("/")
thread = threading.Thread(target=stats, name="stats")
thread.start()
thread.join()
"""


def totals(summary: GilSummary) -> tuple[int, float]:
    (thread,) = (thread for thread in summary.threads if thread.name == "stats")
    return thread.acquisitions, thread.held_seconds


def test_short_holds_for_which_no_thread_waits_take_little_room_and_are_all_there(tmp_path: Path) -> None:
    path = recorded(tmp_path, SHORT_HOLDS)
    summary = analyse(Recording(path))
    counted = next(one for one in Recording(path).counters()["threads"] if one["name"] == "stats")  # type: ignore[index]
    turns, held = totals(summary)
    assert turns == counted["acquisitions"] > 100_000
    assert held == pytest.approx(counted["held_ns"] / 1e9, rel=0.01)
    assert path.stat().st_size < 32 * turns / 4
    assert summary.trust.complete


def test_file_that_is_full_gets_no_more_events_and_says_so(tmp_path: Path) -> None:
    program = SHORT_HOLDS.replace('os.stat("/")', 'os.stat("/"); sum(range(5000))')
    path = recorded(tmp_path, program, "--max-size", "10kB")
    assert path.stat().st_size < 1_000_000
    summary = analyse(Recording(path))
    assert "as large as it may be" in summary.trust.statement
    assert summary.problems == ()
    counters = Recording(path).counters()
    assert counters is not None
    assert (counters["t_ns"] - Recording(path).meta.start_ns) / 1e9 > summary.wall_seconds
