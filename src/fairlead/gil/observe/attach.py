"""Records a program that runs already, or schedules it, through ``sys.remote_exec`` of Python 3.14 and later.

The target runs two small scripts of ours, between two bytecodes of its main thread: one that begins the
recording and, after a while, one that ends it. The call is made by the target's own executable, since both
sides must be of one version. A main thread that waits in C code (a join, a select) runs them when it comes
back.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import fairlead
from fairlead.errors import InterpreterFailedError, UnsupportedInterpreterError
from fairlead.gil.observe.launch import Settings
from fairlead.gil.observe.target import executable

PATIENCE_S = 0.1
"""How long a Ctrl-C may go unnoticed."""
ANSWER_S = 10.0
"""How long the target's main thread may take to come round to a script."""

_SEND = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])"
_VERSION = (
    "import sys, platform; print(platform.python_implementation(), *sys.version_info[:2], hasattr(sys,"
    " 'remote_exec'))"
)
_CALL = """\
import sys
try:
    from {module} import {function} as call
except ImportError:
    sys.path.append({path!r})
    try:
        from {module} import {function} as call
    except ImportError as error:
        with open({ready!r}, "w") as file:
            file.write("the program has no fairlead (%s): install it there" % error)
        call = None
    finally:
        sys.path.remove({path!r})
if call is not None:
    call({settings!r})
"""
_END = """\
from fairlead.gil.observe.launched import detach
detach({done!r})
"""


def record(
    pid: int,
    settings: Settings,
    *,
    duration_s: float | None,
    tick: Callable[[], None] = lambda: None,
    every_s: float = 0.2,
) -> None:
    """Record the process for so long, or until Ctrl-C or until it ends. ``tick`` is called about every
    ``every_s`` seconds meanwhile.

    Raises:
        UsageError: there is no such process, or the kernel keeps us out of it.
        UnsupportedInterpreterError: it is no Python, or one that cannot be attached to; the message says
            what to do.
        InterpreterFailedError: it did not answer.
    """
    with tempfile.TemporaryDirectory(prefix="fairlead-") as directory:
        os.chmod(directory, 0o755)  # noqa: PTH101 - the target may run as another user
        done = Path(directory) / "done"
        call(pid, "fairlead.gil.observe.launched", "attach", asdict(settings), Path(directory))
        end = Path(directory) / "end.py"
        end.write_text(_END.format(done=str(done)))
        if _wait(pid, duration_s, tick, every_s):
            _send(pid, executable(pid), end)
            _answer(pid, done)


def call(pid: int, module: str, function: str, settings: dict[str, Any], directory: Path) -> None:
    """Have the process call a function of ours with the settings, as JSON, and ``ready`` among them: the file
    into which it says "ok", or why not.

    Raises: as ``record``.
    """
    program = executable(pid)
    _check_version(pid, program)
    ready, script = directory / "ready", directory / "begin.py"
    script.write_text(
        _CALL.format(
            module=module,
            function=function,
            settings=json.dumps(settings | {"ready": str(ready)}),
            ready=str(ready),
            path=str(Path(fairlead.__file__).parents[1]),
        )
    )
    _send(pid, program, script)
    said = _answer(pid, ready)
    if said != "ok":
        raise UnsupportedInterpreterError(f"process {pid}: {said}")


def _check_version(pid: int, executable: str) -> None:
    try:
        told = subprocess.run(
            [executable, "-I", "-S", "-c", _VERSION],
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            check=True,
        ).stdout.split()
        implementation, major, minor, able = told
    except (OSError, subprocess.SubprocessError, ValueError):
        raise UnsupportedInterpreterError(
            f"process {pid} ({executable}) is no Python that could be asked"
        ) from None
    if able != "True":
        raise UnsupportedInterpreterError(
            f"process {pid} runs {implementation} {major}.{minor}, which cannot be attached to (3.14 and"
            " later can): start it with fairlead record -- COMMAND (or top, or run), or call"
            " fairlead.gil.observe() or schedule() in its code"
        )


def _send(pid: int, executable: str, script: Path) -> None:
    sent = subprocess.run(
        [executable, "-I", "-S", "-c", _SEND, str(pid), str(script)],
        capture_output=True,
        text=True,
        timeout=ANSWER_S,
        check=False,
    )
    if sent.returncode:
        why = (sent.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise InterpreterFailedError(
            f"process {pid} cannot be attached to ({why}): it takes the right to trace it (the same user, and"
            " kernel.yama.ptrace_scope 0 or CAP_SYS_PTRACE), and remote debugging not switched off in it"
        )


def _answer(pid: int, file: Path) -> str:
    deadline = time.monotonic() + ANSWER_S
    while time.monotonic() < deadline:
        if file.exists() and (said := file.read_text(encoding="utf-8")):
            return said
        if not Path(f"/proc/{pid}").exists():
            raise InterpreterFailedError(f"process {pid} ended")
        time.sleep(0.02)
    raise InterpreterFailedError(
        f"process {pid} did not answer within {ANSWER_S:.0f} s: its main thread is in C code that does not"
        " return (a join, a select); what was asked for begins when it does"
    )


def _wait(pid: int, duration_s: float | None, tick: Callable[[], None], every_s: float) -> bool:
    """True when the time is over or Ctrl-C came, False when the process has ended."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    process = os.pidfd_open(pid)
    try:
        due = time.monotonic() + every_s
        deadline = None if duration_s is None else time.monotonic() + duration_s
        while deadline is None or time.monotonic() < deadline:
            if signal.sigtimedwait({signal.SIGINT, signal.SIGTERM}, 0) is not None:
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
