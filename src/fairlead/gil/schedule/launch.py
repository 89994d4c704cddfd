"""Becomes a program that is scheduled from its first line on.

This process is replaced by the program (exec), it does not start one and wait: so the program has the
process number that its supervisor knows (systemd, docker, a shell's job), and signals, the terminal, open
files, the parent and the exit status are its own, with nothing in between that could fail to pass them on.
The price is that no process is left to notice a program that was not scheduled after all. Hence only what is
recognised as a Python, or as a script of one, is started; and before its first line it ends, saying why, if
it cannot be scheduled.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from fairlead.errors import UnsupportedInterpreterError, UsageError
from fairlead.gil.observe import recorder
from fairlead.gil.observe.programs import starting
from fairlead.gil.observe.programs.starting import Action
from fairlead.gil.schedule.control import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.record.policies import Policy


def schedule_action(
    policy: Policy,
    cpu_share: float,
    timer_slack: float | None = None,
    *,
    canary_s: float | None = None,
) -> Action:
    """What is to be done in a program, so that it is scheduled. Raises UsageError as ``check``."""
    check(policy, cpu_share, timer_slack)
    settings = {
        "policy": policy,
        "cpu_share": cpu_share,
        "timer_slack": timer_slack,
        "canary_s": canary_s,
    }
    return Action("fairlead.gil.schedule.launched", settings)


def become(
    command: Sequence[str],
    policy: Policy,
    cpu_share: float,
    timer_slack: float | None = None,
    *,
    canary_s: float | None = None,
    if_possible: bool = False,
    children: bool = False,
    then: Sequence[Action] = (),
) -> NoReturn:
    """Replace this process by the command, scheduled. Forked children stay scheduled.

    Args:
        canary_s: try the policy first, in windows of so many seconds (``canary.py``).
        then: what else the program is to begin with, once it is scheduled.
        if_possible: go on without, and say so, where it cannot be scheduled; else it is not started.
        children: every Python that it starts is scheduled too, where that can be, and the command itself
            need not be one.

    Raises:
        UsageError: the command cannot be started, or is no Python.
        UnsupportedInterpreterError: this process is recorded, or the command's options keep us out.
    """
    wanted = schedule_action(policy, cpu_share, timer_slack, canary_s=canary_s)
    if recorder.current() is not None:
        raise UsageError(
            "a recording of fairlead run would end where the program begins: use fairlead record"
            f" --policy {policy} -- COMMAND"
        )
    found = starting.read(command)
    why = found.refusal("run", children=children)
    if why is not None:
        if not if_possible:
            raise UnsupportedInterpreterError(why)
        print(f"fairlead: {why}; going on without", file=sys.stderr)
        _execute(found, found.environment)
    _execute(
        found,
        starting.environment(
            wanted,
            *then,
            base=found.environment,
            verb="run",
            pid=os.getpid(),
            if_possible=if_possible,
            children=children,
        ),
    )


def _execute(command: starting.Command, environment: dict[str, str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by every Python; a program is not to inherit that
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execve(command.file, command.words, environment)
    except OSError as error:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        raise UsageError(f"{command.words[0]} cannot be started: {error.strerror}") from error
