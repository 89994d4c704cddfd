"""``fairlead top``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli import words
from fairlead.errors import RecordError

if TYPE_CHECKING:
    from fairlead.record.gil_summary import GilThread

ROWS = 20


@click.command(
    short_help="Run a program and watch its GIL live.",
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
@click.argument("command", metavar="-- COMMAND", nargs=-1, type=click.UNPROCESSED)
def top(every_s: float, command: tuple[str, ...]) -> int:
    """Run a program and watch its threads: who holds the GIL, who waits for it, and what that means.

    Updates each second: a live table in a terminal, plain snapshots elsewhere. COMMAND is as for "fairlead
    record"; Ctrl-C goes to the program. Its exit status is passed on.
    """
    from fairlead.gil.observe import launch

    given = words.program(command, "top")
    with tempfile.TemporaryDirectory(prefix="fairlead-") as directory:
        path = Path(directory) / "top.flrec"
        settings = launch.Settings(out=str(path), threshold_s=None, events=False, counters_s=every_s)
        with _Screen() as show:
            watch = Watch(path, show)
            status = launch.run(given, settings, tick=watch.tick, every_s=every_s)
            watch.tick()
        return status


class Watch:
    """Reads the snapshots that the program writes, and shows what happened since the last one."""

    def __init__(self, path: Path, show: Any) -> None:
        self.path = path
        self.show = show
        self.threads: list[GilThread] = []
        self.t_ns = 0

    def tick(self) -> None:
        """Show the newest snapshot, if there is a new one."""
        from fairlead.gil.observe.findings import find
        from fairlead.gil.observe.rates import between, parse
        from fairlead.record.policies import name_of
        from fairlead.record.recording import Recording

        try:
            recording = Recording(self.path)
        except RecordError:
            return  # nothing is written yet
        counters = recording.counters()
        if counters is None or counters["t_ns"] <= self.t_ns:
            return
        passed = (counters["t_ns"] - (self.t_ns or recording.meta.start_ns)) / 1e9
        threads, _ = parse(counters)
        lately = between(self.threads, threads)
        policy = name_of(counters.get("scheduler", {}).get("mode", 0))
        interval = recording.meta.switch_interval_s
        findings = find(lately, wall_seconds=passed, switch_interval=interval, policy=policy)
        since = (counters["t_ns"] - recording.meta.start_ns) / 1e9
        self.threads, self.t_ns = threads, counters["t_ns"]
        held = _percent(sum(thread.held_seconds for thread in lately), passed)
        remarks = [f"{finding.kind}: {finding.title}" for finding in findings[:2]]
        self.show(f"{since:.1f} s, {policy}, GIL held {held}", rows(lately, passed), remarks)


def rows(threads: list[GilThread], seconds: float) -> list[tuple[str, ...]]:
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
            for thread in threads[:ROWS]
        ),
    ]


def _percent(part: float | None, whole: float) -> str:
    return f"{part / whole:.0%}" if part is not None and whole > 0 else "-"


class _Screen:
    """Gives a function that shows (title, table, remarks): live in a terminal, line by line elsewhere."""

    def __enter__(self) -> Any:
        self.live: Any = None
        if not sys.stdout.isatty():
            return _plain
        from fairlead.report.common.extra import needed_for

        with needed_for("the live table"):
            from rich.live import Live
        self.live = Live(auto_refresh=False)
        self.live.start()
        return self._rich

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def _rich(self, title: str, table: list[tuple[str, ...]], remarks: list[str]) -> None:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        drawn = Table(title=title, title_justify="left")
        head, *lines = _fitting(table, self.live.console.width)
        for number, heading in enumerate(head):
            drawn.add_column(heading, justify="right" if number else "left")
        for row in lines:
            drawn.add_row(*(Text(cell) for cell in row))
        self.live.update(Group(drawn, *(Text(remark) for remark in remarks)), refresh=True)


def _fitting(table: list[tuple[str, ...]], width: int) -> list[tuple[str, ...]]:
    """Without the columns that one can do without, as far as there is no room for them."""
    kept = list(range(len(table[0])))
    for least in ("forced/s", "waits/s", "turns/s", "off CPU"):
        if sum(max(len(row[at]) for row in table) + 3 for at in kept) < width:
            break
        kept.remove(table[0].index(least))
    return [tuple(row[at] for at in kept) for row in table]


def _plain(title: str, table: list[tuple[str, ...]], remarks: list[str]) -> None:
    from fairlead.cli.table import table as aligned

    click.echo("\n".join([title, aligned(table), *(f"  {remark}" for remark in remarks)]))
    sys.stdout.flush()
