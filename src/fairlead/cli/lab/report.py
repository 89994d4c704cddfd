"""``fairlead lab report``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from fairlead.cli.lab import results
from fairlead.errors import RecordError

_FORMS = ("text", "html", "json", "csv")


@click.command(short_help="Show the results of runs together.")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(_FORMS), help="Default: by the name of FILE, else text.")
@click.option("-o", "file", type=click.Path(path_type=Path), metavar="FILE", help="Where to write it.")
def report(runs: tuple[Path, ...], form: str | None, file: Path | None) -> None:
    """Show the results of runs together: a RUN is a run's directory or its file of samples."""
    summary, problems = results.summary(runs)
    if form is None:
        ending = file.suffix.removeprefix(".") if file else ""
        form = ending if ending in _FORMS else "text"
    if form == "text":
        from fairlead.report import text

        content = text.render(summary, **(results.terminal() if file is None else {}))
    else:
        content = import_module(f"fairlead.report.{form}").render(summary)
    if file is None:
        click.echo(content, nl=not content.endswith("\n"))
    else:
        results.write(file, content)
    if problems:
        raise RecordError(problems)
