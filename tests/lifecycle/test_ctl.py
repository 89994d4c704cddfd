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
from commands import fairlead, here
from running import ctl, line, news, running, status
from waiting import until

from fairlead.errors import UsageError
from fairlead.gil.observe.access import why_not
from fairlead.gil.observe.programs.target import ended
from fairlead.gil.schedule import outside
from fairlead.gil.schedule.outside import Answer, Order

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
SERVE = """
import os, sys, threading, time
import fairlead.gil
turns = [0, 0]
def compute():
    while True:
        sum(range(500))
        turns[0] += 1
def tick():
    while True:
        time.sleep(0.01)
        turns[1] += 1
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
TURNS = (
    "before = turns[:]; [time.sleep(0.001) for _ in iter(lambda: all(map(int.__lt__, before, turns)), True)]"
)
"""Each thread has had a turn, after which it has tried to say what it was ordered."""
FORK = (
    "r, w = os.pipe(); child = os.fork();"
    " child or (os.close(w), os.read(r, 1), tell(), os._exit(0)); print(child, flush=True)"
)
"""The child goes on when the other end is closed."""
END_CHILD = "os.close(w); os.waitpid(child, 0)"
UNWRITABLE = {
    "full": "import fcntl; os.write(2, bytes(fcntl.fcntl(2, fcntl.F_GETPIPE_SZ)))",
    "closed": "r, w = os.pipe(); os.dup2(w, 2); os.close(r); os.close(w); signal(SIGPIPE, SIG_DFL)",
    "limited": "import resource; os.dup2(os.memfd_create('log'), 2); signal(SIGXFSZ, SIG_DFL);"
    " resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
}
"""What makes standard error block who writes to it, or end it by a signal."""
READ = ("0", "63")
"""The number of read(2), on x86-64 and AArch64."""
HEARS = "import sys; print('ready', flush=True); sys.stdin.read()"


@contextmanager
def serving(code: str = SERVE) -> Iterator[subprocess.Popen[str]]:
    with running(code, first="interactive False") as process:
        yield process


def send(pid: int, order: Order) -> Answer:
    """With patience."""
    return outside.send(pid, order, wait_s=50)


def stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)


def files(pid: int) -> list[Path]:
    return list(Path("/dev/shm").glob(f"fairlead-orders.*.{pid}.*"))


def takes_orders(pid: int) -> bool:
    return pid in outside.scheduled_family(pid)


def page(pid: int) -> outside._Page:
    with outside._page(pid) as (_, _, found):
        return found


@contextmanager
def parent_and_child() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A scheduled program and the child that it has forked, once both take orders."""
    with serving() as process:
        child = int(line(process, FORK))
        assert line(process) == "interactive False"
        while not takes_orders(child):
            pass  # it does once it runs
        yield process, child


def test_program_is_switched_to_and_fro_and_says_so() -> None:
    with serving() as process:
        by = f"fairlead: process {process.pid}: {{}} by order of fairlead ctl\n"
        off, on = by.format("the interpreter's own scheduling is in force"), by.format("the GIL is scheduled")
        for order, shows, policy, told in (
            ("status", "policy interactive, ", "interactive False", ""),
            ("stock", "policy stock, ", "stock False", off),
            ("interactive", "policy interactive, ", "interactive False", on),
            ("off", "policy stock (switched off by fairlead ctl), ", "stock True", off),
        ):
            ran = ctl(process.pid, order)
            assert (ran.returncode, ran.stderr) == (0, "")
            assert ran.stdout.startswith(f"process {process.pid}: {shows}")
            assert line(process, "pass") == policy
            assert not told or news(process) == told
        assert re.search(
            r"[\d,]+ acquisitions scheduled and [\d,]+ waits, the watchdog never tripped\n", ran.stdout
        )
        assert line(process, "fairlead.gil.schedule()") == "stock True"
        assert send(process.pid, "interactive").policy == "interactive"
        assert line(process, "pass") == "interactive False"
        assert line(process, "fairlead.gil.schedule(policy='stock')") == "stock False"
        assert process.communicate(timeout=100)[1] == on


@pytest.mark.parametrize("way", UNWRITABLE)
def test_standard_error_that_takes_nothing_neither_blocks_nor_ends_the_program(way: str) -> None:
    with serving() as process:
        line(process, f"from signal import *; {UNWRITABLE[way]}")
        assert send(process.pid, "off").off
        assert send(process.pid, "status").fresh
        assert line(process, TURNS) == "stock True"
        if way != "full":
            return
        assert process.stderr is not None
        size = fcntl.fcntl(process.stderr, fcntl.F_GETPIPE_SZ)
        while size:
            size -= len(os.read(process.stderr.fileno(), size))
        assert send(process.pid, "interactive").fresh
        said = news(process)
    by = "the GIL is scheduled by order of fairlead ctl (standard error did not take 1 line before)"
    assert said == f"fairlead: process {process.pid}: {by}\n"


def test_order_to_a_stopped_process_is_obeyed_when_it_continues_even_after_status_requests() -> None:
    with serving() as process:
        stop(process)
        ran = here("ctl", "--pid", process.pid, "status")  # no counts: they would be those of some time ago
        assert ran.stdout.endswith(": no thread has taken the GIL for a second; before: policy interactive\n")
        for order in ("off", "status"):
            assert not outside.send(process.pid, order, wait_s=0).fresh
        process.send_signal(signal.SIGCONT)
        assert send(process.pid, "status").off
        assert line(process, "pass") == "stock True"


def test_time_in_which_the_machine_stands_still_is_no_time_without_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This process is the first to run again."""
    with serving() as process:
        stop(process)
        stood_still = 0.0

        def sleep(seconds: float) -> None:
            nonlocal stood_still
            if stood_still:
                process.send_signal(signal.SIGCONT)
            stood_still += 60.0
            time.sleep(seconds)

        clock = SimpleNamespace(sleep=sleep, monotonic=lambda: time.monotonic() + stood_still)
        monkeypatch.setattr(outside, "time", clock)
        assert outside.send(process.pid, "off", wait_s=50).fresh


def test_order_is_obeyed_while_c_code_keeps_the_gil() -> None:
    with running(KEEP) as process:
        try:
            while Path(f"/proc/{process.pid}/syscall").read_text().split()[0] not in READ:
                pass
        except OSError as error:
            pytest.skip(f"this kernel does not say in which system call a thread is: {error}")
        while (answer := outside.send(process.pid, "stock")).hooks != "awake" or answer.policy != "stock":
            pass  # the other thread, which wakes every 10 ms, has not been there yet
        assert send(process.pid, "status").fresh
        assert line(process, "x") == "stock"


def test_forked_child_takes_orders_of_its_own_and_makes_no_file() -> None:
    with parent_and_child() as (process, child):
        (file,) = files(process.pid)
        assert files(child) == []
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        outside.send(child, "stock", wait_s=0.1)  # if it sleeps in read(2) by now, it obeys when it wakes
        assert line(process, "pass") == "interactive False"
        assert line(process, END_CHILD) == "stock False"
        assert line(process) == "interactive False"
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(50) == 0
    assert files(process.pid) == []  # although the child ended by os._exit()


@contextmanager
def parent_and_loose_child(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int, Path]]:
    """The child takes the GIL time and again, whatever its parent does, and exits when there is this file."""
    end = tmp_path / "end"
    fork = (
        "child = os.fork()\\n"
        f"while not child and not os.path.exists({str(end)!r}): time.sleep(0.002)\\n"
        "child or sys.exit(0)\\nprint(child, flush=True)"
    )
    with serving() as process:
        child = int(line(process, f'exec("{fork}")'))
        assert line(process) == "interactive False"
        until(lambda: takes_orders(child))
        yield process, child, end


def test_file_goes_with_the_last_of_a_family(tmp_path: Path) -> None:
    """A daemon's parent ends first."""
    with parent_and_loose_child(tmp_path) as (process, child, end):
        process.kill()
        process.wait(50)
        with serving():
            assert files(process.pid) != []
        assert send(child, "stock").policy == "stock"
        end.touch()
        until(lambda: ended(child))
    assert files(process.pid) == []


def test_program_that_an_exec_puts_in_the_place_of_a_scheduled_one_has_a_file_of_its_own(
    tmp_path: Path,
) -> None:
    """The earlier one goes when its children have ended."""
    again = "os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])"
    with parent_and_loose_child(tmp_path) as (process, child, end):
        (before,) = files(process.pid)
        assert line(process, again) == "interactive False"
        (after,) = set(files(process.pid)) - {before}
        assert send(child, "off").off
        assert send(process.pid, "status").policy == "interactive"
        end.touch()
        until(lambda: ended(child))
        assert line(process, again) == "interactive False"
        assert before not in files(process.pid)
        assert after not in files(process.pid)


@pytest.mark.parametrize(
    ("place", "words", "said"),
    [
        ("magic", b"\xff", "is damaged"),
        ("version", b"\xff", "takes orders of another version of fairlead"),
        ("pid", b"\xff" * 4, "takes no orders"),
        ("canary", b"\xff" * 4, "is damaged"),
        ("request", b"\xff" * 8, ""),
        ("mode", b"\xff" * 32, ""),
        ("hooks", b"\xff" * 4, "is damaged"),
    ],
)
def test_page_that_the_process_has_damaged_is_one_clear_error(place: str, words: bytes, said: str) -> None:
    """It is the process's own, and the user who gives the order may be root."""
    offsets = {"mode": 24, "hooks": 56} | {name: 4 * i for i, name in enumerate(outside._Page._fields[:6])}
    with serving() as process:
        stop(process)
        with outside._page(process.pid) as (file, start, _):
            os.pwrite(file, words, start + offsets[place])
        ran = here("ctl", "--pid", process.pid, "off")
        assert (ran.returncode, ran.stderr.count("\n")) == ((2, 1) if said else (0, 0))
        assert said in ran.stderr


@pytest.mark.parametrize("size", [0, 64, 100, 16383])
def test_file_that_the_process_has_cut_short_is_one_clear_error(size: int) -> None:
    with serving() as process:
        stop(process)
        os.truncate(files(process.pid)[0], size)
        ran = here("ctl", "--pid", process.pid, "off")
        assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
        assert "is damaged" in ran.stderr


def test_page_that_is_cut_short_while_an_answer_is_waited_for_is_an_error() -> None:
    with serving() as process:
        stop(process)
        with outside._page(process.pid) as (file, place, before):
            asked = outside._ask(process.pid, "off", file, place, before)
            os.ftruncate(file, 0)
            with pytest.raises(UsageError, match="is damaged"):
                outside._answer(asked)


@pytest.mark.parametrize("when", ["before", "after"])
def test_limit_of_the_size_of_files_ends_neither_a_scheduled_program_nor_its_children(when: str) -> None:
    """It takes no orders if there was no room for its page."""
    limit = "from signal import *; import resource; signal(SIGXFSZ, SIG_DFL); resource.setrlimit(1, (0, 0))\n"
    code = SERVE.replace("fairlead.gil.schedule()", f"{limit}fairlead.gil.schedule()", 1)
    with serving(code if when == "before" else SERVE) as process:
        if when == "after":
            assert line(process, limit.rstrip()) == "interactive False"
        child = "child = os.fork(); child or (compute_a_little(), os._exit(3))"
        little = "compute_a_little = lambda: threading.Thread(target=sum, args=(range(9999),)).start()"
        assert line(process, little) == "interactive False"
        assert line(process, child) == "interactive False"
        assert line(process, "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))") == "3"
        assert line(process) == "interactive False"
        assert takes_orders(process.pid) == (when == "after")


def test_order_reaches_the_children_at_once_and_what_is_forked_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """All have it before an answer is waited for: of eight idle workers each would keep the next one waiting
    for a second."""

    def requests() -> list[int]:
        return [page(pid).request for pid in (process.pid, child)]

    def looked(asked: outside._Asked) -> Answer | None:
        seen.append(requests())
        return answer(asked)

    seen: list[list[int]] = []
    answer = outside._answer
    with parent_and_child() as (process, child):
        before = requests()
        monkeypatch.setattr(outside, "_answer", looked)
        ran = here("ctl", "--pid", process.pid, "--children", "off")
        assert all(now != then for now, then in zip(seen[0], before, strict=True))
        assert re.findall(r"^process (\d+): ", ran.stdout, re.MULTILINE) == [str(process.pid), str(child)]
        assert line(process, END_CHILD) == "stock True"
        assert line(process) == "stock True"
        line(process, FORK)
        assert line(process) == "stock True"
        assert line(process, END_CHILD) == "stock True"
        assert line(process) == "stock True"


def test_process_of_a_family_that_takes_no_order_is_named() -> None:
    with parent_and_child() as (process, child):
        with outside._page(child) as (file, place, _):
            os.pwrite(file, b"\xff", place + 4)
        ran = ctl(process.pid, "--children", "off")
        assert ran.returncode == 2
        assert ran.stdout.startswith(f"process {process.pid}: policy stock (switched off by fairlead ctl)")
        refusal = f"process {child} takes orders of another version of fairlead: use that one's ctl"
        assert ran.stderr == f"{refusal}\nfairlead: 1 of 2 processes took no order, see above\n"


def test_child_that_c_code_forked_takes_orders_of_its_own() -> None:
    """As uWSGI's workers: nothing of Python is told of the fork. There are no other threads yet: one of them
    could hold the mutex of the GIL, and the child would wait for it for ever, scheduled or not."""
    with serving(SERVE.replace(".start()", "")) as process:
        fork = (
            "import ctypes; child = ctypes.PyDLL(None).fork()\\n"
            "while child == 0 and os.getppid() != 1: time.sleep(0.01)\\n"
            "child or os._exit(0); print(child, flush=True)"
        )
        child = int(line(process, f'exec("{fork}")'))
        while not takes_orders(child):
            pass
        assert send(child, "stock").policy == "stock"
        assert line(process) == "interactive False"
        os.kill(child, signal.SIGKILL)


def test_what_takes_no_orders_is_named_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with running(HEARS) as process:
        pid = process.pid
        said = status(pid)
        assert f"process {pid} takes no orders: it was never scheduled" in said
        assert f"(Python 3.14 and later) schedule it now: fairlead run --pid {pid}\n" in said
        assert said.count("\n") == 1
        process.kill()
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # its number is there still
        for words in (["ctl", "status"], ["run"], ["record"], ["top"]):
            ran = here(words[0], "--pid", pid, *words[1:])
            assert (ran.returncode, ran.stdout) == (2, "")
            assert f"process {pid} runs no program" in ran.stderr
            assert ran.stderr.count("\n") == 1
    ran = fairlead("ctl", "--pid", str(pid), "status", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (2, f"fairlead: there is no process {pid}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to be two other users")
def test_another_user_may_not_give_orders() -> None:
    # all is imported by then: this Python may be where another user may not read
    schedule = "from fairlead.gil.schedule import priority, state"
    as_other = f"import fairlead._probe, fairlead.machine; {schedule}; os.setuid(65534)"
    with serving(
        SERVE.replace("fairlead.gil.schedule()", f"{as_other}; fairlead.gil.schedule()", 1)
    ) as process:
        assert send(process.pid, "status").fresh  # root may
        path = files(process.pid)[0]
        other = subprocess.run([sys.executable, "-c", OTHER, str(process.pid)], timeout=100, check=False)
        assert other.returncode == 2
        os.chown(path, 65533, 65533)
        with pytest.raises(UsageError, match="was put there by another user"):
            send(process.pid, "status")


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python can be attached to")
@pytest.mark.parametrize("words", [["run", "--for", "10m"], ["record"], ["top"]])
def test_older_running_process_is_refused_with_the_way_around(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with running(HEARS) as process:
        ran = here(words[0], "--pid", process.pid, *words[1:])
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "cannot be attached to (3.14 and later can)" in ran.stderr
    assert "start it with fairlead record -- COMMAND (or top, or run)" in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_program_that_became_another_takes_no_orders() -> None:
    with serving() as process:
        assert line(process, "os.execvp('sh', ['sh', '-c', 'echo ready; cat'])") == "ready"
        said = status(process.pid)
    assert f"process {process.pid} takes no orders: it was never scheduled, or became another" in said
    assert said.count("\n") == 1
