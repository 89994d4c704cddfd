"""``--pid``: a process that runs already is scheduled, recorded and watched, and goes on; or it is refused in
one line."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import FAIRLEAD
from running import TURN, attached, ctl, line, news, running, scheduled, status, watched

import fairlead as fairlead_package
from fairlead.errors import InterpreterFailedError
from fairlead.gil.analysis.analyse import analyse
from fairlead.gil.observe.access import why_not
from fairlead.gil.observe.programs import attach
from fairlead.gil.schedule import attached as attaching
from fairlead.record.recording import Recording

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
attaches = pytest.mark.skipif(
    sys.version_info < (3, 14), reason="attaching takes sys.remote_exec of Python 3.14"
)
BUSY = """
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
def busy() -> Iterator[subprocess.Popen[str]]:
    """A program that must be running at the end, too."""
    with running(BUSY) as process:
        yield process
        assert process.poll() is None


@attaches
def test_running_process_is_recorded_for_a_while_and_goes_on(
    busy: subprocess.Popen[str], tmp_path: Path
) -> None:
    ran = attached("record", "--pid", busy.pid, "--duration", "300ms", "-o", tmp_path / "out.flrec")
    assert ran.returncode == 0, ran.stderr
    recording = Recording(tmp_path / "out.flrec")
    summary = analyse(recording)
    assert recording.problems == ()
    assert summary.wall_seconds >= 0.3, "it ends no earlier, whatever the machine does"
    assert "cpu" in {thread.name for thread in summary.threads}


@attaches
def test_recording_ends_when_its_recorder_is_killed(busy: subprocess.Popen[str], tmp_path: Path) -> None:
    out = tmp_path / "out.flrec"
    command = [*FAIRLEAD, "record", "--pid", str(busy.pid), "-o", str(out)]
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


LEASED = """
import json, os, sys, time
from fairlead.gil.observe import recorder
from fairlead.gil.observe.programs import launched
assert launched.attach(json.loads(sys.argv[1])) == "ok"
child = os.fork()
os.write(1, b"ready ")
while recorder.current() is not None:
    time.sleep(0.001)
os.write(1, b"%d\\n" % len(os.listdir("/proc/self/fd")))  # both at once, each its line in one piece
if child:
    os.waitpid(child, 0)
"""


def test_recording_ends_with_its_lease_also_in_children_forked_meanwhile(tmp_path: Path) -> None:
    settings = {"threshold_s": None, "events": True, "counters_s": 1.0, "duration_s": None, "most_bytes": 0}
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


@attaches
def test_top_watches_a_running_process_until_ctrl_c_and_that_goes_on(busy: subprocess.Popen[str]) -> None:
    watched(busy.pid, "GIL held")


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
import os, threading, time
children = []
for number in range(2):
    child = os.fork()
    if not child:
        threading.Thread(target=threading.Event().wait, name=f"worker-{number}", daemon=True).start()
        break
    children.append(child)
else:
    print(*children, flush=True)
parent, stop = os.getppid(), time.monotonic() + 40
while time.monotonic() < stop and (child or os.getppid() == parent):
    time.sleep(0.001)
os._exit(0)
"""


@attaches
def test_top_of_a_process_watches_the_workers_that_are_there() -> None:
    with subprocess.Popen([sys.executable, "-c", WORKERS], stdout=subprocess.PIPE, text=True) as server:
        workers = line(server).split()
        watched(server.pid, *(f"pid {pid}: " for pid in (*workers, server.pid)))
        assert server.poll() is None
        server.kill()


BLOCKED = """
import sys
print("ready", flush=True)
sys.stdin.readline()
for _ in range(1000):
    pass
print("fairlead" in sys.modules, flush=True)
"""


@attaches
def test_program_in_a_long_c_call_runs_nothing_of_ours_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "ANSWER_S", 0.1)
    with running(BLOCKED) as process:
        with pytest.raises(InterpreterFailedError) as failed:
            attaching.begin(process.pid, "interactive", 0.1, None)
        said = process.communicate("\n", timeout=100)
    if "cannot be attached to" in str(failed.value):
        pytest.skip(str(failed.value))
    assert "nothing was changed in it; try again while it has work to do (send it a request)" in str(
        failed.value
    )
    assert said == ("False\n", "")


@attaches
def test_stopped_program_is_refused_at_once(busy: subprocess.Popen[str], tmp_path: Path) -> None:
    busy.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, busy.pid, os.WSTOPPED | os.WNOWAIT)
    for command in (("run",), ("record", "-o", tmp_path / "out.flrec"), ("top",)):
        ran = attached(*command, "--pid", busy.pid)
        assert (ran.returncode, ran.stderr) == (
            2,
            f"fairlead: process {busy.pid} is stopped, by a signal or a debugger: have it continue first"
            f" (kill -CONT {busy.pid})\n",
        )


FURTHER = """
import concurrent.interpreters, threading
further = concurrent.interpreters.create()
busy = "print('ready', flush=True)\\nwhile True: sum(range(1000))"
threading.Thread(target=further.exec, args=(busy,), daemon=True).start()
while True:
    sum(range(1000))
"""


@attaches
@pytest.mark.parametrize("command", ["run", "record"])
def test_program_with_further_interpreters_is_left_alone(command: str, tmp_path: Path) -> None:
    """Python asks the newest."""
    with running(FURTHER) as process:
        options = ["-o", tmp_path / "out.flrec"] if command == "record" else []
        ran = attached(command, *options, "--pid", process.pid)
        ended = process.poll()
        process.kill()
        _, complaints = process.communicate()
    assert (ran.returncode, ended, complaints) == (1, None, "")
    assert "has further interpreters" in ran.stderr
    assert "fairlead record -- COMMAND" in ran.stderr


AS_NOBODY = """
import _interpreters, encodings.ascii, json, os, threading
import fairlead.gil.observe.programs.launched, fairlead.gil.observe.names, fairlead.gil.observe.observation
import fairlead.gil.schedule.attached, fairlead.machine, fairlead._probe
os.setgid(65534)
os.setuid(65534)
"""
"""All is imported by then: this Python may be where that user may not read."""
GEVENT = f"""
import fairlead  # an editable install is built by a sub-process, which a hub could not wait for
from gevent import monkey
monkey.patch_all()
{TURN}"""
UVLOOP = """
import asyncio, uvloop
async def main():
    print("ready", flush=True)
    for _ in range(10000):
        await asyncio.sleep(0.01)
uvloop.run(main())
"""


@attaches
@pytest.mark.parametrize(("library", "code"), [("gevent", GEVENT), ("uvloop", UVLOOP)])
def test_program_with_a_loop_of_its_own_is_scheduled_and_recorded(
    library: str, code: str, tmp_path: Path
) -> None:
    pytest.importorskip(library)
    with running(code) as process:
        scheduled(process.pid, 0.3)
        assert "the time that the GIL was to be scheduled for is over" in news(process)
        assert "policy stock," in status(process.pid)
        ran = attached("record", "--pid", process.pid, "--duration", "200ms", "-o", tmp_path / "out.flrec")
        assert ran.returncode == 0, ran.stderr
        assert process.poll() is None


@attaches
@pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to be another user")
def test_root_schedules_records_and_watches_a_program_of_another_user(tmp_path: Path) -> None:
    with running(AS_NOBODY + TURN) as process:
        pid = process.pid
        scheduled(pid)
        assert "policy interactive," in status(pid)
        place = Path("/tmp") / f"fairlead-test-{os.getpid()}.flrec"  # tmp_path is root's alone
        try:
            ran = attached("record", "--pid", pid, "--duration", "200ms", "-o", place)
            assert ran.returncode == 0, ran.stderr
            assert place.stat().st_uid == 65534
        finally:
            place.unlink(missing_ok=True)
        ran = attached("record", "--pid", pid, "--duration", "200ms", "-o", tmp_path / "out.flrec")
        assert (ran.returncode, list(tmp_path.iterdir())) == (1, [])
        assert "out.flrec cannot be written (Permission denied)" in ran.stderr
        assert ran.stderr.count("\n") == 1
        watched(pid, "GIL held")
        assert process.poll() is None


@attaches
@pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to be another user")
def test_program_that_may_not_read_fairlead_says_so() -> None:
    """Here it may not read any module any more, whoever installed it."""
    code = "import os, sys; os.setuid(65534); sys.path[:] = []; sys.meta_path[:] = sys.meta_path[:2]\n"
    with running(code + TURN.replace("import sys, time", "import time")) as process:
        ran = attached("run", "--pid", process.pid)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "the program cannot import fairlead (" in ran.stderr
    assert "or let its user read" in ran.stderr
    assert ran.stderr.count("\n") == 1


@attaches
def test_root_does_not_run_another_users_program_as_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.touch()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(attach, "owner", lambda _pid: (1000, 1000))
    theirs = {"user": 1000, "group": 1000, "extra_groups": []}
    for file, rights in (program, theirs if program.stat().st_uid else {}), (Path("/proc/1"), {}):
        assert attach._rights(1, str(file)) == rights


@attaches
@pytest.mark.parametrize("options", ["rw", "ro"])
def test_program_with_another_tmp_is_scheduled(options: str, tmp_path: Path) -> None:
    """As systemd's PrivateTmp makes it, and a read-only one."""
    used = [Path(path).resolve() for path in (sys.prefix, sys.base_prefix, str(fairlead_package.__file__))]
    kept = {path.parts[2] for path in used if path.parts[1] == "tmp"}
    new = tmp_path / "new"
    steps = [
        f"mkdir {new} && mount -t tmpfs tmpfs {new}",
        *(f"mkdir {new / name} && mount --bind /tmp/{name} {new / name}" for name in kept),
        f"mount --rbind {new} /tmp && mount -o remount,bind,{options} /tmp",
        'exec "$@"',
    ]
    unshare = [str(shutil.which("unshare")), "-m", "sh", "-e", "-c", "\n".join(steps), "sh"]
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("takes the right to make a mount namespace")
    with running(TURN, *unshare, "env", "TMPDIR=/nowhere") as process:
        scheduled(process.pid)
        assert "policy interactive," in status(process.pid)


@attaches
def test_order_or_a_later_schedule_takes_the_place_of_the_time() -> None:
    code = """
import time
from fairlead.gil.schedule import control
control.switch("interactive", 0.05, for_s=0.1)
control.switch("interactive", 0.05)
time.sleep(0.2)
print("ready", flush=True)
while True:
    time.sleep(0.01)
"""
    with running(code) as process:
        assert "policy interactive," in status(process.pid)
        scheduled(process.pid, 1)
        assert "switched off by fairlead ctl" in ctl(process.pid, "off").stdout
        ctl(process.pid, "interactive")
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        assert "policy interactive," in status(process.pid)


@attaches
def test_program_that_became_another_takes_no_orders_until_it_is_scheduled_again() -> None:
    code = f"""
import os, sys
print("ready", flush=True)
while "fairlead._probe" not in sys.modules: pass
sys.stdin.readline()
os.execv(sys.executable, [sys.executable, "-c", {TURN!r}])
"""
    with running(code) as process:
        scheduled(process.pid)
        assert line(process, " ") == "ready"
        said = status(process.pid)
        assert f"process {process.pid} takes no orders: it was never scheduled, or became another" in said
        assert said.count("\n") == 1
        scheduled(process.pid)
        assert "policy interactive," in status(process.pid)


@attaches
def test_program_that_fails_to_begin_says_why_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "_CALL", attach._CALL.replace("said = call(", "said = 1 / 0 or call("))
    with running(TURN) as process, pytest.raises(attach.UnsupportedInterpreterError) as failed:
        attaching.begin(process.pid, "interactive", 0.1, None)
    assert "ZeroDivisionError: division by zero" in str(failed.value)
