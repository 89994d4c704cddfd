"""``--pid``: a process that runs already is recorded and watched, and goes on."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import FAIRLEAD, fairlead

from fairlead.errors import InterpreterFailedError
from fairlead.gil.analysis.analyse import analyse
from fairlead.gil.observe.access import why_not
from fairlead.gil.observe.programs import attach
from fairlead.gil.schedule import attached
from fairlead.record.recording import Recording

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
IDLE = """
import threading, time
stop = time.monotonic() + 40
def compute():
    while time.monotonic() < stop:
        sum(range(500))
threading.Thread(target=compute, name="cpu", daemon=True).start()
print("ready", flush=True)
while time.monotonic() < stop:
    time.sleep(0.001)
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "idle.py").write_text(IDLE)
    command = [sys.executable, "idle.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


@pytest.mark.skipif(sys.version_info < (3, 14), reason="attaching takes sys.remote_exec of Python 3.14")
def test_running_process_is_recorded_for_a_while_and_goes_on(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    ran = fairlead("record", "--pid", str(running.pid), "--duration", "1s", "-o", "out.flrec", cwd=tmp_path)
    if "cannot be attached to" in ran.stderr:
        pytest.skip(ran.stderr)
    assert ran.returncode == 0, ran.stderr
    assert running.poll() is None
    recording = Recording(tmp_path / "out.flrec")
    summary = analyse(recording)
    assert recording.problems == ()
    assert summary.wall_seconds > 0.9
    assert "cpu" in {thread.name for thread in summary.threads}


@pytest.mark.skipif(sys.version_info < (3, 14), reason="attaching takes sys.remote_exec of Python 3.14")
def test_recording_ends_when_its_recorder_is_killed(running: subprocess.Popen[str], tmp_path: Path) -> None:
    out = tmp_path / "out.flrec"
    command = [*FAIRLEAD, "record", "--pid", str(running.pid), "-o", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as recorder:
        while recorder.poll() is None and not (out.exists() and out.stat().st_size):
            time.sleep(0.01)
        recorder.kill()
        assert recorder.stderr is not None
        why = recorder.stderr.read()
    if "cannot be attached to" in why:
        pytest.skip(why)
    while Recording(out).problems:
        time.sleep(0.01)
    assert running.poll() is None


LEASED = """
import os, sys, time
from fairlead.gil.observe import recorder
from fairlead.gil.observe.programs import launched
assert launched.attach(sys.argv[1]) == "ok"
child = os.fork()
os.write(1, b"ready ")
while recorder.current() is not None:
    time.sleep(0.001)
print(len(os.listdir("/proc/self/fd")), flush=True)
if child:
    os.waitpid(child, 0)
"""


def test_recording_ends_with_its_lease_also_in_children_forked_meanwhile(tmp_path: Path) -> None:
    settings = {"threshold_s": None, "events": True, "counters_s": 1.0}
    place = {"out": str(tmp_path / "out.flrec"), "lease": str(tmp_path / "lease")}
    with (tmp_path / "lease").open("w") as lease:
        fcntl.flock(lease, fcntl.LOCK_EX)
        command = [sys.executable, "-c", LEASED, json.dumps(settings | place)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.read(12) == "ready ready "
    said, errors = process.communicate(timeout=100)
    assert (process.returncode, said, errors) == (0, "4\n4\n", "")
    for path in tmp_path.glob("out.flrec*"):
        assert Recording(path).problems == ()


@pytest.mark.skipif(sys.version_info < (3, 14), reason="attaching takes sys.remote_exec of Python 3.14")
def test_top_watches_a_running_process_until_ctrl_c_and_that_goes_on(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    command = [*FAIRLEAD, "top", "--every", "100ms", "--pid", str(running.pid)]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        for line in watching.stdout:
            if "GIL held" in line:
                break
        else:
            why = watching.stderr.read()
            if "cannot be attached to" in why:
                pytest.skip(why)
            pytest.fail(f"it ended: {why}")
        watching.send_signal(signal.SIGINT)
        watching.stdout.read()
        assert watching.wait() == 0
    assert running.poll() is None


def test_ctrl_c_that_was_ignored_at_the_start_does_not_end_the_watching() -> None:
    """As in the background of a shell without job control."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with subprocess.Popen(["sleep", "100"]) as process:
            acts = iter([lambda: os.kill(os.getpid(), signal.SIGINT), process.kill])
            over = attach._wait(process.pid, None, lambda: next(acts, process.kill)(), 0.0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not over, "the process has ended"


WORKERS = """
import os, sys, threading, time
for number in range(2):
    child = os.fork()
    if not child:
        threading.Thread(target=threading.Event().wait, name=f"worker-{number}", daemon=True).start()
        break
    print(child, flush=True)
parent, stop = os.getppid(), time.monotonic() + 40
while time.monotonic() < stop and (child or os.getppid() == parent):
    time.sleep(0.001)
os._exit(0)
"""


@pytest.mark.skipif(sys.version_info < (3, 14), reason="attaching takes sys.remote_exec of Python 3.14")
def test_top_of_a_process_watches_the_workers_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(WORKERS)
    command = [sys.executable, "server.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        workers = {server.stdout.readline().strip() for _ in range(2)}
        command = [*FAIRLEAD, "top", "--every", "50ms", "--pid", str(server.pid)]
        with subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as watching:
            assert watching.stdout is not None
            assert watching.stderr is not None
            awaited = {f"pid {pid}: " for pid in (*workers, server.pid)}
            for line in watching.stdout:
                awaited -= {start for start in awaited if line.startswith(start)}
                if not awaited:
                    watching.send_signal(signal.SIGINT)
                    break
            watching.stdout.read()
            why = watching.stderr.read()
        ended = server.poll()
        server.kill()
    if "cannot be attached to" in why:
        pytest.skip(why)
    assert (watching.returncode, why, awaited, ended) == (0, "", set(), None)


def test_top_of_a_process_takes_no_command(tmp_path: Path) -> None:
    ran = fairlead("top", "--pid", "1", "--", "app.py", cwd=tmp_path)
    assert ran.returncode == 2
    assert "leave out the command" in ran.stderr


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python can be attached to")
def test_running_process_of_an_older_python_says_what_to_do_instead(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    for command in ("record", "top"):
        ran = fairlead(command, "--pid", str(running.pid), cwd=tmp_path)
        assert ran.returncode == 1
        assert "3.14 and later can" in ran.stderr
        assert "fairlead record -- COMMAND" in ran.stderr
    assert list(tmp_path.glob("*.flrec")) == []


BLOCKED = """
import sys
print("ready", flush=True)
sys.stdin.readline()
for _ in range(1000):
    pass
print("fairlead" in sys.modules, flush=True)
"""


@pytest.mark.skipif(sys.version_info < (3, 14), reason="attaching takes sys.remote_exec of Python 3.14")
def test_program_in_a_long_c_call_runs_nothing_of_ours_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "ANSWER_S", 0.1)
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", BLOCKED]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(InterpreterFailedError) as failed:
            attached.begin(process.pid, "interactive", 0.1, None)
        said = process.communicate("\n", timeout=100)
    if "cannot be attached to" in str(failed.value):
        pytest.skip(str(failed.value))
    assert "nothing was changed in it" in str(failed.value)
    assert said == ("False\n", "")


@pytest.mark.skipif(sys.version_info < (3, 14), reason="attaching takes sys.remote_exec of Python 3.14")
def test_stopped_program_is_refused_at_once(running: subprocess.Popen[str], tmp_path: Path) -> None:
    running.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, running.pid, os.WSTOPPED | os.WNOWAIT)
    for command in (("run",), ("record", "-o", "out.flrec"), ("top",)):
        ran = fairlead(*command, "--pid", str(running.pid), cwd=tmp_path)
        assert (ran.returncode, ran.stderr) == (
            2,
            f"fairlead: process {running.pid} is stopped, by a signal or a debugger: have it continue first"
            f" (kill -CONT {running.pid})\n",
        )


FURTHER = """
import concurrent.interpreters, threading
further = concurrent.interpreters.create()
busy = "print('ready', flush=True)\\nwhile True: sum(range(1000))"
threading.Thread(target=further.exec, args=(busy,), daemon=True).start()
while True:
    sum(range(1000))
"""


@pytest.mark.skipif(sys.version_info < (3, 14), reason="attaching takes sys.remote_exec of Python 3.14")
@pytest.mark.parametrize("command", [("run",), ("record", "-o", "out.flrec")])
def test_program_with_further_interpreters_is_left_alone(command: tuple[str, ...], tmp_path: Path) -> None:
    """Python asks the newest."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", FURTHER], stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        ran = fairlead(*command, "--pid", str(process.pid), cwd=tmp_path)
        ended = process.poll()
        process.kill()
        _, complaints = process.communicate()
    if "cannot be attached to" in ran.stderr:
        pytest.skip(ran.stderr)
    assert (ran.returncode, ended, complaints) == (1, None, "")
    assert "has further interpreters" in ran.stderr
    assert "fairlead record -- COMMAND" in ran.stderr
