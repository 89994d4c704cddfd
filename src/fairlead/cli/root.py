"""The command itself, and its sub-commands."""

from __future__ import annotations

from importlib import import_module

import click

import fairlead

COMMANDS = ("advise", "ctl", "doctor", "lab", "record", "report", "run", "top")


class OnDemand(click.Group):
    """Imports a sub-command when it is asked for: a program that it starts waits for nothing else."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"fairlead.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=OnDemand, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(fairlead.__version__, prog_name="fairlead", message="%(prog)s %(version)s")
def root() -> None:
    """Makes Python concurrency measurable, then makes it fast."""
