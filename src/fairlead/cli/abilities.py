"""What fairlead can do here, on this interpreter, kernel and container; what it cannot, with the reason."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairlead.gil.observe.access import why_not
from fairlead.lab.doctor import Examination

_PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
_CAP_SYS_PTRACE = 19
_ATTACHABLE = (3, 14)
_INTERPRETERS = (3, 13)


@dataclass(frozen=True, slots=True)
class Ability:
    """One thing that fairlead does."""

    name: str
    can: bool
    remark: str
    """What is meant, or why not and what would help."""


def abilities(found: Examination) -> Iterator[Ability]:
    """In the order in which a new user asks for them."""
    hooks = why_not()
    yield Ability("record", hooks is None, hooks or "fairlead record -- COMMAND: each wait for the GIL")
    yield Ability("run", hooks is None, hooks or "fairlead run -- COMMAND: with the GIL scheduled")
    attach = _why_not_attach(found)
    yield Ability("record --pid", attach is None, attach or "attaches to Python 3.14 and later")
    missing = found.missing_extras["lab"]
    lacks = f'lacks {", ".join(missing)}: pip install "fairlead[lab]"'
    yield Ability("advise", not missing, lacks if missing else "fairlead advise MODULE:FUNCTION: which pool")
    yield Ability("lab", not missing, lacks if missing else _experiments(found))
    refused = found.real_time_refused
    yield Ability("lab, SCHED_RR", refused is None, refused or "real-time variants run as well")
    own = _why_no_interpreters()
    yield Ability("pools", True, "threads, processes, async" + ("" if own else ", interpreters"))
    if own:
        yield Ability("interpreter pool", False, own)


def _experiments(found: Examination) -> str:
    able = sum(not any(line.startswith("not on") for line in lines) for lines in found.lacking.values())
    count = len(found.lacking)
    rest = "" if able == count else f", {count - able} on some of them (-v says which)"
    return f"{able} of {count} experiments run on every interpreter found{rest}"


def _why_not_attach(found: Examination) -> str | None:
    """By the versions that are there, and by the right to trace a process of the same user."""
    if not any(
        one.implementation == "CPython" and one.version_key[:2] >= _ATTACHABLE
        for one in found.discovery.interpreters
    ):
        return "no Python 3.14 or later was found: a process of an older one cannot be attached to"
    try:
        scope = int(_PTRACE_SCOPE.read_text(encoding="ascii"))
    except (OSError, ValueError):
        scope = 0
    if scope and not _may_trace():
        return f"kernel.yama.ptrace_scope is {scope}: set it to 0, or run with CAP_SYS_PTRACE"
    return None


def _may_trace() -> bool:
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAP_SYS_PTRACE & 1)
    return False


def _why_no_interpreters() -> str | None:
    if sys.implementation.name != "cpython" or sys.version_info < _INTERPRETERS:
        this = f"{platform.python_implementation()} {platform.python_version()}"
        return f"needs CPython 3.13 or later; this is {this}"
    return None
