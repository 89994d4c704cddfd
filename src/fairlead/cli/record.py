"""``fairlead record``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import click

from fairlead.cli import words
from fairlead.errors import UsageError


@click.command(
    short_help="Run a program and record its GIL.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The recording. [default: PROGRAM-TIME.flrec]",
)
@click.option(
    "--threshold",
    "threshold_s",
    metavar="TIME",
    default="1ms",
    show_default=True,
    callback=words.duration,
    help="Record what both were doing in waits longer than this.",
)
@click.option("--pid", type=int, help="Record a process that runs already (Python 3.14 and later).")
@click.option(
    "--duration",
    "duration_s",
    metavar="TIME",
    callback=words.duration,
    help="With --pid: for how long. [default: until Ctrl-C]",
)
@click.argument("command", metavar="-- COMMAND", nargs=-1, type=click.UNPROCESSED)
def record(
    out: Path | None, threshold_s: float, pid: int | None, duration_s: float | None, command: tuple[str, ...]
) -> int:
    """Run a program and record who holds its GIL, who waits, and who blocked whom.

    COMMAND is run as it is: "python app.py ARGS", "python -m module ARGS", or a script that a Python runs.
    Without an interpreter ("app.py", "-m module") the one that runs fairlead is taken. Its exit status is
    passed on.
    """
    from fairlead.gil.observe import attach, launch

    if pid is not None and command:
        raise UsageError("--pid records a process that runs already: leave out the command")
    if pid is None and duration_s is not None:
        raise UsageError("--duration goes with --pid; a program that is started is recorded to its end")
    given = program(command) if pid is None else [f"pid-{pid}"]
    target = launch.claim(out or Path(default_name(given)))
    settings = launch.Settings(out=str(target), threshold_s=threshold_s)
    try:
        if pid is None:
            status = launch.run(given, settings)
        else:
            attach.record(pid, settings, duration_s=duration_s)
            status = 0
    finally:
        if target.exists() and not target.stat().st_size:
            target.unlink()
    size = target.stat().st_size / 1e6
    click.echo(f"fairlead: recorded {size:.1f} MB; to see it: fairlead report {target}", err=True)
    return status


def program(command: Sequence[str]) -> list[str]:
    """The command with its interpreter.

    Raises:
        UsageError: there is none.
    """
    if not command:
        raise UsageError("name the program after --: fairlead record -- python app.py")
    if command[0].startswith("-") or command[0].endswith(".py"):
        return [sys.executable, *command]
    return list(command)


def default_name(command: Sequence[str]) -> str:
    """From the program's name and the time, in the working directory."""
    words_ = [word for word in command[1:] if not word.startswith("-")] or [command[0]]
    stem = Path(words_[0]).name.removesuffix(".py") or "program"
    return f"{stem}-{datetime.now():%Y%m%d-%H%M%S}.flrec"
