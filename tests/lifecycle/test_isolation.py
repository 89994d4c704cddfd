"""An isolated program ends when it must, and takes everything with it that it started."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from programs import living, script

from fairlead.errors import FairleadError, RunInterruptedError
from fairlead.lab.isolation import subprocess_runner
from fairlead.lab.isolation.stop import Stop

pytestmark = pytest.mark.ends

Run = Callable[..., subprocess_runner.Outcome]
LIMIT_S = 30.0


@pytest.fixture
def mark() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def run(mark: str, tmp_path: Path) -> Run:
    def start(text: str, **options: object) -> subprocess_runner.Outcome:
        program = script(tmp_path / "program", text)
        given = {"env": os.environ, "timeout_s": LIMIT_S, "mark": mark, **options}
        return subprocess_runner.run([str(program)], **given)  # type: ignore[arg-type]

    return start


@pytest.fixture
def over_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has a program's time be nearly over once it has made these files, however long that took."""

    def ends(*names: str) -> None:
        def now() -> float:
            made = all((tmp_path / name).exists() for name in names)
            return time.monotonic() + (LIMIT_S - 0.1 if made else 0.0)

        monkeypatch.setattr(subprocess_runner, "time", SimpleNamespace(monotonic=now, sleep=time.sleep))

    return ends


def test_run_program_that_ends_gives_output_status_and_usage(run: Run) -> None:
    outcome = run("echo out; echo err >&2; exit 3")
    assert (outcome.ended, outcome.returncode, outcome.stdout, outcome.stderr) == (
        "exited",
        3,
        b"out\n",
        b"err\n",
    )
    assert outcome.usage.ru_maxrss > 0


def test_run_program_killed_by_signal_gives_its_number(run: Run) -> None:
    assert run("kill -SEGV $$").returncode == -signal.SIGSEGV


def test_run_program_that_hangs_and_ignores_sigterm_is_killed_after_its_time(
    run: Run, mark: str, over_with: Callable[..., None], tmp_path: Path
) -> None:
    over_with("begun")
    outcome = run(f"trap '' TERM INT HUP; echo first; : > {tmp_path}/begun; echo; while :; do :; done")
    assert (outcome.ended, outcome.stdout[:6]) == ("timeout", b"first\n")
    assert living(mark) == []


@pytest.mark.parametrize(
    "left",
    [
        "sh -c 'while :; do :; done' &",
        "setsid sleep 1000 &",
        "(sleep 1000 & ) &",
        "nohup setsid sh -c 'sleep 1000; :' &",
        # of the session, but of another group, and without the mark in its environment
        """bash -c 'set -m; env -i sh -c "sleep 1000; : $FAIRLEAD_SAMPLE" &'""",
    ],
)
@pytest.mark.parametrize("end", ["exit 0", "wait; sleep 1000"])
def test_run_program_with_descendants_leaves_none_of_them(run: Run, mark: str, left: str, end: str) -> None:
    run(f"{left}\n{end}", timeout_s=0.5)
    assert living(mark) == []


def test_run_grandchild_that_holds_the_pipe_does_not_delay_the_end(run: Run) -> None:
    outcome = run("sleep 1000 & echo done")
    assert (outcome.ended, outcome.stdout) == ("exited", b"done\n")


def test_run_program_that_floods_both_outputs_is_bounded(
    run: Run, over_with: Callable[..., None], tmp_path: Path
) -> None:
    over_with("out", "err")
    flood = f"(yes | head -c 2000000; : > {tmp_path}/{{}}; yes)"
    outcome = run(f"echo first; {flood.format('err')} >&2 & {flood.format('out')}")
    assert outcome.ended == "timeout"
    assert outcome.stdout.startswith(b"first\n")
    assert len(outcome.stdout) == len(outcome.stderr) == 1 << 20


def test_run_program_that_cannot_be_started_raises_and_restores(tmp_path: Path, mark: str) -> None:
    before = os.sched_getaffinity(0), os.sched_getscheduler(0)
    with pytest.raises(FileNotFoundError):
        subprocess_runner.run(
            [str(tmp_path / "absent")], env={}, timeout_s=1, mark=mark, cpus=[min(before[0])]
        )
    assert (os.sched_getaffinity(0), os.sched_getscheduler(0)) == before


def test_run_on_one_core_pins_the_program_and_not_the_caller(run: Run) -> None:
    before = os.sched_getaffinity(0)
    outcome = run("grep Cpus_allowed_list /proc/self/status", cpus=[max(before)])
    assert outcome.stdout.split()[-1] == str(max(before)).encode()
    assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(
    subprocess_runner.real_time_refused() is not None, reason=str(subprocess_runner.real_time_refused())
)
def test_run_under_round_robin_spinning_on_every_core_still_times_out(
    run: Run, mark: str, over_with: Callable[..., None], tmp_path: Path
) -> None:
    over_with("begun")  # and soon: all other tests stand still meanwhile
    spin = "".join("sh -c 'while :; do :; done' &\n" for _ in os.sched_getaffinity(0))
    begin = f"cut -d' ' -f41 /proc/self/stat; {spin} : > {tmp_path}/begun; echo"
    outcome = run(f"{begin}; while :; do :; done", policy="rr")
    assert (outcome.ended, int(outcome.stdout)) == ("timeout", os.SCHED_RR)
    assert living(mark) == []
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_run_signal_while_it_runs_stops_it_in_order(run: Run, mark: str, tmp_path: Path, number: int) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)

    def interrupt() -> None:
        begun.read_bytes()
        os.kill(os.getpid(), number)

    with Stop() as stop:
        thread = threading.Thread(target=interrupt)
        thread.start()
        outcome = run(f"echo > {begun}; sleep 1000", stop=stop)
        thread.join()
        assert (outcome.ended, stop.signum) == ("stopped", number)
        with pytest.raises(RunInterruptedError, match="seen"):
            stop.check("seen")
    assert living(mark) == []


def test_stop_left_restores_the_handlers_and_ignores_what_was_ignored() -> None:
    """As nohup ignores SIGHUP, and a shell without job control SIGINT in the background: SIGTERM is left."""
    ignored = (signal.SIGHUP, signal.SIGINT)
    before = [signal.signal(number, signal.SIG_IGN) for number in ignored]
    try:
        with Stop() as stop:
            for number in ignored:
                os.kill(os.getpid(), number)
            assert not stop.wait(0)
            os.kill(os.getpid(), signal.SIGTERM)
            assert (stop.wait(0), stop.signum) == (True, signal.SIGTERM)
        assert [signal.getsignal(number) for number in ignored] == [signal.SIG_IGN] * 2
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        for number, handler in zip(ignored, before, strict=True):
            signal.signal(number, handler)


def until_seen(mark: str) -> None:
    """exec has begun, but the environment cannot be seen in /proc yet."""
    while not living(mark):
        pass


def test_busy_processes_are_all_there_on_their_core_from_entering_on_and_gone_on_leaving(mark: str) -> None:
    core = min(os.sched_getaffinity(0))
    with subprocess_runner.busy(2, [core], mark=mark):
        found = living(mark)
        assert [os.sched_getaffinity(one) for one in found] == [{core}, {core}]
    assert living(mark) == []
    with pytest.raises(FairleadError, match="did not begin"), subprocess_runner.busy(1, [], mark=mark):
        pass
    assert living(mark) == []


def test_sweep_finds_what_a_dead_caller_left_behind_by_the_beginning_of_the_mark(mark: str) -> None:
    process = subprocess.Popen(
        ["sleep", "1000"], env={subprocess_runner.MARK: f"{mark}.7"}, start_new_session=True
    )
    until_seen(mark)
    subprocess_runner.sweep(mark)
    assert process.wait() == -signal.SIGKILL


def test_sweep_process_in_the_middle_of_an_exec_is_looked_at_until_it_has_its_environment(
    mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen(
        ["sleep", "1000"], env={subprocess_runner.MARK: mark}, start_new_session=True
    ) as process:
        until_seen(mark)
        looks, read = [], subprocess_runner._read

        def in_exec(path: str) -> bytes:
            """What the kernel says of it meanwhile."""
            said = read(path)
            if path == f"/proc/{process.pid}/environ" and len(looks) < 3:
                looks.append(path)
                return b""
            if path == f"/proc/{process.pid}/stat" and looks:
                fields = said.split(b" ")
                fields[-3:-1] = [b"0", b"0"]  # where its environment is
                return b" ".join(fields)
            return said

        monkeypatch.setattr(subprocess_runner, "_read", in_exec)
        subprocess_runner.sweep(mark)
        alive = living(mark)
        process.kill()
    assert (alive, len(looks)) == ([], 3)


def test_sweep_process_that_may_not_be_killed_is_named_at_once(
    mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_pidfd: int, _signum: int) -> None:
        raise PermissionError("as the kernel does for a program that changed its user")

    with subprocess.Popen(["sleep", "1000"], env={subprocess_runner.MARK: mark}) as process:
        until_seen(mark)
        with monkeypatch.context() as patched:
            patched.setattr(signal, "pidfd_send_signal", refuse)
            with pytest.raises(FairleadError, match=f"process {process.pid},"):
                subprocess_runner.sweep(mark)
        subprocess_runner.sweep(mark)
    assert living(mark) == []


def test_clean_environment_drops_what_bends_an_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHON_GIL", "PYTHON_JIT", "PATH"):
        monkeypatch.setenv(name, "x")
    names = {
        n
        for n in subprocess_runner.clean_environment(free_threaded=False)
        if n.startswith(("PYTHON", "PATH"))
    }
    assert names == {"PATH", "PYTHON_JIT", "PYTHONDONTWRITEBYTECODE"}
    assert subprocess_runner.clean_environment(free_threaded=True)["PYTHON_GIL"] == "x"


ORPHAN = """
import os, time
end, others = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        while time.process_time() < 0.3:
            pass
    os._exit(0)
os.wait()
os.close(others)
os.read(end, 1)  # the grandchild, whose parent has gone, has ended
"""


def test_what_a_sample_leaves_behind_counts_as_its_own_once_it_is_adopted(run: Run, tmp_path: Path) -> None:
    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    (tmp_path / "orphan.py").write_text(ORPHAN)
    with subprocess_runner.adopting() as adopt:
        before = used()
        outcome = run(f"exec {sys.executable} {tmp_path}/orphan.py")
        own = outcome.usage.ru_utime + outcome.usage.ru_stime
        deadline = time.monotonic() + LIMIT_S
        while used() - before < own + 0.29 and time.monotonic() < deadline:
            adopt()  # it may still be on its way out
        assert used() - before == pytest.approx(own + 0.3, abs=0.1)
