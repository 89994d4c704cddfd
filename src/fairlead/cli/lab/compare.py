"""``fairlead lab compare``."""

from __future__ import annotations

from pathlib import Path

import click

from fairlead.cli.lab import results
from fairlead.errors import RecordError


@click.command(short_help="Say where one run is faster or slower than another.")
@click.argument("base", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("other", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Default: text.")
def compare(base: Path, other: Path, form: str) -> None:
    """Say where the second run is faster or slower than the first, and where nothing can be said."""
    from fairlead.lab.compare import compare as compared
    from fairlead.report import json, text

    (a, problems_a), (b, problems_b) = results.summary([base]), results.summary([other])
    comparison = compared(a, b)
    if form == "json":
        content = json.render_comparison(comparison)
    else:
        content = text.render_comparison(comparison, **results.terminal())
    click.echo(content, nl=False)
    if problems := problems_a or problems_b:
        raise RecordError(problems)
