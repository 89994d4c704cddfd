"""The command itself, and its sub-commands."""

from __future__ import annotations

from importlib import import_module

import click

import fairlead

COMMANDS = {
    "advise": "Say which pool, and how many workers, suit a function or server of yours.",
    "ctl": "Look at a running program's scheduler, or switch it.",
    "demo": "Show what scheduling the GIL gains and what it costs, in some 20 seconds.",
    "doctor": "Say what fairlead can do on this machine, and why not the rest.",
    "explain": "Say why an error of fairlead is raised, and what to do.",
    "lab": "Measure how concurrency scales on this machine.",
    "record": "Run a program and record its GIL.",
    "report": "Show what a recording of the GIL, or a saved advice, says.",
    "run": "Run a program under a scheduler for the GIL: I/O threads no longer wait behind computing ones.",
    "top": "Run a program and watch its GIL live.",
}
"""The sub-commands and what each does: the list of them is shown without importing any."""


class OnDemand(click.Group):
    """Imports a sub-command only when it runs: it waits for no other, and the list of commands for none."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"fairlead.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        command.short_help = COMMANDS[cmd_name]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from fairlead.cli.words import near  # help does not wait for it

            ctx.fail(f"there is no command {args[0]!r}{near(args[0], list(COMMANDS))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=OnDemand, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(fairlead.__version__, prog_name="fairlead", message="%(prog)s %(version)s")
def root() -> None:
    """Makes Python concurrency measurable, then makes it fast."""
