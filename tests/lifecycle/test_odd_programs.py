"""``run --pid`` and ``ctl`` of programs that are unlike others: each works, or is refused in one line."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from running import TURN, attached, ctl, line, news, running, scheduled, status, watched

import fairlead as fairlead_package
from fairlead.errors import InterpreterFailedError
from fairlead.gil.observe.access import why_not
from fairlead.gil.observe.programs import attach
from fairlead.gil.schedule import attached as attaching

pytestmark = [
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.skipif(sys.version_info < (3, 14), reason="attaching takes sys.remote_exec of Python 3.14"),
]
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


@pytest.mark.parametrize(("library", "code"), [("gevent", GEVENT), ("uvloop", UVLOOP)])
def test_program_with_a_loop_of_its_own_is_scheduled_and_recorded(
    library: str, code: str, tmp_path: Path
) -> None:
    pytest.importorskip(library)
    with running(code) as process:
        scheduled(process.pid, "--for", "300ms")
        assert "the time that the GIL was to be scheduled for is over" in news(process)
        assert "policy stock," in status(process.pid)
        ran = attached("record", "--pid", process.pid, "--duration", "200ms", "-o", tmp_path / "out.flrec")
        assert ran.returncode == 0, ran.stderr
        assert process.poll() is None


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


def test_children_that_are_forked_later_are_scheduled_to_the_same_end() -> None:
    """How soon the end comes is no matter: each of the two says that its schedule is over."""
    code = f"""
import os, sys, time
print("ready", flush=True)
while "fairlead.gil.schedule.control" not in sys.modules:
    time.sleep(0.01)
import fairlead.gil
while not fairlead.gil.scheduler().scheduled_seconds:
    time.sleep(0.01)
child = os.fork()
if child:
    print(child, flush=True)
{TURN.replace('print("ready", flush=True)', "")}"""
    with running(code) as process:
        scheduled(process.pid, "--for", "3s")
        child = int(line(process))
        try:
            told = news(process) + news(process)
            over = "process {}: the time that the GIL was to be scheduled for is over"
            assert all(over.format(pid) in told for pid in (process.pid, child)), told
            assert "policy stock," in status(child)
        finally:
            os.kill(child, signal.SIGKILL)


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
        scheduled(process.pid, "--for", "1s")
        assert "switched off by fairlead ctl" in ctl(process.pid, "off").stdout
        ctl(process.pid, "interactive")
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        assert "policy interactive," in status(process.pid)


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
        assert f"process {process.pid} takes no orders: it was scheduled and became another program" in said
        assert said.count("\n") == 1
        scheduled(process.pid)
        assert "policy interactive," in status(process.pid)


def test_program_that_fails_to_begin_says_why_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "_CALL", attach._CALL.replace("said = call(", "said = 1 / 0 or call("))
    with running(TURN) as process, pytest.raises(attach.UnsupportedInterpreterError) as failed:
        attaching.begin(process.pid, "interactive", 0.1, None)
    assert "ZeroDivisionError: division by zero" in str(failed.value)


def test_attaching_to_an_idle_loop_fails_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "ANSWER_S", 0.1)
    code = "import select; print('ready', flush=True); select.select([], [], [])"
    with running(code) as process, pytest.raises(InterpreterFailedError) as failed:
        attaching.begin(process.pid, "interactive", 0.1, None)
    assert "try again while it has work to do (send it a request)" in str(failed.value)
