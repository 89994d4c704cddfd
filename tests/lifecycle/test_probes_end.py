"""A probe always ends: with a result, with a reason, or by its own alarm; so does everything it forked."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import textwrap
from pathlib import Path

import pytest
from interpreters import here
from waiting import PATIENCE_S

from fairlead.lab.catalogue import registry
from fairlead.lab.catalogue.interpreters import Interpreter, contrast

CONTRAST = contrast(here())

pytestmark = [
    pytest.mark.once,
    pytest.mark.parametrize(
        "interpreter",
        # make test has the one that runs it and the oldest, as in tests/interp/test_experiments.py
        [
            i if i in (CONTRAST[0], CONTRAST[-1]) else pytest.param(i, marks=pytest.mark.long)
            for i in CONTRAST
        ],
        ids=lambda i: i.name,
    ),
]


def run(interpreter: Interpreter, tmp_path: Path, body: str, timeout_s: float = 30) -> tuple[int, str]:
    """Run ``measure(params)`` with this body as a probe in a session of its own: its exit status and output.

    Nobody ends it from outside. Fails if any of its session is left once all have let go of the output.
    """
    path = tmp_path / "program.py"
    path.write_text(
        "from __future__ import print_function\n"
        "import os, sys, threading, time, signal\n"
        "import probe\n"
        "def measure(params):\n" + textwrap.indent(body, "    ") + "\n"
        "probe.main({'parameters': {}, 'timeout_s': 1}, measure)\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment.update(PYTHONPATH=str(registry.DIRECTORY), PYTHONDONTWRITEBYTECODE="1")
    with subprocess.Popen(
        [interpreter.path, str(path), json.dumps({"n": 3, "timeout_s": timeout_s})],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        said, _ = process.communicate()
    assert [pid for pid in members(process.pid) if not ends(pid)] == []
    return process.returncode, said


def ends(pid: int) -> bool:
    """Whether a process that has closed its files comes to its end, as it should at once."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([pidfd], [], [], PATIENCE_S)[0])
    finally:
        os.close(pidfd)


def members(session: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _parent, _group, its_session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_session) == session and state not in "ZX":
            found.append(int(entry.name))
    return found


FORKS = """
with probe.Family(params["timeout_s"]) as family:
    for index in range(3):
        family.fork(body, index)
    family.wait()
"""
FAILURES = {
    "a thread raises though others wait for ever": (
        """
lock = threading.Lock()
lock.acquire()
def body(index):
    if index == 2:
        raise ValueError("no more")
    lock.acquire()
for thread in probe.start(3, body):
    thread.join()
""",
        "in a thread: ValueError: no more (program.py:",
    ),
    "several threads raise": (
        """
def body(index):
    raise ValueError("thread %d" % index)
for thread in probe.start(20, body):
    thread.join()
""",
        "in a thread: ValueError: thread ",
    ),
    "it raises": ("{}['absent']", "KeyError: 'absent' (program.py:"),
    "a child raises": (
        f"""
def body(index):
    if index == 1:
        raise ValueError("not me")
    signal.pause()
{FORKS}""",
        "in a process: ValueError: not me (program.py:",
    ),
    "a child is killed": (
        f"""
def body(index):
    if index == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()
{FORKS}""",
        "a process was ended by signal 9",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_probe_that_fails_says_why_in_one_line_and_ends_what_it_started(
    interpreter: Interpreter, tmp_path: Path, case: str
) -> None:
    body, reason = FAILURES[case]
    code, said = run(interpreter, tmp_path, body)
    answer = json.loads(said)
    assert (code, list(answer)) == (0, ["failed"])
    assert answer["failed"].startswith(reason)


def test_probe_that_fails_before_it_waits_leaves_no_child(interpreter: Interpreter, tmp_path: Path) -> None:
    body = FORKS.replace("body", "lambda index: signal.pause()").replace(
        "family.wait()", 'raise probe.Skipped("thought better of it")'
    )
    assert run(interpreter, tmp_path, body) == (0, '{"skipped": "thought better of it"}\n')


@pytest.mark.parametrize("hang", ["signal.pause()", "while True: pass"])
def test_alarm_ends_a_hung_probe_and_the_children_it_can_no_longer_kill(
    interpreter: Interpreter, tmp_path: Path, hang: str
) -> None:
    # its own alarm ends the parent, or it sees the first of its children end by theirs
    body = f"def body(index):\n    {hang}\n{FORKS}"
    code, said = run(interpreter, tmp_path, body, timeout_s=1)
    assert code == -signal.SIGALRM or json.loads(said) == {"failed": "a process was ended by signal 14"}


def test_alarm_of_the_children_needs_no_parent(interpreter: Interpreter, tmp_path: Path) -> None:
    body = FORKS.replace("body", "lambda index: signal.pause()").replace(
        "family.wait()", "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert run(interpreter, tmp_path, body, timeout_s=1) == (-signal.SIGKILL, "")


def test_processor_time_and_memory_of_children_are_counted(interpreter: Interpreter, tmp_path: Path) -> None:
    body = f"""
def body(index):
    held = bytearray(8 << 20)
    while sum(probe.Usage.mine().values[:2]) < 0.05:
        pass
    del held
{FORKS}
return {{"cpu_s": sum(family.usage.values[:2]), "peaks_kb": family.peaks_kb}}
"""
    code, said = run(interpreter, tmp_path, body)
    answer = json.loads(said)
    assert code == 0
    assert answer["cpu_s"] >= 3 * 0.05
    parent, *children = answer["peaks_kb"]
    assert len(children) == 3
    assert min(children) > 8 << 10
    assert parent > 1000
