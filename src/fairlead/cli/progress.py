"""Showing where a run stands, on standard error: a bar in a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from fairlead.lab.run.runner import RunProgress

_EVERY_S = 5.0


@contextmanager
def shown(things: str = "samples") -> Iterator[Callable[[RunProgress], None]]:
    """A function to be called with every step; leaving the block removes what it has shown."""
    if not sys.stderr.isatty():
        yield _Lines(things)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
    # a refreshing thread of its own would run beside the samples, and beside the forks
    with Bar(*columns, console=Console(stderr=True), auto_refresh=False, transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(progress: RunProgress) -> None:
            if progress.said:
                bar.console.print(progress.said, highlight=False, markup=False)
                return
            total = progress.used_s + progress.left_s
            bar.update(
                task,
                completed=progress.used_s,
                total=total,
                description=_words(progress, things),
                refresh=True,
            )

        yield show


class Machines:
    """Of several machines at once: lines, each with whose it is."""

    def __init__(self) -> None:
        self._lines: dict[str, _Lines] = {}

    def __call__(self, machine: str, progress: RunProgress) -> None:
        self._lines.setdefault(machine, _Lines("samples", f"{machine}: "))(progress)


class _Lines:
    """A line at once, and then one every few seconds."""

    def __init__(self, things: str, begin: str = "") -> None:
        self._things = things
        self._begin = begin
        self._next_s = 0.0

    def __call__(self, progress: RunProgress) -> None:
        if progress.said:
            click.echo(f"{self._begin}{progress.said}", err=True)
        elif time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _EVERY_S
            click.echo(f"{self._begin}{_words(progress, self._things)}", err=True)


def _words(progress: RunProgress, things: str) -> str:
    if progress.to_come:
        count = f"{progress.done} of about {progress.done + progress.to_come} {things}"
    else:
        count = f"{progress.done} {things}, calibrating"
    minutes, seconds = divmod(round(progress.left_s), 60)
    left = f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"
    return f"{count}, {left} left: {progress.doing}"
