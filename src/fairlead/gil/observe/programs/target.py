"""Another process, which is looked at or told something: why that may not be, in one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from fairlead import machine
from fairlead.errors import UsageError

_T = TypeVar("_T")


def asked(pid: int, ask: Callable[[], _T]) -> _T:
    """What a look into ``/proc`` says of the process.

    Raises:
        UsageError: it is not there, or has no program, or this user may not look.
    """
    try:
        return ask()
    except (FileNotFoundError, ProcessLookupError):
        raise UsageError(_missing(pid)) from None
    except PermissionError:
        raise kept_out(pid) from None


def executable(pid: int) -> str:
    """The file of the program that it runs. Raises as ``asked``."""
    return asked(pid, lambda: os.readlink(f"/proc/{pid}/exe"))  # noqa: PTH115


def stopped(pid: int) -> bool:
    """Whether a signal (SIGSTOP) or a debugger has stopped it. Raises as ``asked``."""
    return asked(pid, lambda: machine.stat_of(pid)[0]) in "Tt"


def owner(pid: int) -> tuple[int, int]:
    """The user and group that it writes files as. Raises as ``asked``."""
    with asked(pid, lambda: open(f"/proc/{pid}/status")) as status:  # noqa: PTH123
        said = dict(line.split(":", 1) for line in status)
    return int(said["Uid"].split()[3]), int(said["Gid"].split()[3])


def kept_out(pid: int) -> UsageError:
    return UsageError(
        f"the kernel does not let this user into process {pid}: do this as that process's user, or as a root"
        " that may trace it (CAP_SYS_PTRACE, which containers often lack)"
    )


def _missing(pid: int) -> str:
    if not os.path.exists(f"/proc/{pid}/stat"):  # noqa: PTH110
        return f"there is no process {pid}"
    return f"process {pid} runs no program: it is a thread of the kernel, or has ended and awaits its parent"
