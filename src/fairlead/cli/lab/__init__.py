"""``fairlead lab``: measure, and look at what was measured."""

from __future__ import annotations

import click

from fairlead.cli.lab.compare import compare
from fairlead.cli.lab.list import list_
from fairlead.cli.lab.report import report
from fairlead.cli.lab.run import run


@click.group()
def lab() -> None:
    """Measure how concurrency scales on this machine and its interpreters."""


for command in (list_, run, report, compare):
    lab.add_command(command)
