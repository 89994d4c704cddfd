"""Records a program that runs already, or schedules it, through ``sys.remote_exec`` of Python 3.14 and later.

The target runs two small scripts of ours, between two bytecodes of its main thread: one that begins the
recording and, after a while, one that ends it. The call is made by the target's own executable, since both
sides must be of one version. A main thread that waits in C code (a join, a select) runs them when it comes
back; one that does not come back in time is asked to run nothing instead.

The target may be another user's: its executable is not run with root's rights then, unless it is root's.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import fairlead
from fairlead import machine
from fairlead.errors import FairleadError, InterpreterFailedError, UnsupportedInterpreterError, UsageError
from fairlead.gil.observe.programs.launch import Settings
from fairlead.gil.observe.programs.meeting import Meeting, give, meeting
from fairlead.gil.observe.programs.starting import is_python
from fairlead.gil.observe.programs.target import asked, ended, executable, owner, stopped

PATIENCE_S = 0.1
"""How long a Ctrl-C may go unnoticed."""
ANSWER_S = 10.0
"""How long the target's main thread may take to come round to a script."""
START_S = 10.0
"""How long an interpreter that only asks may take."""

_SEND = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])"
_VERSION = (
    "import sys, platform; print(platform.python_implementation(), *sys.version_info[:2], hasattr(sys,"
    " 'remote_exec'))"
)
_CALL = """\
import sys
said = ""
try:
    import _interpreters
    if _interpreters.get_current()[0] != _interpreters.get_main()[0]:
        said = (
            "the program has further interpreters, and Python asks the newest of them only: start it with"
            " fairlead record -- COMMAND (or top, or run)"
        )
    else:
        try:
            from {module} import {function} as call
        except ImportError:
            sys.path.append({path!r})
            try:
                from {module} import {function} as call
            finally:
                sys.path.remove({path!r})
except Exception as error:
    said = "the program cannot import fairlead (%s): install it there, or let its user read %s" % (
        error,
        {path!r},
    )
if not said:
    try:
        said = call({settings!a})
    except Exception as error:
        said = "%s: %s" % (type(error).__name__, error)
with open({ready!r}, "w") as file:
    file.write(said)
"""
_BEGIN = ("fairlead.gil.observe.programs.launched", "attach")
_DETACH = """\
from fairlead.gil.observe.programs.launched import detach
with open({done!r}, "w") as file:
    file.write(detach())
"""


def record(
    pid: int,
    settings: Settings,
    *,
    duration_s: float | None,
    tick: Callable[[], None] = lambda: None,
    every_s: float = 0.2,
    workers: bool = False,
) -> list[str]:
    """Record the process for so long, or until Ctrl-C or until it ends. ``tick`` is called about every
    ``every_s`` seconds meanwhile.

    With ``workers`` also those of its family that are there and run the same executable, each into a file
    named like a forked child's. Nothing waits for these: a worker whose main thread is in C code begins when
    that returns. Returns which of them were not recorded, and why, a line each.

    Raises:
        UsageError: there is no such process, or the kernel keeps us out of it.
        UnsupportedInterpreterError: it is no Python, or one that cannot be attached to; the message says
            what to do.
        InterpreterFailedError: it did not answer.
    """
    with meeting(pid) as directory, _lease(pid, directory) as lease:
        settings = replace(settings, lease=lease)
        others = _workers(pid) if workers else []
        call(pid, *_BEGIN, asdict(settings), directory)
        missed = []
        begun: list[tuple[int, Meeting]] = []
        for worker in others:
            own = directory.inner(str(worker))
            out = f"{settings.out}.{worker}"
            try:
                with turn(worker):
                    ask(worker, *_BEGIN, asdict(replace(settings, out=out)), own)
            except FairleadError as error:
                missed.append(str(error))
            else:
                begun.append((worker, own))
        if _wait(pid, duration_s, tick, every_s):
            with suppress(InterpreterFailedError):  # it ends when the lease does
                _end(pid, directory)
        for worker, own in begun:
            missed += _end_worker(worker, own)
        return missed


def _workers(pid: int) -> list[int]:
    program, workers = executable(pid), []
    for one in machine.family(pid)[1:]:
        with suppress(FairleadError):  # it has ended, or is none of our business
            if executable(one) == program:
                workers.append(one)
    return workers


@contextmanager
def _lease(pid: int, directory: Meeting) -> Iterator[str]:
    """A file that the process sees locked until we leave the block, or are killed. Then the process ends the
    recording, and so do the children that it has forked meanwhile."""
    file = os.open(directory.ours / "lease", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        give(pid, directory.ours / "lease")
        yield str(directory.shared / "lease")
    finally:
        os.close(file)


def _end(pid: int, directory: Meeting) -> None:
    done = give(pid, directory.ours / "done")
    script = _DETACH.format(done=str(directory.shared / "done"))
    with turn(pid):
        program = executable(pid)
        _run_there(pid, program, directory, "end.py", script)
        answered(Asked(pid, program, done), time.monotonic() + ANSWER_S)


def _end_worker(pid: int, directory: Meeting) -> list[str]:
    """What is to be told of it, if anything."""
    said = (directory.ours / "ready").read_text(encoding="utf-8")
    if not said and not ended(pid):
        return [f"process {pid} did not answer: its main thread is in C code that does not return"]
    if said != "ok":
        return [f"process {pid}: {said}"] if said else []
    with suppress(FairleadError):  # it has ended, or does so
        _end(pid, directory)
    return []


@contextmanager
def turn(pid: int) -> Iterator[None]:
    """One of us asks the process at a time: Python keeps the last request only.

    Raises: as ``record``.
    """
    place = asked(pid, lambda: os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    try:
        deadline = time.monotonic() + START_S + ANSWER_S
        while not _locked(place):
            if time.monotonic() > deadline:
                raise InterpreterFailedError(f"another fairlead asks process {pid} for something: try again")
            time.sleep(0.02)
        yield
    finally:
        os.close(place)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Asked(NamedTuple):
    """A process that is to call a function of ours when its main thread comes round to it."""

    pid: int
    program: str
    ready: Path
    """Into which it says how that went."""


def call(pid: int, module: str, function: str, settings: dict[str, Any], directory: Meeting) -> None:
    """Have the process call a function of ours with the settings; it returns "ok", or why not.

    Raises: as ``record``.
    """
    with turn(pid):
        answered(ask(pid, module, function, settings, directory), time.monotonic() + ANSWER_S)


def ask(pid: int, module: str, function: str, settings: dict[str, Any], directory: Meeting) -> Asked:
    """The first half of ``call``, in its ``turn``."""
    program = executable(pid)
    _check_version(pid, program)
    if stopped(pid):
        raise UsageError(
            f"process {pid} is stopped, by a signal or a debugger: have it continue first (kill -CONT {pid})"
        )
    script = _CALL.format(
        module=module,
        function=function,
        settings=settings,
        ready=str(directory.shared / "ready"),
        path=str(Path(fairlead.__file__).parents[1]),
    )
    ready = give(pid, directory.ours / "ready")
    _run_there(pid, program, directory, "begin.py", script)
    return Asked(pid, program, ready)


def answered(one: Asked, deadline: float) -> None:
    """The second half, until a time of ``time.monotonic``; at least one look is taken."""
    try:
        said = _answer(one.pid, one.ready, deadline)
    except InterpreterFailedError:
        with suppress(FairleadError):  # it has ended
            _send(one.pid, one.program, Path(os.devnull))  # takes the place of the script, which is removed
        raise
    if said != "ok":
        raise UnsupportedInterpreterError(f"process {one.pid}: {said}")


def _run_there(pid: int, program: str, directory: Meeting, name: str, script: str) -> None:
    file = directory.ours / name
    file.write_text(script, encoding="utf-8")
    file.chmod(0o644)
    _send(pid, program, directory.shared / name)


def _rights(pid: int, executable: str) -> dict[str, Any]:
    """The user as which its executable is run, for ``subprocess``: root runs no other user's program as
    root."""
    user, group = owner(pid)
    if os.geteuid() != 0 or user == 0 or os.stat(executable).st_uid == 0:  # noqa: PTH116
        return {}
    return {"user": user, "group": group, "extra_groups": []}


def _check_version(pid: int, executable: str) -> None:
    no_python = UnsupportedInterpreterError(
        f"process {pid} ({executable}) is not a Python that fairlead can ask"
    )
    if not is_python(executable):  # which may do anything when it is started
        raise no_python
    if not _same_file(f"/proc/{pid}/exe", executable):
        _check_there(pid)
        raise UnsupportedInterpreterError(
            f"process {pid} runs {executable}, which is another file here or none: it is in a container (do"
            " this in there), or its Python was replaced since it started (start it again)"
        )
    try:
        told = subprocess.run(
            [executable, "-I", "-S", "-c", _VERSION],
            capture_output=True,
            text=True,
            timeout=START_S,
            check=True,
            **_rights(pid, executable),
        ).stdout.split()
        implementation, major, minor, able = told
    except (OSError, subprocess.SubprocessError, ValueError):
        raise no_python from None
    if able != "True":
        raise UnsupportedInterpreterError(
            f"process {pid} runs {implementation} {major}.{minor}, which cannot be attached to (3.14 and"
            " later can): start it with fairlead record -- COMMAND (or top, or run), or call"
            " fairlead.gil.observe() or schedule() in its code"
        )


def _check_there(pid: int) -> None:
    if ended(pid):
        raise InterpreterFailedError(f"process {pid} ended")


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121
    except OSError:
        return False


def _send(pid: int, executable: str, script: Path) -> None:
    try:
        sent = subprocess.run(
            [executable, "-I", "-S", "-c", _SEND, str(pid), str(script)],
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
            **_rights(pid, executable),
        )
    except subprocess.TimeoutExpired:
        raise InterpreterFailedError(
            f"process {pid} could not be asked: {executable} did not start within {START_S:.0f} s; is the"
            " machine overloaded?"
        ) from None
    if sent.returncode:
        _check_there(pid)
        why = (sent.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise InterpreterFailedError(
            f"process {pid} cannot be attached to ({why}): you need the right to trace it (the same user, and"
            " kernel.yama.ptrace_scope 0 or CAP_SYS_PTRACE), and remote debugging must not be off in it"
        )


def _answer(pid: int, file: Path, deadline: float) -> str:
    while not (said := file.read_text(encoding="utf-8")):
        _check_there(pid)
        if time.monotonic() > deadline:
            raise InterpreterFailedError(
                f"process {pid} did not answer within {ANSWER_S:.0f} s: its main thread is in C code that"
                " does not return (a join, a select), or it has further interpreters; nothing was changed in"
                " it; try again while it has work to do (send it a request), or start it with fairlead run"
                " -- COMMAND (or record)"
            )
        time.sleep(0.02)
    return said


def _wait(pid: int, duration_s: float | None, tick: Callable[[], None], every_s: float) -> bool:
    """True when the time is over or Ctrl-C or SIGTERM came, False when the process has ended."""
    # what is ignored (Ctrl-C is in the background of a script) would come, too, if it were waited for
    ends = {one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) != signal.SIG_IGN}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    process = os.pidfd_open(pid)
    try:
        due = time.monotonic() + every_s
        deadline = None if duration_s is None else time.monotonic() + duration_s
        while deadline is None or time.monotonic() < deadline:
            if signal.sigtimedwait(ends, 0) is not None:
                return True
            left = PATIENCE_S if deadline is None else min(PATIENCE_S, max(0.0, deadline - time.monotonic()))
            if select.select([process], [], [], left)[0]:
                return False
            if time.monotonic() >= due:
                due = time.monotonic() + every_s
                tick()
        return True
    finally:
        os.close(process)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
