"""A real program, recorded and reported in every form."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import CONVOY, fairlead

from fairlead.gil.observe.access import why_not

pytestmark = [pytest.mark.ends, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]
PROGRAM = """
import hashlib, re, threading, time
import fairlead.gil

def compute():
    while not stop.is_set():
        sum(range(500))

def late():
    # of this no time that passes takes anything away
    return sum(t.overrun_seconds - t.overrun_off_cpu_seconds for t in seen.threads if t.name == "hold")

def hold():
    # the regular expression engine does not let go of the GIL, and each further letter takes it twice as long
    length, late_by = 10, 0.0
    while late_by <= 0.03:
        before, begun = late(), time.thread_time()
        re.match(r"(?:a*)*b", "a" * length)
        length += time.thread_time() - begun < 0.08
        late_by = late() - before
        time.sleep(0.001)

def answer():
    for _ in range(150):
        time.sleep(0.0005)

stop = threading.Event()
threads = [threading.Thread(target=work, name=work.__name__) for work in (compute, hold, answer)]
with fairlead.gil.observe() as seen:
    for thread in threads:
        thread.start()
    for thread in threads[1:]:
        thread.join()
    stop.set()  # not before: of a long hold for which nothing waits, nothing is said
    threads[0].join()
"""


def record(
    directory: Path, program: str, *words: str, options: Sequence[str] = (), check: bool = True
) -> Path:
    (directory / "app.py").write_text(program)
    ran = fairlead(
        "record", *options, "-o", "app.flrec", "--", sys.executable, "app.py", *words, cwd=directory
    )
    assert not check or ran.returncode == 0, ran.stderr
    return directory / "app.flrec"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("real"), PROGRAM)


def report(recording: Path, *options: str) -> str:
    shown = fairlead("report", recording, *options, cwd=recording.parent)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


def data(recording: Path, *more: Path) -> Any:
    return json.loads(report(recording, *map(str, more), "--format", "json"))


@pytest.mark.timing
def test_report_of_a_real_convoy_names_the_computing_and_the_waiting_thread(recording: Path) -> None:
    told = data(recording)
    convoy = next(finding for finding in told["findings"] if finding["kind"] == "convoy")
    assert "answer" in convoy["threads"]
    behind = {(cell["waiter_name"], cell["holder_name"]): cell["seconds"] for cell in told["blame"]}
    waited = next(thread["waited_seconds"] for thread in told["threads"] if thread["name"] == "answer")
    assert behind["answer", "compute"] + behind.get(("answer", "hold"), 0) > 0.7 * waited


def test_report_of_a_real_long_hold_names_the_function(recording: Path) -> None:
    told = data(recording)
    assert told["problems"] == []
    assert told["trust"]["complete"] is True
    assert {"answer", "compute", "hold"} <= {cell["waiter_name"] for cell in told["blame"]}
    long_holds = [finding for finding in told["findings"] if finding["kind"] == "long-hold"]
    hold = next(finding for finding in long_holds if finding["threads"] == ["hold"])
    assert any(
        frame[0] == "hold" and frame[1].endswith("app.py")
        for loss in told["stacks"]
        if loss["holder_name"] == "hold"
        for frame in loss["holder_frames"]
    )
    overrun = next(thread["max_overrun_seconds"] for thread in told["threads"] if thread["name"] == "hold")
    assert 20 < hold["evidence"]["longest_after_request_ms"] <= overrun * 1e3


def test_report_in_every_form_shows_the_real_threads(recording: Path) -> None:
    assert "compute" in report(recording)
    for form, suffix in (("html", ".html"), ("perfetto", ".perfetto-trace")):
        report(recording, "--format", form)
        assert b"compute" in Path(f"{recording}{suffix}").read_bytes()


KEEPS = """
import ctypes, pickle, re, sys, threading, time

def regular_expression():
    length = 10
    while not done.is_set():
        begun = time.thread_time()
        re.match(r"(?:a*)*b", "a" * length)
        if time.thread_time() - begun < 0.1:
            length += 1
        else:
            long.set()

def serialise():
    items = [str(n) for n in range(100_000)]
    while not done.is_set():
        begun = time.thread_time()
        pickle.dumps(items)
        if time.thread_time() - begun < 0.1:
            items += map(str, range(len(items), 2 * len(items)))
        else:
            long.set()

def sleep_in_c():
    while not done.is_set():
        ctypes.PyDLL(None).usleep(100_000)
        long.set()

def answer():
    long.wait()
    for _ in range(10):
        time.sleep(0.001)
    done.set()

long, done = threading.Event(), threading.Event()
works = (globals()[sys.argv[1]], answer)
threads = [threading.Thread(target=work, name=f"T-{work.__name__}") for work in works]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.timing
@pytest.mark.parametrize("function", ["regular_expression", "serialise", "sleep_in_c"])
def test_first_lines_name_the_c_call_that_keeps_the_gil(function: str, tmp_path: Path) -> None:
    first = report(record(tmp_path, KEEPS, function)).splitlines()[:10]
    titles = " ".join(" ".join(first[: first.index("")]).split())
    assert re.search(rf"Long hold: T-{function} keeps the GIL for [0-9.]+ m?s in ", titles), first
    assert f" in {function} (app.py:" in titles or f" < {function}" in titles, first


SCHEDULED = ["--policy", "interactive"]


def test_recording_under_the_scheduler_says_so_and_advises_something_else(tmp_path: Path) -> None:
    made = record(tmp_path, CONVOY, options=SCHEDULED)
    told = data(made)
    assert told["policies"] == ["interactive"]
    assert 0 <= told["other_load"] <= 1
    assert told["cores"] >= 1
    assert "policy interactive" in report(made)
    assert [finding["kind"] for finding in told["findings"] if "fairlead run" in finding["advice"]] == []


def test_recording_of_a_program_that_is_killed_at_once_names_the_policy(tmp_path: Path) -> None:
    program = (
        "import os\n"
        "while b'tripped' not in open('app.flrec', 'rb').read(): pass\n"  # the first snapshot of the counters
        "os.kill(os.getpid(), 9)\n"
    )
    text = report(record(tmp_path, program, options=SCHEDULED, check=False))
    assert text.startswith("Problem: the recording has no end mark")
    assert "policy interactive" in text


WORKERS = """
import multiprocessing, os, threading, time

def work(number):
    thread = threading.Thread(target=time.sleep, args=(0.001,), name=f"worker-{number}")
    thread.start()
    thread.join()

children = []
for number in range(2):
    child = os.fork()
    if not child:
        work(number)
        raise SystemExit
    children.append(child)
for child in children:
    os.waitpid(child, 0)
# which ends its children by os._exit(), that runs nothing of atexit
child = multiprocessing.get_context("fork").Process(target=work, args=(2,))
child.start()
child.join()
"""


def test_recordings_of_a_server_and_its_forked_workers_make_one_report(tmp_path: Path) -> None:
    record(tmp_path, WORKERS)
    parent, *children = sorted(tmp_path.glob("app.flrec*"))
    told = data(parent, *children)
    first, *others = told["processes"]
    assert {one["meta"]["parent_pid"] for one in others} == {first["meta"]["pid"]}
    names = {thread["name"]: thread["gil"] for thread in told["threads"]}
    assert {names[f"worker-{n}"] for n in range(3)} == {one["gils"][0] for one in others}
    assert told["problems"] == []
