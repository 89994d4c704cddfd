"""``fairlead lab list``."""

from __future__ import annotations

import json

import click

from fairlead.cli.table import table
from fairlead.lab import doctor, registry
from fairlead.lab.stop import Stop


@click.command("list", short_help="List the experiments.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Form of the answer; json also says what can run here.",
)
def list_(form: str) -> None:
    """List the experiments: what each asks, and what can be varied."""
    if form == "json":
        with Stop() as stop:
            click.echo(json.dumps(doctor.entries(stop), indent=2))
        return
    for experiment in registry.catalogue().values():
        click.echo(f"{experiment.id}  {experiment.subject.title}")
        click.echo(f"  {experiment.subject.question}")
        rows = [
            (name, "|".join(map(str, parameter.choices)), parameter.help)
            for name, parameter in experiment.parameters.items()
        ]
        rows.append(("runs on", f"Python {experiment.pythons}", ""))
        click.echo(table(rows, indent=4))
