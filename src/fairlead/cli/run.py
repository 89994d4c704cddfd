"""``fairlead run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from fairlead.cli import words
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from fairlead.gil.observe.starting import Action
    from fairlead.gil.schedule.control import Policy


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--policy",
    type=click.Choice(["interactive", "stock"]),
    default="interactive",
    show_default=True,
    envvar="FAIRLEAD_GIL",
    help="interactive: short bursts of work go first, and none waits for ever; stock: the interpreter's own."
    " FAIRLEAD_GIL in the environment is another default.",
)
@click.option(
    "--cpu-share",
    type=float,
    default=0.05,
    show_default=True,
    envvar="FAIRLEAD_GIL_CPU_SHARE",
    help="The least share of the GIL that computing threads keep, .01 to .95 (interactive only).",
)
@click.option(
    "--canary",
    "canary_s",
    metavar="TIME",
    callback=words.duration,
    help="Try it first: windows of that length, stock and scheduled in turns; keep the better.",
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
@click.option("--pid", type=int, help="Schedule a process that runs already (Python 3.14 and later).")
@click.option(
    "--for",
    "for_s",
    metavar="TIME",
    callback=words.duration,
    help="With --pid: give the interpreter its own scheduling back after that. [default: never]",
)
@click.option(
    "--serve",
    metavar="ADDRESS",
    help="Answer /healthz, /metrics, /holder and /threads over HTTP, from a thread that never takes the GIL;"
    " for example at 127.0.0.1:9911. Forked children do not.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --serve: requests need the token in this file. An address that others can reach takes one.",
)
@click.option(
    "--stalled-after",
    "stalled_after_s",
    metavar="TIME",
    default="10s",
    show_default=True,
    callback=words.duration,
    help="With --serve: /healthz answers 503 when a thread has kept the GIL so long without using a core.",
)
@click.option(
    "--busy-after",
    "busy_after_s",
    metavar="TIME",
    callback=words.duration,
    help="With --serve: the same for a thread that uses a core. [default: it may compute for ever]",
)
@words.loops
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
    canary_s: float | None,
    timer_slack_s: float | None,
    if_possible: bool,
    children: bool,
    pid: int | None,
    for_s: float | None,
    serve: str | None,
    token_file: Path | None,
    stalled_after_s: float,
    busy_after_s: float | None,
    loops: bool,
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
    share = words.share_for(context, policy, cpu_share)
    if pid is not None:
        for_a_start = (command, children, if_possible, canary_s, loops)
        if any(for_a_start) or timer_slack_s is not None or serve is not None:
            raise UsageError(
                "--pid schedules a process that runs already: leave out the command, --canary, --children,"
                " --if-possible, --loops, --timer-slack and --serve"
            )
        _attach(pid, policy, share, for_s)
        return
    if for_s is not None:
        raise UsageError("--for goes with --pid; a program that is started is scheduled to its end")
    if canary_s is not None and policy == "stock":
        raise UsageError("--canary holds a policy against stock: leave out --policy stock")
    if canary_s is not None and not 0.1 <= canary_s <= 3600:
        raise UsageError(f"--canary is from 100ms to 1h, not {canary_s:g} s")
    from fairlead.gil.schedule import launch

    launch.become(
        words.program(command, "run"),
        policy,
        share,
        timer_slack_s,
        canary_s=canary_s,
        if_possible=if_possible,
        children=children,
        then=[
            *words.watching(loops),
            *_serving(context, serve, token_file, stalled_after_s, busy_after_s),
        ],
    )


def _serving(
    context: click.Context,
    address: str | None,
    token_file: Path | None,
    stalled_after_s: float,
    busy_after_s: float | None,
) -> list[Action]:
    if address is None:
        for name in ("token_file", "stalled_after_s", "busy_after_s"):
            if context.get_parameter_source(name) == ParameterSource.COMMANDLINE:
                option = name.removesuffix("_s").replace("_", "-")
                raise UsageError(f"--{option} goes with --serve: give an address, as 127.0.0.1:9911")
        return []
    from fairlead.gil.endpoint.launch import action

    return [action(address, token_file, stalled_after_s, busy_after_s)]


def _alone(context: click.Context) -> None:
    given = [
        "COMMAND" if name == "command" else f"--{name.replace('_', '-')}"
        for name in context.params
        if context.get_parameter_source(name) == ParameterSource.COMMANDLINE and context.params[name]
    ]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(sorted(given))} exclude each other")


def _attach(pid: int, policy: Policy, share: float, for_s: float | None) -> None:
    from fairlead.gil.schedule import attached

    attached.begin(pid, policy, share, for_s)
    until = "" if for_s is None else f" for {for_s:g} s"
    click.echo(f"process {pid}: policy {policy}{until}; to end it: fairlead ctl --pid {pid} stock")


def _install() -> None:
    from fairlead.gil.schedule import hook

    click.echo(f"hook installed: {hook.install()}")
    click.echo("It does nothing until FAIRLEAD_GIL=interactive is in the environment.")


def _remove() -> None:
    from fairlead.gil.schedule import hook

    removed = hook.remove()
    click.echo(f"hook removed: {removed}" if removed else f"there was no hook: {hook.place()}")
