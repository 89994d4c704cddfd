"""``fairlead lab compare``."""

from __future__ import annotations

from pathlib import Path

import click

from fairlead.cli.lab import results
from fairlead.errors import RecordError, UsageError
from fairlead.record.results import runs_in


@click.command(short_help="Say where runs are faster or slower than the first.")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format", "form", type=click.Choice(results.FORMS), help="Default: by the name of FILE, else text."
)
@click.option(
    "-o", "--out", "file", type=click.Path(path_type=Path), metavar="FILE", help="Where to write it."
)
@click.option("--atlas", is_flag=True, help="A page with one picture a claim, of all machines: -o FILE.html.")
def compare(runs: tuple[Path, ...], form: str | None, file: Path | None, atlas: bool) -> None:
    """Say where runs are faster or slower than the first, and where nothing can be said.

    They may come from different machines or interpreters. A RUN is a run's directory, its file of samples,
    or a directory of several runs.
    """
    from fairlead.lab.analysis.compare import compare as compared

    paths = [run for path in runs for run in runs_in(path)]
    if len(paths) < 2:
        raise UsageError("one run has nothing to be compared with: name two or more")
    if atlas and (file is None or form not in (None, "html")):
        raise UsageError("--atlas is a page: say where to write it with -o FILE.html, without --format")
    read = [results.summary([path]) for path in paths]
    named = [(str(path), run) for path, (run, _) in zip(paths, read, strict=True)]
    if atlas:
        from fairlead.report.comparison import atlas as pictures

        assert file is not None
        results.write(file, pictures.render(named))
        click.echo(f"Atlas: {file}")
    else:
        results.deliver("comparison", compared(named), form, file)
    if problems := next((problem for _, problem in read if problem), None):
        raise RecordError(problems)
