"""``fairlead lab compare``."""

from __future__ import annotations

from pathlib import Path

import click

from fairlead.cli.lab import results
from fairlead.errors import RecordError, UsageError
from fairlead.record.results import runs_in


@click.command(short_help="Say where runs are faster or slower than the first.")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@results.form("comparison")
@results.out
def compare(runs: tuple[Path, ...], form: str | None, file: Path | None) -> None:
    """Say where runs are faster or slower than the first, and where nothing can be said.

    They may come from different machines or interpreters. A RUN is a run's directory, its file of samples,
    or a directory of several runs.
    """
    from fairlead.lab.analysis.compare import compare as compared

    paths = [run for path in runs for run in runs_in(path)]
    if len(paths) < 2:
        raise UsageError("one run has nothing to be compared with: name two or more")
    read = [results.summary([path]) for path in paths]
    named = [(str(path), run) for path, (run, _) in zip(paths, read, strict=True)]
    results.deliver("comparison", compared(named), form, file)
    if problems := next((problem for _, problem in read if problem), None):
        raise RecordError(problems)
