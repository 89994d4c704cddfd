"""``fairlead top``."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fairlead.cli import words
from fairlead.errors import RecordError, UsageError

if TYPE_CHECKING:
    from fairlead.gil.observe.programs.meeting import Meeting
    from fairlead.record.gil_summary import GilThread, LoopDelays
    from fairlead.record.recording import Frames

ROWS = 20
ROWS_OF_MANY = 5
"""Of each process where there are several."""
PROCESSES = 12


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "--every",
    "every_s",
    metavar="TIME",
    default="1s",
    show_default=True,
    callback=words.duration,
    help="Time between updates.",
)
@click.option("--pid", type=int, help="Watch a process that is already running (Python 3.14 and later).")
@click.argument("command", metavar="-- COMMAND", nargs=-1, type=click.UNPROCESSED)
def top(every_s: float, pid: int | None, command: tuple[str, ...]) -> int:
    """Run a program and watch its threads: which holds the GIL, which wait for it, and what that means.

    Updates each second: a live table in a terminal, plain snapshots elsewhere; if the program forks, a
    shorter table for each process, the busiest first. In a terminal the table has the screen for itself, and
    what the program writes there comes after its end. COMMAND is as for "fairlead record". Ctrl-C goes to the
    program, and fairlead exits with the program's status, or dies by the signal that killed it. With --pid,
    Ctrl-C ends the watching of the process and its workers, and they go on.
    """
    from fairlead.gil.observe.programs import attach, every_loop, launch

    if pid is not None and command:
        raise UsageError("--pid watches a process that is already running: leave out the command")
    given = words.program(command, "top") if pid is None else []
    with _directory(pid) as directory:
        path = directory.ours / "top.flrec"
        out = str(directory.shared / path.name)
        settings = launch.Settings(out=out, threshold_s=None, events=False, counters_s=every_s)
        missed: list[str] = []
        with _Screen() as screen:
            watch = SnapshotReader(path, screen.show)
            if pid is None:
                status = launch.run(
                    given,
                    settings,
                    first=[every_loop.watch_action()],
                    tick=watch.tick,
                    every_s=every_s,
                    aside=screen.aside,
                )
            else:
                missed = attach.record(
                    pid, settings, duration_s=None, tick=watch.tick, every_s=every_s, workers=True
                )
                status = 0
            watch.tick()
        for why in missed:
            click.echo(f"not watched: {why}", err=True)
        return status


@contextmanager
def _directory(pid: int | None) -> Iterator[Meeting]:
    """For the snapshots, which the watched processes write: root watches workers of any user."""
    from fairlead.gil.observe.programs.meeting import Meeting, meeting

    if pid is None:
        with tempfile.TemporaryDirectory(prefix="fairlead-") as name:
            yield Meeting(Path(name), Path(name))
        return
    with meeting(pid) as found:
        snapshots = found.inner("snapshots")
        if os.geteuid() == 0:
            snapshots.ours.chmod(0o1777)
        yield snapshots


class Section(NamedTuple):
    """What is shown of one process."""

    title: str
    table: list[tuple[str, ...]]
    remarks: list[str]


class SnapshotReader:
    """Reads the snapshots that the program and its forked children write, and shows what happened since the
    last ones: a section for each process that is there."""

    def __init__(self, path: Path, show: Callable[[list[Section]], None]) -> None:
        self.path = path
        self.show = show
        self.processes = {path: Process(path)}

    def tick(self) -> None:
        """Show the newest snapshots, if there are new ones."""
        for child in self.path.parent.glob(f"{self.path.name}.[0-9]*"):
            self.processes.setdefault(child, Process(child))
        if not sum(process.read() for process in self.processes.values()):
            return
        there = [process for process in self.processes.values() if process.path == self.path or process.alive]
        there.sort(key=lambda process: -process.busy)
        sections = [section for process in there if (section := process.section(several=len(there) > 1))]
        left = len(sections) - PROCESSES
        if left > 0:
            sections[PROCESSES - 1 :] = [Section(f"and {left + 1} further processes", [], [])]
        self.show(sections)


class Process:
    """One that writes snapshots, and what happened in it between the last two."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pid = 0
        self.threads: list[GilThread] = []
        self.counters: dict[str, Any] = {}
        self.lately: list[GilThread] = []
        self.t_ns = 0
        self.passed = 0.0
        self.title = ""
        self.remarks: list[str] = []
        self.loops: list[str] = []

    @property
    def busy(self) -> float:
        """How long its threads held the GIL, or waited for it, lately; of each second."""
        used = sum(thread.held_seconds + thread.waited_seconds for thread in self.lately)
        return used / self.passed if self.passed else 0.0

    @property
    def alive(self) -> bool:
        return Path(f"/proc/{self.pid}").exists()

    def read(self) -> bool:
        """Whether there is a new snapshot."""
        from fairlead.gil.analysis.rates import (
            between,
            parse_blame,
            parse_collections,
            parse_looks,
            parse_loops,
            parse_threads,
            rows_between,
        )
        from fairlead.judge.evidence import Evidence
        from fairlead.judge.verdict import judge
        from fairlead.judge.words import command_of
        from fairlead.record.policies import policy_name
        from fairlead.record.recording import Recording
        from fairlead.report.common import units

        try:
            recording = Recording(self.path)
        except RecordError:
            return False  # nothing is written yet
        counters = recording.counters()
        if counters is None or counters["t_ns"] <= self.t_ns:
            return False
        self.pid = recording.meta.pid
        self.passed = (counters["t_ns"] - (self.t_ns or recording.meta.start_ns)) / 1e9
        threads = parse_threads(counters)
        self.lately = between(self.threads, threads)
        before, frames = self.counters, recording.stacks()

        def grown(rows: str, keys: int, maxima: int = 0) -> list[list[int]]:
            return rows_between(before.get(rows, ()), counters.get(rows, ()), keys, maxima=maxima)

        def known(stack: int) -> Frames:
            return frames.get(stack, ())

        scheduler = counters.get("scheduler", {})
        policy = policy_name(scheduler.get("mode", 0))
        findings = judge(
            Evidence(
                threads=tuple(self.lately),
                wall_seconds=self.passed,
                switch_interval=scheduler.get("interval_ns", 0) / 1e9 or recording.meta.switch_interval_s,
                blame=tuple(parse_blame(grown("blame", 3))),
                collections=tuple(parse_collections(grown("collections", 3, 1), known)),
                looks=tuple(parse_looks(grown("looks", 3), known)),
                policy=policy,
                command=command_of(recording.meta.argv),
            )
        )
        since = (counters["t_ns"] - recording.meta.start_ns) / 1e9
        self.threads, self.counters, self.t_ns = threads, counters, counters["t_ns"]
        held = _percent(sum(thread.held_seconds for thread in self.lately), self.passed)
        self.title = f"{since:.1f} s, {policy}, GIL held {held}"
        self.remarks = [f"{finding.kind}: {finding.title}" for finding in findings[:2]]
        loops, callbacks = parse_loops(counters)
        self.loops = [_late(loop) for loop in loops]
        self.loops += [f"callback {name}: {units.seconds(s)} in all" for name, s in callbacks[:2]]
        return True

    def section(self, *, several: bool) -> Section | None:
        """Shorter, and with its number, where there are others; None before its first snapshot."""
        if not self.title:
            return None
        if not several:
            return Section(self.title, rows(self.lately, self.passed, ROWS), self.remarks + self.loops)
        title = f"pid {self.pid}: {self.title}"
        table = rows(self.lately, self.passed, ROWS_OF_MANY)
        return Section(title, table, self.remarks[:1] + self.loops)


def rows(threads: list[GilThread], seconds: float, most: int) -> list[tuple[str, ...]]:
    """The table's lines, the head first."""
    from fairlead.report.common import names, units

    head = ("thread", "held", "off CPU", "waited", "turns/s", "waits/s", "forced/s", "longest wait")
    return [
        head,
        *(
            (
                names.shorten(names.clean(thread.name), 28),
                _percent(thread.held_seconds, seconds),
                _percent(thread.held_off_cpu_seconds, seconds),
                _percent(thread.waited_seconds, seconds),
                units.count(thread.acquisitions / seconds),
                units.count(thread.contended / seconds),
                units.count(thread.forced_drops / seconds),
                units.seconds(thread.max_wait_seconds),
            )
            for thread in threads[:most]
        ),
    ]


def _late(loop: LoopDelays) -> str:
    """An event loop since its watch began."""
    from fairlead.report.common import units

    parts = (
        f"own callbacks {units.seconds(loop.own_seconds)}",
        f"GIL {units.seconds(loop.gil_seconds)}",
        f"no core {units.seconds(loop.core_seconds)}",
    )
    overdue = f"; overdue for {units.seconds(loop.overdue_seconds)}" if loop.overdue_seconds else ""
    return f"event loop {loop.name}: {loop.late} of {loop.beats} callbacks late ({', '.join(parts)}){overdue}"


def _percent(part: float | None, whole: float) -> str:
    return f"{part / whole * 100:.0f} %" if part is not None and whole > 0 else "-"


class _Screen:
    """Shows sections: on a screen of their own in a terminal, line by line elsewhere.

    Attributes:
        aside: the file (a descriptor) of what the program writes meanwhile, which is shown in the end; None:
            that need not be kept.
        show: the function.
    """

    def __enter__(self) -> _Screen:
        self.aside: int | None = None
        self.show: Callable[[list[Section]], None] = _plain
        self.live: Any = None
        self.last: list[Section] = []
        if sys.stdout.isatty():
            from fairlead.report.common.extra import needed_for

            with needed_for("the live table"):
                from rich.live import Live
            self.kept = tempfile.TemporaryFile()
            self.aside = self.kept.fileno()
            self.show = self._rich
            self.live = Live(auto_refresh=False, screen=True)
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is None:
            return
        self.live.stop()
        width = self.live.console.width
        _plain([one._replace(table=_fitting(one.table, width)) if one.table else one for one in self.last])
        self.kept.seek(0)
        with self.kept:
            shutil.copyfileobj(self.kept, sys.stdout.buffer)
        sys.stdout.flush()

    def _rich(self, sections: list[Section]) -> None:
        from rich.console import Group
        from rich.text import Text

        self.last = sections
        parts: list[Any] = []
        for title, table, remarks in sections:
            parts += [self._drawn(title, table) if table else Text(title), *map(Text, remarks)]
        self.live.update(Group(*parts), refresh=True)

    def _drawn(self, title: str, table: list[tuple[str, ...]]) -> Any:
        from rich.table import Table
        from rich.text import Text

        drawn = Table(title=title, title_justify="left")
        head, *lines = _fitting(table, self.live.console.width)
        for number, heading in enumerate(head):
            drawn.add_column(heading, justify="right" if number else "left")
        for row in lines:
            drawn.add_row(*(Text(cell) for cell in row))
        return drawn


def _fitting(table: list[tuple[str, ...]], width: int) -> list[tuple[str, ...]]:
    """Without the columns that one can do without, as far as there is no room for them."""
    kept = list(range(len(table[0])))
    for least in ("forced/s", "waits/s", "turns/s", "off CPU"):
        if sum(max(len(row[at]) for row in table) + 3 for at in kept) < width:
            break
        kept.remove(table[0].index(least))
    return [tuple(row[at] for at in kept) for row in table]


def _plain(sections: list[Section]) -> None:
    from fairlead.cli.table import table as aligned

    for title, table, remarks in sections:
        lines = [title, *([aligned(table)] if table else []), *(f"  {remark}" for remark in remarks)]
        click.echo("\n".join(lines))
    sys.stdout.flush()
