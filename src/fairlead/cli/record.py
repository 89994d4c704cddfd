"""``fairlead record``."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlead.cli import words
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from fairlead.record.policies import Policy


@click.command(
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
    help="In waits longer than this, record the stacks of the waiting thread and of the holder.",
)
@click.option(
    "--policy",
    type=click.Choice(["interactive"]),
    help="Also schedule the program, as fairlead run does. [default: do not]",
)
@click.option(
    "--cpu-share",
    type=float,
    default=0.05,
    show_default=True,
    help="With --policy interactive: the least share of the GIL that computing threads keep.",
)
@click.option(
    "--children",
    is_flag=True,
    help="Record every Python that the program starts, too, each into FILE.PID. Forked children are always"
    " recorded.",
)
@click.option("--pid", type=int, help="Record a process that is already running (Python 3.14 and later).")
@click.option(
    "--duration",
    "duration_s",
    metavar="TIME",
    callback=words.duration,
    help="Record for so long; the program goes on. [default: to its end, with --pid until Ctrl-C]",
)
@click.option(
    "--max-size",
    "most_bytes",
    metavar="SIZE",
    default="200MB",
    show_default=True,
    callback=words.size,
    help="Record no more events once a file has that size; what is counted goes on to the end.",
)
@click.argument("command", metavar="-- COMMAND", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def record(
    context: click.Context,
    out: Path | None,
    threshold_s: float,
    policy: Policy | None,
    cpu_share: float,
    children: bool,
    pid: int | None,
    duration_s: float | None,
    most_bytes: int,
    command: tuple[str, ...],
) -> int:
    """Run a program and record which thread holds its GIL, which threads wait, and for which.

    COMMAND is run unchanged: "python app.py ARGS", "python -m module ARGS", or a script that a Python runs.
    A COMMAND without an interpreter ("app.py", "-m module") is run by the Python that runs fairlead. fairlead
    exits with the program's status, or dies by the signal that killed it.
    """
    from fairlead.gil.observe.programs import attach, every_loop, launch
    from fairlead.gil.observe.programs.meeting import give
    from fairlead.gil.schedule.launch import schedule_action

    if pid is not None and command:
        raise UsageError("--pid records a process that is already running: leave out the command")
    if pid is not None and policy is not None:
        raise UsageError("--policy is for a program that is started, and not for --pid")
    if pid is not None and children:
        raise UsageError("--children is for a program that is started, and not for --pid")
    share = words.share_for(context, policy, cpu_share)
    first = [*([schedule_action(policy, share)] if policy else []), every_loop.watch_action()]
    given = words.program(command, "record") if pid is None else [f"pid-{pid}"]
    target = launch.claim(out or Path(default_name(given)))
    older = _of_children(target)
    settings = launch.Settings(
        out=str(target),
        threshold_s=threshold_s,
        duration_s=duration_s if pid is None else None,
        most_bytes=most_bytes,
    )
    try:
        if pid is None:
            status = launch.run(given, settings, first=first, verb="record", children=children)
        else:
            give(pid, target)
            attach.record(pid, settings, duration_s=duration_s)
            status = 0
    finally:
        if target.exists() and not target.stat().st_size:
            target.unlink()
    click.echo(f"fairlead: {_told(target, _of_children(target).items() - older.items())}", err=True)
    return status


def _of_children(target: Path) -> dict[Path, int]:
    """The recordings of child processes beside this one, and when each was written last."""
    return {
        path: path.stat().st_mtime_ns for path in target.parent.glob(f"{glob.escape(target.name)}.[0-9]*")
    }


def _told(target: Path, of_children: Iterable[tuple[Path, int]]) -> str:
    files = [target, *sorted(path for path, _ in of_children)]
    size = sum(path.stat().st_size for path in files)
    said = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} kB"
    of = f" of {len(files)} processes" if len(files) > 1 else ""
    return f"recorded {said}{of}; to see it: fairlead report {target}"


def default_name(command: Sequence[str]) -> str:
    """From the program's name and the time, in the working directory."""
    words_ = [word for word in command[1:] if not word.startswith("-")] or [command[0]]
    stem = Path(words_[0]).name.removesuffix(".py")
    if not re.fullmatch(r"[\w.-]{1,40}", stem):  # code of -c, which is no name of a file
        stem = "program"
    return f"{stem}-{datetime.now():%Y%m%d-%H%M%S}.flrec"
