"""Another process, which is looked at or told something: why that may not be, in one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
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
    """The file of the program that it runs. Raises as ``asked``, and if the number is a thread's, which
    ``/proc`` has as well."""
    process = int(_status(pid)["Tgid"])
    if process != pid:
        raise UsageError(f"{pid} is a thread of process {process}: give the process's number")
    return asked(pid, lambda: os.readlink(f"/proc/{pid}/exe"))  # noqa: PTH115


def ended(pid: int) -> bool:
    """Whether it is there no more, or only awaits its parent."""
    try:
        return machine.stat_of(pid)[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def stopped(pid: int) -> bool:
    """Whether a signal (SIGSTOP) or a debugger has stopped it. Raises as ``asked``."""
    return asked(pid, lambda: machine.stat_of(pid)[0]) in "Tt"


def owner(pid: int) -> tuple[int, int]:
    """The user and group that it writes files as. Raises as ``asked``."""
    said = _status(pid)
    return int(said["Uid"].split()[3]), int(said["Gid"].split()[3])


def _status(pid: int) -> dict[str, str]:
    lines = asked(pid, lambda: Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace"))
    return dict(line.split(":", 1) for line in lines.splitlines())


def kept_out(pid: int) -> UsageError:
    return UsageError(
        f"the kernel does not let this user into process {pid}: do this as that process's user, or as a root"
        " that may trace it (CAP_SYS_PTRACE, which containers often lack)"
    )


def _missing(pid: int) -> str:
    if not os.path.exists(f"/proc/{pid}/stat"):  # noqa: PTH110
        return f"there is no process {pid}"
    return f"process {pid} runs no program: it is a thread of the kernel, or has ended and awaits its parent"
