"""Schedules a program that runs already, for a while. See ``fairlead.gil.observe.programs.attach``."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlead import machine
from fairlead.errors import FairleadError
from fairlead.gil.observe.programs import attach
from fairlead.gil.observe.programs.meeting import meeting
from fairlead.gil.schedule import control
from fairlead.gil.schedule.state import state

if TYPE_CHECKING:
    from fairlead.record.policies import Policy


def begin(pid: int, policy: Policy, cpu_share: float, for_s: float | None) -> None:
    """Schedule another process, for so many seconds; None: until it is told otherwise.

    Raises: as ``attach.record``.
    """
    [why] = _begin([pid], policy, cpu_share, for_s).values()
    if why is not None:
        raise why


def begin_family(
    pid: int, policy: Policy, cpu_share: float, for_s: float | None
) -> dict[int, FairleadError | None]:
    """The same for it and all that it started and that these started; each of them, and why it was not
    scheduled.

    The process itself comes first: what it forks from then on is scheduled, so that no child is left out.
    """
    outcome = _begin([pid], policy, cpu_share, for_s)
    children = [one for one in machine.family(pid)[1:] if not _only_cleans_up(one)]
    return outcome | _begin(children, policy, cpu_share, for_s)


def _only_cleans_up(pid: int) -> bool:
    """multiprocessing's own helper, which waits for the end of the others in C code."""
    try:
        return b"multiprocessing.resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended, or is none of our business: asking it will tell
        return False


def _begin(
    pids: Iterable[int], policy: Policy, cpu_share: float, for_s: float | None
) -> dict[int, FairleadError | None]:
    """All are asked before the first answer is waited for: one of many workers has work to do."""
    control.check(policy, cpu_share)
    settings = {"policy": policy, "cpu_share": cpu_share, "for_s": for_s}
    outcome: dict[int, FairleadError | None] = {}
    begun = []
    with ExitStack() as stack:
        for pid in pids:
            outcome[pid] = None
            try:
                directory = stack.enter_context(meeting(pid))
                stack.enter_context(attach.turn(pid))
                begun.append(attach.ask(pid, __name__, "begin_here", settings, directory))
            except FairleadError as error:
                outcome[pid] = error
        deadline = time.monotonic() + attach.ANSWER_S
        for one in begun:
            try:
                attach.answered(one, deadline)
            except FairleadError as error:
                outcome[one.pid] = error
    return outcome


def begin_here(wanted: dict[str, Any]) -> str:
    """In that process: switch the scheduler on. "ok", or why not."""
    try:
        control.switch(wanted["policy"], wanted["cpu_share"], for_s=wanted["for_s"])
        state()  # which ends the rest of hooks: the user looks at this program now, and at its end
    except FairleadError as error:
        return str(error)
    if wanted["policy"] != "stock" and state().switched_off:
        return f"fairlead ctl switched it off: fairlead ctl --pid {os.getpid()} interactive first"
    return "ok"
