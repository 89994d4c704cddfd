"""``fairlead lab``: measure, and look at what was measured."""

from __future__ import annotations

import click

from fairlead.cli.lab.list import list_


@click.group()
def lab() -> None:
    """Measure how concurrency scales on this machine and its interpreters."""


lab.add_command(list_)
