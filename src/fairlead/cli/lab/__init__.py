"""``fairlead lab``: measure, and look at what was measured."""

from __future__ import annotations

import click

from fairlead.cli.lab.list import list_
from fairlead.cli.lab.run import run


@click.group()
def lab() -> None:
    """Measure how concurrency scales on this machine and its interpreters."""


lab.add_command(list_)
lab.add_command(run)
