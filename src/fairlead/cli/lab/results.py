"""Results on their way from files to the eye: what run, report and compare share."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from fairlead.errors import OutputError
from fairlead.record.results import read_results
from fairlead.record.summary import Summary


def summary(runs: Sequence[Path]) -> tuple[Summary, str | None]:
    """What runs say together, and one line on what of their files had to be left out.

    Raises:
        RecordError: a run cannot be read at all.
    """
    from fairlead.lab.analyse import summarise

    read = [read_results(run) for run in runs]
    problems = [problem for results in read for problem in results.problems]
    made = summarise([sample for results in read for sample in results.samples], problems)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return made, f"{problems[0]}{more}" if problems else None


def text(summary: Summary, *, terminal: bool) -> str:
    """The report as text: for a terminal as wide as that is, and in colour unless NO_COLOR is set."""
    from fairlead.report import text as report

    if not terminal:
        return report.render(summary)
    width = min(120, shutil.get_terminal_size().columns)
    return report.render(summary, width=width, colour="NO_COLOR" not in os.environ)


def show(summary: Summary) -> None:
    """Print the report as text."""
    click.echo(text(summary, terminal=sys.stdout.isatty()))


def write(path: Path, content: str) -> None:
    """Put a report into a file.

    Raises:
        OutputError: it cannot be written; says where else to put it.
    """
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror}); choose another place with -o"
        ) from error
