"""Results on their way from files to the eye: what run, report and compare share."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypedDict

import click

from fairlead.errors import OutputError
from fairlead.lab.catalogue import registry
from fairlead.record.results import read_results, runs_in
from fairlead.record.summary import Summary


def summary(runs: Sequence[Path]) -> tuple[Summary, str | None]:
    """What runs say together, and one line on what of their files had to be left out.

    Raises:
        RecordError: a run cannot be read at all.
    """
    from fairlead.lab.analysis.summarise import summarise

    found = [run for path in runs for run in runs_in(path)]
    read = [read_results(run) for run in found]
    problems = [problem for results in read for problem in results.problems]
    problems += [problem for run in found for problem in registry.add_kept(run)]
    made = summarise([sample for results in read for sample in results.samples], problems)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return made, f"{problems[0]}{more}" if problems else None


ReportKind = Literal["summary", "comparison"]
_FORMS: dict[ReportKind, tuple[str, ...]] = {
    "summary": ("text", "html", "json", "csv", "pyperf"),
    "comparison": ("text", "html", "json"),
}


def deliver(kind: ReportKind, thing: Any, form: str | None, file: Path | None, **more: Any) -> None:
    """Print a report, or put it into a file, whose name says its form unless that is given.

    ``more`` is for a report as text: how much of it.

    Raises:
        MissingExtraError: a library for this form is not installed.
        OutputError: the file cannot be written.
    """
    if form is None:
        ending = file.suffix.removeprefix(".") if file else ""
        form = ending if ending in _FORMS[kind] else "text"
    look = {**(terminal() if file is None else {}), **more} if form == "text" else {}
    content = import_module(f"fairlead.report.{kind}.{form}").render(thing, **look)
    if file is None:
        click.echo(content, nl=not content.endswith("\n"))
    else:
        write(file, content)


class Look(TypedDict, total=False):
    """How a report as text is to look; what is missing is as for a file."""

    width: int
    colour: bool


def terminal() -> Look:
    """For the terminal, if that is what is written to: as wide as it is, in colour unless NO_COLOR is set."""
    if not sys.stdout.isatty():
        return {}
    width = min(120, shutil.get_terminal_size().columns)
    return {"width": width, "colour": "NO_COLOR" not in os.environ}


def show(summary: Summary, detail: int = 0) -> None:
    """Print the report as text."""
    from fairlead.report.summary import text

    click.echo(text.render(summary, **terminal(), detail=detail), nl=False)


verbose = click.option(
    "-v", "detail", count=True, help="Print the tables as well; -vv: also every size of every series."
)
"""How much of a report is printed."""

out = click.option(
    "-o", "--out", "file", type=click.Path(path_type=Path), metavar="FILE", help="Where to write it."
)


def form(kind: ReportKind) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The option that says in which form a report is."""
    return click.option(
        "--format", "form", type=click.Choice(_FORMS[kind]), help="Default: by the name of FILE, else text."
    )


def write(path: Path, content: str) -> None:
    """Put a report into a file.

    Raises:
        OutputError: it cannot be written; says where else to put it.
    """
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror}); make room or choose another place"
        ) from error
