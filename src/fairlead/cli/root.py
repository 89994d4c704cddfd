"""The command itself, and its sub-commands."""

from __future__ import annotations

import click

import fairlead
from fairlead.cli.doctor import doctor
from fairlead.cli.lab import lab
from fairlead.cli.record import record
from fairlead.cli.report import report
from fairlead.cli.run import run
from fairlead.cli.top import top


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(fairlead.__version__, prog_name="fairlead", message="%(prog)s %(version)s")
def root() -> None:
    """Makes Python concurrency measurable, then makes it fast."""


root.add_command(doctor)
root.add_command(lab)
root.add_command(record)
root.add_command(report)
root.add_command(run)
root.add_command(top)
