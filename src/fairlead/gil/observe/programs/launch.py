"""Starts a program with a recording in it, and stays out of its way: signals, terminal and exit status are
the program's.

The recording begins in the program before its first line (``starting.py``). It tells through a file whether
it did: a program that cannot be recorded is not run for nothing.

Signals: what the terminal sends goes to the whole foreground group, hence to the program too, and is not
sent a second time; what another process sends us is passed on. Which it was the kernel says (si_code).
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fairlead.errors import OutputError, UnsupportedInterpreterError, UsageError
from fairlead.gil.observe.programs import starting
from fairlead.gil.observe.programs.starting import Action, Command
from fairlead.record.recording import MAGIC

PASSED_ON = {
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
}
_WATCHED = PASSED_ON | {signal.SIGCHLD}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to record; passed to the program as JSON."""

    out: str
    """Absolute path of the recording."""
    threshold_s: float | None
    """Waits longer than this have their stacks recorded; None: none has."""
    events: bool = True
    """Record every event; False: only snapshots of the counters."""
    counters_s: float = 1.0
    """Seconds between two snapshots of the counters."""
    duration_s: float | None = None
    """For how long; None: to the program's end."""
    most_bytes: int = 0
    """A file of this size gets no more events; 0: it may be of any size."""
    ready: str = ""
    """The file in which the program says that recording began, or why it did not."""
    lease: str = ""
    """Of a process that is recorded from outside: a file that is locked while the recording is to go on."""


def claim(out: Path) -> Path:
    """Make sure that a recording can be written there, before anything is started. Leaves an empty file.

    Raises:
        OutputError: it cannot, or what is there is no recording and would be lost.
    """
    if out.exists() and not out.is_file() and not out.is_dir():
        raise OutputError(f"{out} is a device or a pipe, not a file: name another one with -o")
    try:
        with out.open("ab") as file:
            size = file.tell()
        if size:
            with out.open("rb") as file:
                if file.read(len(MAGIC)) != MAGIC:
                    raise OutputError(f"{out} exists and is not a recording: name another file with -o")
            out.write_bytes(b"")
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{out} cannot be written: {error.strerror}; name another file with -o") from error
    return out.resolve()


def run(
    command: Sequence[str],
    settings: Settings,
    *,
    first: Sequence[Action] = (),
    verb: str | None = None,
    children: bool = False,
    tick: Callable[[], None] | None = None,
    every_s: float = 1.0,
    aside: int | None = None,
) -> int:
    """Run the command to its end and return its exit status (minus the number of the signal that killed it).

    ``first`` is done in the program before it is recorded; with ``children`` every Python that it starts is
    recorded too, into a file of its own; ``verb`` names the command for what the program says of those that
    are not. ``tick`` is called about every ``every_s`` seconds while it runs. What it would write to the
    terminal goes into the file ``aside`` (a descriptor). Call it from the main thread.

    Raises:
        UsageError: the command cannot be started.
        UnsupportedInterpreterError: it ran, or would have run, without being recorded; the message says why.
    """
    found = starting.read(command)
    if why := found.refusal(verb or "top", children=children):
        raise UnsupportedInterpreterError(why)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    try:
        with tempfile.TemporaryDirectory(prefix="fairlead-") as directory:
            ready = Path(directory) / "ready"
            recording = Action(
                "fairlead.gil.observe.programs.launched", asdict(settings) | {"ready": str(ready)}
            )
            environment = starting.environment(
                *first, recording, base=found.environment, verb=verb, ready=str(ready), children=children
            )
            pid = _start(found, environment, before, aside)
            status = _wait(pid, tick, every_s)
            said = ready.read_text(encoding="utf-8") if ready.exists() else None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if said is None:
        raise UnsupportedInterpreterError(
            f"{command[0]} ended with status {status} and was not recorded: it started no Python, or one that"
            " ignores PYTHONPATH (options -E, -I, -S) or was given another; name the Python: python app.py"
        )
    if said != "ok":
        raise UnsupportedInterpreterError(said)
    return status


def _start(
    command: Command, environment: dict[str, str], mask: set[signal.Signals | int], aside: int | None
) -> int:
    ours = [] if aside is None else [output for output in (1, 2) if os.isatty(output)]
    try:
        return os.posix_spawn(
            command.file,
            command.words,
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, aside, output) for output in ours],
            setsigmask=mask,
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )
    except OSError as error:
        raise UsageError(f"{command.words[0]} cannot be started: {error.strerror}") from error


def _wait(pid: int, tick: Callable[[], None] | None, every_s: float) -> int:
    due = time.monotonic() + every_s
    while True:
        if tick is None:
            came = signal.sigwaitinfo(_WATCHED)
        else:
            left = signal.sigtimedwait(_WATCHED, max(0.0, due - time.monotonic()))
            if left is None:
                due = time.monotonic() + every_s
                tick()
                continue
            came = left
        if came.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
        elif came.si_code <= 0:
            os.kill(pid, came.si_signo)
