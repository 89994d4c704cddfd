"""``fairlead ctl`` and ``fairlead run --pid``: a running program's scheduler, switched from outside."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairlead.errors import UsageError
from fairlead.gil.observe.access import why_not
from fairlead.gil.schedule import outside

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
FAIRLEAD = [sys.executable, "-m", "fairlead"]
SERVE = """
import os, sys, threading, time
import fairlead.gil
def compute():
    while True:
        sum(range(500))
def tick():
    while True:
        time.sleep(0.01)
threading.Thread(target=compute, daemon=True).start()
threading.Thread(target=tick, daemon=True).start()
fairlead.gil.schedule()
def tell():
    now = fairlead.gil.scheduler()
    print(now.policy, now.switched_off, flush=True)
tell()
for line in sys.stdin:
    exec(line)
    tell()
"""
KEEP = """
import ctypes, threading, time
import fairlead.gil
fairlead.gil.schedule()
def tick():
    while True:
        time.sleep(0.01)
threading.Thread(target=tick, daemon=True).start()
libc = ctypes.PyDLL(None)
answer = ctypes.create_string_buffer(1)
print("ready", flush=True)
libc.read(0, answer, 1)  # keeps the GIL
print(fairlead.gil.scheduler().policy, flush=True)
"""
OTHER = """
import os, sys
from fairlead.errors import UsageError
from fairlead.gil.schedule import attached, outside
pid = int(sys.argv[1])
outside.send(pid, "status")
os.setuid(65533)
refused = 0
for ask in lambda: outside.send(pid, "stock"), lambda: attached.begin(pid, "interactive", 0.05, None):
    try:
        ask()
    except UsageError as error:
        refused += "the kernel does not let this user into process" in str(error)
sys.exit(refused)
"""
FORK = (
    "r, w = os.pipe(); child = os.fork();"
    " child or (os.close(w), os.read(r, 1), tell(), os._exit(0)); print(child, flush=True)"
)
"""The child goes on when the other end is closed."""
UNWRITABLE = {
    "full": "import fcntl; os.write(2, bytes(fcntl.fcntl(2, fcntl.F_GETPIPE_SZ)))",
    "closed": "r, w = os.pipe(); os.dup2(w, 2); os.close(r); os.close(w); signal(SIGPIPE, SIG_DFL)",
    "limited": "import resource; os.dup2(os.memfd_create('log'), 2); signal(SIGXFSZ, SIG_DFL);"
    " resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
}
"""What makes standard error block who writes to it, or end it by a signal."""
READ = ("0", "63")
"""The number of read(2), on x86-64 and AArch64."""


@contextmanager
def program(code: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str], ask: str = "") -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    if ask:
        process.stdin.write(ask + "\n")
        process.stdin.flush()
    return process.stdout.readline().rstrip("\n")


def ctl(*words: str | int) -> subprocess.CompletedProcess[str]:
    command = [*FAIRLEAD, "ctl", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def files(pid: int) -> list[Path]:
    return list(Path("/dev/shm").glob(f"fairlead-control.*.{pid}"))


@contextmanager
def parent_and_child() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A scheduled program and the child that it has forked, once both take orders."""
    with program(SERVE) as process:
        line(process)
        child = int(line(process, FORK))
        assert line(process) == "interactive False"
        while not files(child):
            pass  # it makes its own once it runs
        yield process, child


def test_program_is_switched_to_and_fro_and_says_so() -> None:
    with program(SERVE) as process:
        assert line(process) == "interactive False"
        for order, says, policy in (
            ("status", "policy interactive, ", "interactive False"),
            ("stock", "policy stock, ", "stock False"),
            ("interactive", "policy interactive, ", "interactive False"),
            ("off", "policy stock (switched off by fairlead ctl), ", "stock True"),
        ):
            ran = ctl("--pid", process.pid, order)
            assert ran.returncode == 0, ran.stderr
            assert ran.stdout.startswith(f"process {process.pid}: {says}")
            assert line(process, "pass") == policy
        assert re.search(
            r"[\d,]+ acquisitions scheduled and [\d,]+ waits, the watchdog never tripped\n", ran.stdout
        )
        assert line(process, "fairlead.gil.schedule()") == "stock True"
        assert outside.send(process.pid, "interactive").policy == "interactive"
        assert line(process, "pass") == "interactive False"
        assert line(process, "fairlead.gil.schedule(policy='stock')") == "stock False"
        _, said = process.communicate(timeout=100)
    by = f"fairlead: process {process.pid}: {{}} by order of fairlead ctl\n"
    off, on = by.format("the interpreter's own scheduling is in force"), by.format("the GIL is scheduled")
    assert said == off + on + off + on


@pytest.mark.parametrize("way", UNWRITABLE)
def test_standard_error_that_takes_nothing_neither_blocks_nor_ends_the_program(way: str) -> None:
    with program(SERVE) as process:
        line(process)
        line(process, f"from signal import *; {UNWRITABLE[way]}")
        assert outside.send(process.pid, "off", wait_s=50).off
        assert outside.send(process.pid, "status", wait_s=50).fresh
        assert line(process, "pass") == "stock True"
        if way != "full":
            return
        assert process.stderr is not None
        size = fcntl.fcntl(process.stderr, fcntl.F_GETPIPE_SZ)
        while size:
            size -= len(os.read(process.stderr.fileno(), size))
        assert outside.send(process.pid, "interactive", wait_s=50).fresh
        said = process.stderr.readline()
    by = "the GIL is scheduled by order of fairlead ctl (standard error did not take 1 line before)"
    assert said == f"fairlead: process {process.pid}: {by}\n"


def test_order_to_a_stopped_process_is_obeyed_when_it_continues_even_after_status_requests() -> None:
    with program(SERVE) as process:
        line(process)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        ran = ctl("--pid", process.pid, "status")  # no counts: they would be those of some time ago
        assert ran.stdout.endswith(": no thread has taken the GIL for a second; before: policy interactive\n")
        assert not outside.send(process.pid, "off", wait_s=0).fresh
        assert not outside.send(process.pid, "status", wait_s=0).fresh
        process.send_signal(signal.SIGCONT)
        assert outside.send(process.pid, "status", wait_s=50).off
        assert line(process, "pass") == "stock True"


def test_time_in_which_the_machine_stands_still_is_no_time_without_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This process is the first to run again."""
    with program(SERVE) as process:
        line(process)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        stood_still = 0.0

        def sleep(seconds: float) -> None:
            nonlocal stood_still
            if stood_still:
                process.send_signal(signal.SIGCONT)
            stood_still = 60.0
            time.sleep(seconds)

        clock = SimpleNamespace(sleep=sleep, monotonic=lambda: time.monotonic() + stood_still)
        monkeypatch.setattr(outside, "time", clock)
        assert outside.send(process.pid, "off").fresh


def test_order_is_obeyed_while_c_code_keeps_the_gil() -> None:
    with program(KEEP) as process:
        assert line(process) == "ready"
        assert process.stdin is not None
        try:
            while Path(f"/proc/{process.pid}/syscall").read_text().split()[0] not in READ:
                pass
        except OSError as error:
            pytest.skip(f"this kernel does not say in which system call a thread is: {error}")
        while (answer := outside.send(process.pid, "stock")).hooks != "awake" or answer.policy != "stock":
            pass  # the other thread, which wakes every 10 ms, has not been there yet
        assert outside.send(process.pid, "status").fresh
        process.stdin.write("x")
        process.stdin.flush()
        assert line(process) == "stock"


def test_forked_child_takes_orders_of_its_own_and_files_go_with_their_processes() -> None:
    with parent_and_child() as (process, child):
        (page,) = files(process.pid)
        (inner,) = files(child)
        assert stat.S_IMODE(page.stat().st_mode) == stat.S_IMODE(inner.stat().st_mode) == 0o600
        outside.send(child, "stock", wait_s=0.1)  # if it sleeps in read(2) by now, it obeys when it wakes
        assert line(process, "pass") == "interactive False"
        assert line(process, "os.close(w); os.waitpid(child, 0)") == "stock False"
        assert line(process) == "interactive False"
        inner.touch()  # it ended by os._exit and left it, unless another test's program has begun since
        with program(SERVE) as other:
            line(other)
            assert files(child) == []
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(50) == 0
    assert files(process.pid) == []


def test_order_reaches_the_children_and_what_is_forked_later() -> None:
    with parent_and_child() as (process, child):
        ran = ctl("--pid", process.pid, "--children", "off")
        assert re.findall(r"^process (\d+): ", ran.stdout, re.MULTILINE) == [str(process.pid), str(child)]
        assert line(process, "os.close(w); os.waitpid(child, 0)") == "stock True"
        assert line(process) == "stock True"
        line(process, FORK)
        assert line(process) == "stock True"
        assert line(process, "os.close(w); os.waitpid(child, 0)") == "stock True"
        assert line(process) == "stock True"


def test_all_of_a_family_have_the_order_before_an_answer_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of eight idle workers each would keep the next one waiting for a second."""

    def requests() -> list[bytes]:
        return [page.read_bytes()[16:20] for pid in family for page in files(pid)]

    def looked(asked: outside._Asked) -> outside.Answer:
        seen.append(requests())
        return answer(asked)

    with parent_and_child() as (process, child):
        family = process.pid, child
        before = requests()
        seen: list[list[bytes]] = []
        answer = outside._answer
        monkeypatch.setattr(outside, "_answer", looked)
        assert list(outside.send_all(family, "off", wait_s=0.1)) == list(family)
        assert all(now != then for now, then in zip(seen[0], before, strict=True))
        assert line(process, "os.close(w); os.waitpid(child, 0)") == "stock True"


def test_process_of_a_family_that_takes_no_order_is_named() -> None:
    with parent_and_child() as (process, child):
        (page,) = files(child)
        with page.open("r+b") as file:
            file.seek(4)
            file.write(b"\xff")
        ran = ctl("--pid", process.pid, "--children", "off")
        assert ran.returncode == 2
        assert ran.stdout.startswith(f"process {process.pid}: policy stock (switched off by fairlead ctl)")
        refusal = f"process {child} takes orders of another version of fairlead: use that one's ctl"
        assert ran.stderr == f"{refusal}\nfairlead: 1 of 2 processes took no order, see above\n"


def test_child_that_c_code_forked_takes_orders_of_its_own() -> None:
    """As uWSGI's workers: nothing of Python is told of the fork. There are no other threads yet: one of them
    could hold the mutex of the GIL, and the child would wait for it for ever, scheduled or not."""
    with program(SERVE.replace(".start()", "")) as process:
        line(process)
        fork = (
            "import ctypes; child = ctypes.PyDLL(None).fork()\\n"
            "while child == 0 and os.getppid() != 1: time.sleep(0.01)\\n"
            "child or os._exit(0); print(child, flush=True)"
        )
        child = int(line(process, f'exec("{fork}")'))
        while not files(child):
            pass
        assert outside.send(child, "stock", wait_s=10).policy == "stock"
        assert line(process) == "interactive False"
        os.kill(child, signal.SIGKILL)


def test_what_takes_no_orders_is_named_in_one_line() -> None:
    with program("import sys; print(flush=True); sys.stdin.read()") as process:
        line(process)
        ran = ctl("--pid", process.pid, "status")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"process {process.pid} takes no orders: it was never scheduled" in ran.stderr
    assert f"(Python 3.14 and later) schedule it now: fairlead run --pid {process.pid}\n" in ran.stderr
    assert ran.stderr.count("\n") == 1
    ran = ctl("--pid", process.pid, "status")
    assert (ran.returncode, ran.stderr) == (2, f"fairlead: there is no process {process.pid}\n")


def test_program_that_became_another_takes_no_orders() -> None:
    with program(SERVE) as process:
        line(process)
        assert line(process, "os.execvp('sh', ['sh', '-c', 'echo ready; cat'])") == "ready"
        ran = ctl("--pid", process.pid, "status")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"process {process.pid} takes no orders: it was scheduled and became another program" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_process_that_has_ended_and_was_not_waited_for_is_reported_as_running_no_program() -> None:
    with program("pass") as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        for words in (["ctl", "status"], ["run"], ["record"], ["top"]):
            command = [*FAIRLEAD, words[0], "--pid", str(process.pid), *words[1:]]
            ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
            assert (ran.returncode, ran.stdout) == (2, "")
            assert f"process {process.pid} runs no program" in ran.stderr
            assert ran.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to be two other users")
def test_another_user_may_not_give_orders() -> None:
    # all is imported by then: this Python may be where another user may not read
    as_other = "import fairlead._probe, fairlead.gil.schedule.control, fairlead.machine; os.setuid(65534)"
    code = SERVE.replace("fairlead.gil.schedule()", f"{as_other}; fairlead.gil.schedule()", 1)
    with program(code) as process:
        assert line(process) == "interactive False"
        assert outside.send(process.pid, "status").fresh  # root may
        path = files(process.pid)[0]
        other = subprocess.run([sys.executable, "-c", OTHER, str(process.pid)], timeout=100, check=False)
        assert other.returncode == 2
        os.chown(path, 65533, 65533)
        with pytest.raises(UsageError, match="was put there by another user"):
            outside.send(process.pid, "status")


@pytest.mark.skipif(sys.version_info < (3, 14), reason="attaching takes sys.remote_exec of Python 3.14")
def test_running_process_is_scheduled_for_a_while_and_then_as_it_was() -> None:
    code = """
import sys, time
print(flush=True)
while "fairlead.gil.schedule.control" not in sys.modules:
    time.sleep(0.01)
import fairlead.gil
while not fairlead.gil.scheduler().scheduled_seconds:
    time.sleep(0.01)
print("scheduled", flush=True)
while fairlead.gil.scheduler().policy != "stock":
    time.sleep(0.01)
print("stock", flush=True)
"""
    with program(code) as process:
        line(process)
        command = [*FAIRLEAD, "run", "--pid", str(process.pid), "--for", "1s"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        if "cannot be attached to" in ran.stderr:
            pytest.skip(ran.stderr)
        assert ran.returncode == 0, ran.stderr
        ends = f"to end it: fairlead ctl --pid {process.pid} stock"
        assert ran.stdout == f"process {process.pid}: policy interactive for 1 s; {ends}\n"
        assert [line(process), line(process)] == ["scheduled", "stock"]


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python can be attached to")
def test_older_running_process_is_refused_with_the_way_around() -> None:
    with program("import sys; print(flush=True); sys.stdin.read()") as process:
        line(process)
        command = [*FAIRLEAD, "run", "--pid", str(process.pid), "--for", "10m"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        process.send_signal(signal.SIGKILL)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "cannot be attached to (3.14 and later can)" in ran.stderr
    assert "start it with fairlead record -- COMMAND (or top, or run)" in ran.stderr
    assert ran.stderr.count("\n") == 1
