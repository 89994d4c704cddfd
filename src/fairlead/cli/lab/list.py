"""``fairlead lab list``."""

from __future__ import annotations

import click

from fairlead.cli.table import table
from fairlead.lab import registry


@click.command("list", short_help="List the experiments.")
def list_() -> None:
    """List the experiments: what each asks, and what can be varied."""
    for experiment in registry.catalogue().values():
        click.echo(f"{experiment.id}  {experiment.subject.title}")
        click.echo(f"  {experiment.subject.question}")
        rows = [
            (name, "|".join(map(str, parameter.choices)), parameter.help)
            for name, parameter in experiment.parameters.items()
        ]
        rows.append(("runs on", f"Python {experiment.pythons}", ""))
        click.echo(table(rows, indent=4))
