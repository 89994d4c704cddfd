"""``fairlead doctor``."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from fairlead.cli.table import table
from fairlead.lab.doctor import Examination, examine
from fairlead.lab.interpreters import Interpreter
from fairlead.lab.stop import Stop


@click.command()
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the answer."
)
def doctor(form: str) -> None:
    """Say what this machine and its interpreters can measure, and what is missing for the rest."""
    with Stop() as stop:
        examination = examine(stop)
    if form == "json":
        click.echo(json.dumps(examination.as_record(), indent=2))
    else:
        click.echo("\n".join(_lines(examination)))


def _lines(examination: Examination) -> Iterator[str]:
    machine = examination.machine
    quota = "none" if machine["quota"] is None else f"{machine['quota']:g} cores"
    yield "This machine"
    yield table(
        [
            ("processor", machine["processor"]),
            ("kernel", f"{machine['kernel']} {machine['machine']}"),
            ("cores", str(machine["cores"])),
            ("affinity", ",".join(map(str, machine["affinity"]))),
            ("quota", quota),
            ("load", f"{machine['load']:g}"),
            ("real time", examination.real_time_refused or "allowed"),
        ]
    )
    yield "\nInterpreters (the first one runs fairlead)"
    yield table(
        [
            ("name", "version", "implementation", "GIL", "JIT", "path"),
            *(_row(interpreter) for interpreter in examination.discovery.interpreters),
        ]
    )
    if examination.discovery.rejected:
        yield "\nRejected"
        yield from (f"  {rejected.reason}" for rejected in examination.discovery.rejected)
    yield "\nExtras"
    yield table(
        [
            (name, f'lacks {", ".join(missing)}: pip install "fairlead[{name}]"' if missing else "installed")
            for name, missing in examination.missing_extras.items()
        ]
    )


def _row(interpreter: Interpreter) -> tuple[str, ...]:
    gil = ("on" if interpreter.gil else "off") if interpreter.free_threaded else "yes"
    return (
        interpreter.name,
        interpreter.version,
        interpreter.implementation,
        gil,
        "on" if interpreter.jit else "off",
        interpreter.path,
    )
