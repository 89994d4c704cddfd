"""A real program, recorded and reported in every form."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.gil.observe.access import why_not

pytestmark = [pytest.mark.ends, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]
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

stop = threading.Event()
threads = [threading.Thread(target=work, name=work.__name__) for work in (compute, hold, answer)]
for thread in threads:
    thread.start()
for thread in threads[1:]:
    thread.join()
stop.set()  # not before: of a long hold for which nothing waits, nothing is said
threads[0].join()
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("real")
    (directory / "app.py").write_text(PROGRAM)
    command = [*FAIRLEAD, "record", "-o", "app.flrec", "--", sys.executable, "app.py"]
    subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=100)
    return directory / "app.flrec"


def report(recording: Path, *options: str) -> bytes:
    command = [*FAIRLEAD, "report", str(recording), *options]
    return subprocess.run(command, check=True, capture_output=True, timeout=100).stdout


def test_report_of_a_real_convoy_names_the_computing_and_the_waiting_thread(recording: Path) -> None:
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


@pytest.mark.long
@pytest.mark.parametrize(
    "function",
    [
        "regular_expression",
        "serialise",
        "sleep_in_c",
    ],
)
def test_first_lines_name_the_c_call_that_keeps_the_gil(function: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(KEEPS)
    command = [*FAIRLEAD, "record", "-o", "app.flrec", "--", sys.executable, "app.py", function]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=100)
    first = report(tmp_path / "app.flrec").decode().splitlines()[:10]
    titles = " ".join(" ".join(first[: first.index("")]).split())
    assert re.search(rf"Long hold: T-{function} keeps the GIL for [0-9.]+ m?s in ", titles), first
    assert f" in {function} (app.py:" in titles or f" < {function}" in titles, first


def test_recording_under_the_scheduler_says_so_and_advises_something_else(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(PROGRAM)
    options = ["--policy", "interactive", "-o", "app.flrec"]
    command = [*FAIRLEAD, "record", *options, "--", sys.executable, "app.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=100)
    data = json.loads(report(tmp_path / "app.flrec", "--format", "json"))
    assert data["policies"] == ["interactive"]
    assert 0 <= data["other_load"] <= 1
    assert data["cores"] >= 1
    assert "policy interactive" in report(tmp_path / "app.flrec").decode()
    assert [finding["kind"] for finding in data["findings"] if "fairlead run" in finding["advice"]] == []


def test_recording_of_a_program_that_is_killed_at_once_names_the_policy(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "import os\n"
        "while b'tripped' not in open('app.flrec', 'rb').read(): pass\n"  # the first snapshot of the counters
        "os.kill(os.getpid(), 9)\n"
    )
    options = ["--policy", "interactive", "-o", "app.flrec"]
    command = [*FAIRLEAD, "record", *options, "--", sys.executable, "app.py"]
    subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, timeout=100)
    text = report(tmp_path / "app.flrec").decode()
    assert text.startswith("Problem: the recording has no end mark")
    assert "policy interactive" in text


WORKERS = """
import os, threading

def work(number):
    ready = threading.Event()
    thread = threading.Thread(target=ready.wait, name=f"worker-{number}")
    thread.start()
    ready.set()
    thread.join()

children = []
for number in range(3):
    child = os.fork()
    if not child:
        work(number)
        raise SystemExit
    children.append(child)
for child in children:
    os.waitpid(child, 0)
"""


def test_recordings_of_a_server_and_its_forked_workers_make_one_report(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(WORKERS)
    command = [*FAIRLEAD, "record", "-o", "app.flrec", "--", sys.executable, "app.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=100)
    parent, *children = sorted(tmp_path.glob("app.flrec*"))
    data = json.loads(report(parent, *map(str, children), "--format", "json"))
    first, *others = data["processes"]
    assert {one["meta"]["parent_pid"] for one in others} == {first["meta"]["pid"]}
    names = {thread["name"]: thread["gil"] for thread in data["threads"]}
    assert {names[f"worker-{n}"] for n in range(3)} == {one["gils"][0] for one in others}
    assert data["problems"] == []


MULTIPROCESSING = """
import multiprocessing, time

def work():
    time.sleep(0.001)

if __name__ == "__main__":
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()
"""


def test_recording_of_a_child_of_multiprocessing_is_whole(tmp_path: Path) -> None:
    # multiprocessing ends its children by os._exit(), which runs nothing of atexit
    (tmp_path / "app.py").write_text(MULTIPROCESSING)
    command = [*FAIRLEAD, "record", "-o", "app.flrec", "--", sys.executable, "app.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=100)
    (child,) = tmp_path.glob("app.flrec.*")
    assert json.loads(report(child, "--format", "json"))["problems"] == []
