"""``fairlead doctor``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

import click

from fairlead.cli.abilities import Ability, abilities
from fairlead.cli.table import columns, table
from fairlead.lab.catalogue.interpreters import Interpreter
from fairlead.lab.doctor import Examination, examine
from fairlead.lab.isolation.stop import Stop


@click.command()
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", help="Format of the output."
)
@click.option("-v", "--verbose", is_flag=True, help="Also each interpreter's path, and what it lacks.")
def doctor(form: str, verbose: bool) -> None:
    """Say what fairlead can do on this machine and its interpreters, and what is missing for the rest."""
    with Stop() as stop:
        examination = examine(stop)
    able = list(abilities(examination))
    if form == "json":
        abilities_by_name = {one.name: {"can": one.can, "remark": one.remark} for one in able}
        click.echo(json.dumps({**examination.as_record(), "abilities": abilities_by_name}, indent=2))
        return
    click.echo("\n".join(_short(examination, able)))
    if verbose:
        click.echo("\n".join(["", *_lines(examination)]))


def _short(examination: Examination, able: list[Ability]) -> Iterator[str]:
    machine, found = examination.machine, examination.discovery
    quota = "no quota" if machine["quota"] is None else f"a quota of {machine['quota']:g} cores"
    usable = machine["affinity"]
    all_of_them = len(usable) == machine["cores"]
    which = "all of which" if all_of_them else f"of which numbers {','.join(map(str, usable))}"
    running, *others = (one.name for one in found.interpreters)
    lines = [
        f"{machine['processor']}, {machine['kernel']} {machine['machine']}",
        f"{machine['cores']} cores, {which} may be used; {quota}; load {machine['load']:g}",
        f"interpreters: {running} (this one){''.join(f', {name}' for name in others)}",
    ]
    if found.rejected:
        lines.append(f"{len(found.rejected)} more were found and cannot be used (-v says why)")
    for line in lines:
        yield from wrap(line, columns(), subsequent_indent="  ")
    yield ""
    width = max(len(one.name) for one in able)
    for one in able:
        yield from wrap(
            f"{one.name:{width}}  {'yes' if one.can else 'no ':3}  {one.remark}",
            columns(),
            subsequent_indent=" " * (width + 7),
            drop_whitespace=True,
        )


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
        ],
        width=columns(),
    )
    yield "\nInterpreters (the first one runs fairlead)"
    yield table(
        [
            ("name", "version", "implementation", "GIL", "JIT", "path"),
            *(_row(interpreter) for interpreter in examination.discovery.interpreters),
        ],
        width=columns(),
    )
    if examination.discovery.rejected:
        yield "\nRejected"
        yield table([(rejected.reason,) for rejected in examination.discovery.rejected], width=columns())
    yield "\nYield probe of the first one: a call's time and effect"
    yield table(
        [row for policy, probe in examination.yield_probe.items() for row in _probe(policy, probe)],
        width=columns(),
    )
    yield "\nExperiments"
    yield table(
        [
            (name if number == 0 else "", line)
            for name, lines in examination.lacking.items()
            for number, line in enumerate(lines or ["all of it can be run"])
        ],
        width=columns(),
    )
    yield "\nExtras"
    yield table(
        [
            (name, f'lacks {", ".join(missing)}: pip install "fairlead[{name}]"' if missing else "installed")
            for name, missing in examination.missing_extras.items()
        ],
        width=columns(),
    )


def _probe(policy: str, probe: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    if "failed" in probe:
        yield policy, "failed", str(probe["failed"]), ""
        return
    words = {
        True: "gives up the core",
        False: "keeps the core",
        None: "not known: two threads could not compete for one core",
    }
    for name, call in (("sleep0", "time.sleep(0)"), ("yield", "sched_yield()")):
        found = probe[name]
        yield policy, call, f"{found['alone_us']:.1f} us", words[found["yields"]]


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
