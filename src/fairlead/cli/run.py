"""``fairlead run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from fairlead.cli import words
from fairlead.errors import UnsupportedInterpreterError, UsageError

if TYPE_CHECKING:
    from fairlead.gil.observe.programs.starting import Action
    from fairlead.record.policies import Policy


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--policy",
    type=click.Choice(["interactive", "stock"]),
    default="interactive",
    show_default=True,
    envvar="FAIRLEAD_GIL",
    help="interactive: short bursts of work go first, and no thread waits for ever; stock: the interpreter's"
    " own scheduling. FAIRLEAD_GIL in the environment sets another default.",
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
    help="Try the policy first, in windows of that length, stock and scheduled in turns; keep the better.",
)
@click.option(
    "--timer-slack",
    "timer_slack_s",
    metavar="TIME",
    callback=words.duration,
    help="How late the kernel may fire the program's timers. [default: unchanged, 50us on Linux]",
)
@click.option(
    "--if-possible",
    is_flag=True,
    help="If the program cannot be scheduled, run it unscheduled and say so, instead of not starting it.",
)
@click.option(
    "--children",
    is_flag=True,
    help="Schedule every Python that the program starts, too. Forked children are always scheduled. With"
    " --pid: also the children that are there already, and theirs.",
)
@click.option("--pid", type=int, help="Schedule a process that is already running (Python 3.14 and later).")
@click.option(
    "--for",
    "for_s",
    metavar="TIME",
    callback=words.duration,
    help="With --pid: return to the interpreter's own scheduling after this time. [default: never]",
)
@click.option(
    "--serve",
    metavar="ADDRESS",
    help="Answer /healthz, /metrics, /holder and /threads over HTTP, from a thread that never takes the GIL;"
    " for example at 127.0.0.1:9911. Forked children do not serve.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --serve: every request needs the token in this file. An address other than loopback requires"
    " one. [default: /holder and /threads need a random token, which is printed]",
)
@click.option(
    "--stalled-after",
    "stalled_after_s",
    metavar="TIME",
    default="10s",
    show_default=True,
    callback=words.duration,
    help="With --serve: /healthz answers 503 when a thread has kept the GIL this long without using a core.",
)
@click.option(
    "--busy-after",
    "busy_after_s",
    metavar="TIME",
    callback=words.duration,
    help="With --serve: the same for a thread that uses a core. [default: it may compute for ever]",
)
@click.option(
    "--loops",
    is_flag=True,
    help="Watch how late the callbacks of each event loop of asyncio and uvloop run, and why.",
)
@click.option(
    "--install-hook",
    is_flag=True,
    help="Install a hook by which FAIRLEAD_GIL=interactive in the environment schedules every program of this"
    " Python, and exit.",
)
@click.option("--remove-hook", is_flag=True, help="Remove that hook, and exit.")
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

    COMMAND is run unchanged: "python app.py ARGS", "python -m module ARGS", or a script that a Python runs.
    A COMMAND without an interpreter ("app.py", "-m module") is run by the Python that runs fairlead. fairlead
    becomes the program: process number, signals, terminal and exit status are the program's own.
    """
    if install_hook or remove_hook:
        _alone(context)
        (_install if install_hook else _remove)()
        return
    share = words.share_for(context, policy, cpu_share)
    if pid is not None:
        for_a_start = (command, if_possible, canary_s, loops)
        if any(for_a_start) or timer_slack_s is not None or serve is not None:
            raise UsageError(
                "--pid schedules a process that is already running: leave out the command, --canary,"
                " --if-possible, --loops, --timer-slack and --serve"
            )
        _attach(pid, policy, share, for_s, children=children)
        return
    if for_s is not None:
        raise UsageError("--for goes with --pid; a program that is started is scheduled to its end")
    if canary_s is not None and policy == "stock":
        raise UsageError("--canary compares a policy with stock: leave out --policy stock")
    if canary_s is not None and not 0.1 <= canary_s <= 3600:
        raise UsageError(f"--canary is from 100ms to 1h, not {canary_s:g} s")
    from fairlead.gil.observe.programs import every_loop
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
            *([every_loop.watch_action()] if loops else []),
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
    from fairlead.gil.endpoint.launch import serve_action

    return [serve_action(address, token_file, stalled_after_s, busy_after_s)]


def _alone(context: click.Context) -> None:
    given = [
        "COMMAND" if name == "command" else f"--{name.replace('_', '-')}"
        for name in context.params
        if context.get_parameter_source(name) == ParameterSource.COMMANDLINE and context.params[name]
    ]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(sorted(given))} exclude each other")


def _attach(pid: int, policy: Policy, share: float, for_s: float | None, *, children: bool) -> None:
    from fairlead.gil.schedule import attached

    said = f"policy {policy}" + ("" if for_s is None else f" for {for_s:g} s")
    end = "to end it: fairlead ctl --pid"
    if not children:
        attached.begin(pid, policy, share, for_s)
        click.echo(f"process {pid}: {said}; {end} {pid} stock")
        return
    outcome = attached.begin_family(pid, policy, share, for_s)
    missed = [why for why in outcome.values() if why is not None]
    if len(missed) == len(outcome) == 1:
        raise missed[0]
    for why in missed:
        click.echo(f"not scheduled: {why}", err=True)
    done = [one for one, why in outcome.items() if why is None]
    if not done:
        raise UnsupportedInterpreterError(f"process {pid} and its children: none is scheduled, see above")
    for one in done:
        click.echo(f"process {one}: {said}")
    click.echo(f"{end} {pid} --children stock")


def _install() -> None:
    from fairlead.gil.schedule import hook

    click.echo(f"hook installed: {hook.install()}")
    click.echo("It does nothing until FAIRLEAD_GIL=interactive is in the environment.")


def _remove() -> None:
    from fairlead.gil.schedule import hook

    removed = hook.remove()
    click.echo(f"hook removed: {removed}" if removed else f"there was no hook: {hook.place()}")
