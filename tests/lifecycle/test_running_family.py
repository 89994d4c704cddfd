"""``run --pid`` of a process that has children, one that several ask at once, and one that ends meanwhile."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import FAIRLEAD, here
from running import TURN, attached, ctl, line, news, running, scheduled, status
from waiting import until

from fairlead import machine
from fairlead.errors import InterpreterFailedError, UnsupportedInterpreterError, UsageError
from fairlead.gil.observe.access import why_not
from fairlead.gil.observe.programs import attach
from fairlead.gil.schedule import attached as attaching
from fairlead.gil.schedule import outside

pytestmark = [
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.skipif(sys.version_info < (3, 14), reason="attaching takes sys.remote_exec of Python 3.14"),
]
FAMILY = """
import json, os, signal, subprocess, sys, time
def fork():
    child = os.fork()
    if not child:
        parent = os.getppid()
        while os.getppid() == parent:
            time.sleep(0.01)
        os._exit(0)
    return child
def later(*_):
    print(fork(), flush=True)
signal.signal(signal.SIGUSR1, later)
other = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
code = "import os, time; print(flush=True); parent = os.getppid()"
code += "\\nwhile os.getppid() == parent: time.sleep(0.01)"
spawned = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
spawned.stdout.readline()
forked = [fork(), fork()]
print("ready", json.dumps([other.pid, spawned.pid, *forked]), sep=chr(10), flush=True)
while True:
    time.sleep(0.01)
"""
"""Forked children and another Python, which end with it, and one that is no Python."""


@contextmanager
def family() -> Iterator[tuple[subprocess.Popen[str], int, list[int]]]:
    """The process, its child that is no Python, and its other children."""
    with running(FAMILY) as process:
        other, *children = json.loads(line(process))
        yield process, other, children


def test_children_that_are_there_are_scheduled_and_take_orders_and_are_given_back_after_a_time() -> None:
    with family() as (process, other, children):
        every = [process.pid, *children]
        ran = attached("run", "--pid", process.pid, "--children")
        assert ran.returncode == 0
        *said, end = ran.stdout.splitlines()
        assert sorted(said) == sorted(f"process {pid}: policy interactive" for pid in every)
        assert end == f"to end it: fairlead ctl --pid {process.pid} --children stock"
        not_asked = rf"not scheduled: process {other} \(.*\) is not a Python that fairlead can ask\n"
        assert re.fullmatch(not_asked, ran.stderr)
        process.send_signal(signal.SIGUSR1)
        every.append(int(line(process)))
        until(lambda: outside.scheduled_family(every[-1]))  # it takes orders once it runs
        assert [outside.send(pid, "status", wait_s=50).policy for pid in every] == ["interactive"] * 5
        one = ctl(process.pid, "status")
        assert one.stdout.startswith(f"process {process.pid}: policy interactive")
        assert one.stderr == f"--children gives the order to 4 more, which process {process.pid} started\n"
        here(*end.split()[4:])
        assert [outside.send(pid, "status", wait_s=50).policy for pid in every] == ["stock"] * 5
        assert all("by order of fairlead ctl" in news(process) for _ in every)
        ran = attached("run", "--pid", process.pid, "--children", "--for", "2s")
        said = ran.stdout.splitlines()[:-1]
        assert sorted(said) == sorted(f"process {pid}: policy interactive for 2 s" for pid in every)
        process.send_signal(signal.SIGUSR1)  # and one more, which keeps to the same end, unless that has come
        another, told = int(line(process)), ""
        over = "process {}: the time that the GIL was to be scheduled for is over"
        while not all(over.format(pid) in told for pid in every):
            told += news(process)
        until(lambda: outside.send(another, "status", wait_s=50).policy == "stock")
        assert [outside.send(pid, "status", wait_s=50).policy for pid in every] == ["stock"] * 5


def test_family_without_a_python_says_so_for_each_and_exits_with_1() -> None:
    with subprocess.Popen(["/bin/sh", "-c", "cat; true"], stdin=subprocess.PIPE, text=True) as shell:
        children = Path(f"/proc/{shell.pid}/task/{shell.pid}/children")
        while not (found := children.read_text().split()):
            pass
        ran = here("run", "--pid", shell.pid, "--children")
        shell.communicate("")
    assert (ran.returncode, ran.stdout) == (1, "")
    *each, last = ran.stderr.splitlines()
    assert [re.findall(r"not scheduled: process (\d+) ", line) for line in each] == [[str(shell.pid)], found]
    assert last == f"fairlead: process {shell.pid} and its children: none is scheduled, see above"


def test_child_that_does_not_answer_is_reported_and_the_others_are_scheduled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fork = "import os, sys, time\nif not os.fork():\n    sys.stdin.read()\n    os._exit(0)"
    find = machine.family

    def impatient(pid: int) -> list[int]:
        monkeypatch.setattr(attach, "ANSWER_S", 0.1)  # of the children
        return find(pid)

    monkeypatch.setattr(machine, "family", impatient)
    with running(TURN.replace("import sys, time", fork)) as process:
        assert process.stdin is not None
        outcome = attaching.begin_family(process.pid, "interactive", 0.1, None)
        process.stdin.close()  # which ends the child
        if "cannot be attached to" in str(outcome[process.pid]):
            pytest.skip(str(outcome[process.pid]))
        (parent, why), (child, why_not_it) = outcome.items()
        assert (parent, why) == (process.pid, None)
        assert f"process {child} did not answer" in str(why_not_it)


def test_number_of_a_thread_leads_to_its_process() -> None:
    thread = "import threading; threading.Thread(target=time.sleep, args=(100,)).start(); print("
    code = TURN.replace("print(", thread)
    with running(code) as process:
        tasks = {int(path.name) for path in Path(f"/proc/{process.pid}/task").iterdir()}
        [other] = tasks - {process.pid}
        for words in (["ctl", "status"], ["run"], ["record"], ["top"]):
            ran = here(words[0], "--pid", other, *words[1:])
            assert (ran.returncode, ran.stderr) == (
                2,
                f"fairlead: {other} is a thread of process {process.pid}: give the process's number\n",
            )


def test_two_that_ask_one_process_at_once_are_both_served() -> None:
    """Python keeps the last request only."""
    with running(TURN) as process:
        command = [*FAIRLEAD, "run", "--pid", str(process.pid)]
        pipe = subprocess.PIPE
        both = [subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) for _ in range(4)]
        told = [one.communicate(timeout=100) for one in both]
        if any("cannot be attached to" in complaint for _, complaint in told):
            pytest.skip(str(told))
        assert [complaint for _, complaint in told] == [""] * 4
        assert "policy interactive," in status(process.pid)


def test_turn_that_does_not_come_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "START_S", 0.0)
    monkeypatch.setattr(attach, "ANSWER_S", 0.05)
    with attach.turn(os.getpid()), pytest.raises(InterpreterFailedError, match="another fairlead asks"):
        attaching.begin(os.getpid(), "interactive", 0.1, None)


def test_process_that_ends_meanwhile_is_said_to_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not reaped: its number is there still."""
    code = "import sys, time; print('ready', flush=True); sys.stdin.readline()"
    for step in ("_check_version", "_send", "_answer"):
        with running(code) as process, monkeypatch.context() as patch:
            original = getattr(attach, step)

            def killed(
                *words: object, go_on: object = original, process: subprocess.Popen[str] = process
            ) -> object:
                process.kill()
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
                return go_on(*words)  # type: ignore[operator]

            patch.setattr(attach, step, killed)
            with pytest.raises((InterpreterFailedError, UsageError)) as failed:
                attaching.begin(process.pid, "interactive", 0.1, None)
            assert str(failed.value) in {
                f"process {process.pid} ended",
                f"process {process.pid} runs no program: it is a thread of the kernel, or has ended and"
                " awaits its parent",
            }


def test_program_that_is_no_python_is_not_started_to_ask_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may do anything with the words that a Python is given."""
    with subprocess.Popen(["sleep", "100"]) as process, monkeypatch.context() as patch:
        patch.setattr(attach.subprocess, "run", lambda *words, **_: pytest.fail(f"ran {words}"))
        try:
            with pytest.raises(UnsupportedInterpreterError, match="is not a Python that fairlead can ask"):
                attaching.begin(process.pid, "interactive", 0.1, None)
        finally:
            process.kill()


def test_program_that_ctl_switched_off_is_not_said_to_be_scheduled() -> None:
    with running(TURN) as process:
        scheduled(process.pid, 0.5)
        assert outside.send(process.pid, "off", wait_s=50).off
        ran = here("run", "--pid", process.pid, "--for", "500ms")
        assert (ran.returncode, ran.stdout) == (1, "")
        assert ran.stderr == (
            f"fairlead: process {process.pid}: fairlead ctl switched it off: fairlead ctl --pid {process.pid}"
            " interactive first\n"
        )
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.7)  # the time is over, which changes nothing
        assert "policy stock (switched off by fairlead ctl)," in status(process.pid)
