"""Becomes a program that is scheduled from its first line on.

This process is replaced by the program (exec), it does not start one and wait: so the program has the
process number that its supervisor knows (systemd, docker, a shell's job), and signals, the terminal, open
files, the parent and the exit status are its own, with nothing in between that could fail to pass them on.
The price is that nobody is left to notice a program that was not scheduled after all. Hence only what is
recognised as a Python, or as a script of one, is started; and before its first line it ends, saying why, if
it cannot be scheduled.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from fairlead.errors import UnsupportedInterpreter, UsageError
from fairlead.gil.observe import recorder, starting
from fairlead.gil.observe.starting import Action
from fairlead.gil.schedule.control import Policy, check


def action(
    policy: Policy, cpu_share: float, timer_slack: float | None = None, *, pid: int | None = None
) -> Action:
    """What is to be done in a program, so that it is scheduled. Raises UsageError as ``check``."""
    check(policy, cpu_share, timer_slack)
    settings = {"policy": policy, "cpu_share": cpu_share, "timer_slack": timer_slack, "pid": pid}
    return Action("fairlead.gil.schedule.launched", settings)


def become(
    command: Sequence[str],
    policy: Policy,
    cpu_share: float,
    timer_slack: float | None = None,
    *,
    if_possible: bool = False,
    children: bool = False,
) -> NoReturn:
    """Replace this process by the command, scheduled. Forked children stay scheduled.

    Args:
        if_possible: go on without, and say so, where it cannot be scheduled; else it is not started.
        children: every Python that it starts is scheduled too, where that can be, and the command itself
            need not be one.

    Raises:
        UsageError: the command cannot be started, or is no Python.
        UnsupportedInterpreter: this process is recorded, or the command's options keep us out.
    """
    pid = os.getpid()
    wanted = action(policy, cpu_share, timer_slack, pid=pid)
    if recorder.current() is not None:
        raise UsageError(
            "a recording of fairlead run would end where the program begins: use fairlead record"
            f" --policy {policy} -- COMMAND"
        )
    why = _keeps_us_out(command, children=children)
    if why is not None:
        if not if_possible:
            raise UnsupportedInterpreter(why)
        print(f"fairlead: {why}; going on without", file=sys.stderr)
    environment = starting.environment(wanted, pid=pid, if_possible=if_possible, children=children)
    _execute(command, environment if why is None else dict(os.environ))


def _keeps_us_out(command: Sequence[str], *, children: bool) -> str | None:
    interpreter = starting.python_of(command)
    if interpreter is None:
        if children:
            return None
        return (
            f"{command[0]} is no Python, nor a script of one: put fairlead run right before the python, or"
            " say --children to schedule every Python that it starts"
        )
    if option := starting.ignored_path(interpreter):
        return (
            f"{interpreter[0]} {option} ignores PYTHONPATH, which scheduling is begun by: leave it out, or"
            " call fairlead.gil.schedule() in the program"
        )
    return None


def _execute(command: Sequence[str], environment: dict[str, str]) -> NoReturn:
    program = shutil.which(command[0])
    assert program is not None  # or python_of() would have said so
    sys.stdout.flush()
    sys.stderr.flush()
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by every Python; a program is not to inherit that
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execve(program, list(command), environment)
    except OSError as error:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        raise UsageError(f"{command[0]} cannot be started: {error.strerror}") from error
