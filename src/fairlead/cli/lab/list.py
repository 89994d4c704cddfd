"""``fairlead lab list``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from textwrap import fill

import click

from fairlead.cli.table import columns, table
from fairlead.lab import doctor
from fairlead.lab.catalogue import registry
from fairlead.lab.catalogue.documents import PREFIX, documents
from fairlead.lab.catalogue.registry import Experiment
from fairlead.lab.isolation.stop import Stop

_TIED = "\N{NO-BREAK SPACE}"
"""A space within a label, at which no line is broken."""


@click.command("list", short_help="List the experiments.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Format of the output; json also says what can run here.",
)
@click.argument("ids", metavar="[ID]...", nargs=-1)
def list_(ids: tuple[str, ...], form: str) -> None:
    """List the experiments, a line each; for those that are named, also their parameters and variants.

    An ID is an experiment, a family of them, such as square, or a document, such as document:square.
    """
    if form == "json":
        with Stop() as stop:
            click.echo(json.dumps(doctor.entries(stop), indent=2))
        return
    if not ids:
        _overview()
        return
    selected = registry.select(ids)
    for experiment in _once(selected):
        click.echo(_folded(f"{experiment.id}  {experiment.subject.title}", 0))
        click.echo(_folded(experiment.subject.question, 2))
        rows = [
            (name, "|".join(map(str, parameter.choices)), parameter.help)
            for name, parameter in experiment.parameters.items()
        ]
        rows.append(("runs on", f"Python {experiment.pythons}", ""))
        click.echo(table(rows, indent=4, width=columns()))
        alike = [one for one in selected if _name(one) == _name(experiment)]
        named = dict.fromkeys(variant.label for one in alike for variant in one.variants if variant.label)
        labels = [repr(label).replace(" ", _TIED) for label in named]
        if labels:
            click.echo(_folded(f"variants: {', '.join(labels)}", 4).replace(_TIED, " "))


def _folded(text: str, indent: int) -> str:
    margin = " " * indent
    return fill(
        text, columns(), initial_indent=margin, subsequent_indent=f"{margin}  ", break_on_hyphens=False
    )


def _overview() -> None:
    """A line for each experiment, of ways of doing one work a line for all, and for each document."""
    rows = [(_name(one), one.subject.title.partition(", ")[0]) for one in _once(registry.select([]))]
    for family in dict.fromkeys(name.partition(".")[0] for name, _ in rows):
        click.echo(
            table([row for row in rows if row[0].partition(".")[0] == family], indent=0, width=columns())
        )
        click.echo("")
    rows = [
        (f"{PREFIX}{one.id}", ", ".join(filter(None, (one.author, one.title))))
        for one in documents().values()
    ]
    click.echo(table(rows, indent=0, width=columns()))
    click.echo("")
    click.echo("More of one, with what can be varied: fairlead lab list ID")


def _name(experiment: Experiment) -> str:
    """The id, or what the ids of all ways have in common: "models.io-*"."""
    group = experiment.subject.group
    return f"{group}-*" if group and group != experiment.id else experiment.id


def _once(experiments: Sequence[Experiment]) -> list[Experiment]:
    """The first of each work: its ways have all but their titles in common."""
    return list({_name(one): one for one in reversed(experiments)}.values())[::-1]
