"""``fairlead run``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from fairlead.cli import words
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from fairlead.gil.schedule.control import Policy


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--policy",
    type=click.Choice(["interactive", "fair", "stock"]),
    default="interactive",
    show_default=True,
    envvar="FAIRLEAD_GIL",
    help="interactive: who comes from a wait goes first; fair: equal GIL time; stock: the interpreter's own."
    " FAIRLEAD_GIL in the environment is another default.",
)
@click.option(
    "--cpu-share",
    type=float,
    default=0.3,
    show_default=True,
    envvar="FAIRLEAD_GIL_CPU_SHARE",
    help="Share of the GIL that computing threads keep, .01 to .95 (interactive only).",
)
@click.option(
    "--timer-slack",
    "timer_slack_s",
    metavar="TIME",
    callback=words.duration,
    help="How late the kernel may let the program's timers be. [default: leave it as it is, 50us on Linux]",
)
@click.option(
    "--if-possible",
    is_flag=True,
    help="Go on without, and say so, where the program cannot be scheduled, instead of not starting it.",
)
@click.option(
    "--children",
    is_flag=True,
    help="Schedule every Python that the program starts, too. Forked children are in any case.",
)
@click.option(
    "--install-hook",
    is_flag=True,
    help="Let FAIRLEAD_GIL=interactive in the environment schedule every program of this Python, and end.",
)
@click.option("--remove-hook", is_flag=True, help="Take that back, and end.")
@click.argument("command", metavar="-- COMMAND", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def run(
    context: click.Context,
    policy: Policy,
    cpu_share: float,
    timer_slack_s: float | None,
    if_possible: bool,
    children: bool,
    install_hook: bool,
    remove_hook: bool,
    command: tuple[str, ...],
) -> None:
    """Run a program under a scheduler for the GIL: I/O threads no longer wait behind computing ones.

    COMMAND is run as it is: "python app.py ARGS", "python -m module ARGS", or a script that a Python runs.
    Without an interpreter ("app.py", "-m module") the one that runs fairlead is taken. fairlead becomes the
    program: process number, signals, terminal and exit status are the program's own.
    """
    if install_hook or remove_hook:
        _alone(context)
        (_install if install_hook else _remove)()
        return
    from fairlead.gil.schedule import launch

    launch.become(
        words.program(command, "run"),
        policy,
        words.share_for(context, policy, cpu_share),
        timer_slack_s,
        if_possible=if_possible,
        children=children,
    )


def _alone(context: click.Context) -> None:
    given = [
        "COMMAND" if name == "command" else f"--{name.replace('_', '-')}"
        for name in context.params
        if context.get_parameter_source(name) == ParameterSource.COMMANDLINE and context.params[name]
    ]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(sorted(given))} exclude each other")


def _install() -> None:
    from fairlead.gil.schedule import hook

    click.echo(f"hook installed: {hook.install()}")
    click.echo("It does nothing until FAIRLEAD_GIL=interactive (or fair) is in the environment.")


def _remove() -> None:
    from fairlead.gil.schedule import hook

    removed = hook.remove()
    click.echo(f"hook removed: {removed}" if removed else f"there was no hook: {hook.place()}")
