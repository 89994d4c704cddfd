"""``fairlead lab report``."""

from __future__ import annotations

from pathlib import Path

import click

from fairlead.cli.lab import results
from fairlead.errors import RecordError


@click.command(short_help="Show the results of runs together.")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@results.form("summary")
@results.verbose
@results.out
def report(runs: tuple[Path, ...], form: str | None, detail: int, file: Path | None) -> None:
    """Show the results of runs together: a RUN is a run's directory, its file of samples, or a directory of
    several runs."""
    summary, problems = results.summary(runs)
    results.deliver("summary", summary, form, file, detail=detail)
    if problems:
        raise RecordError(problems)
