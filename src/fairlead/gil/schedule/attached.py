"""Schedules a program that runs already, for a while. See ``fairlead.gil.observe.programs.attach``."""

from __future__ import annotations

import json
from typing import Any

from fairlead.errors import FairleadError
from fairlead.gil.observe.programs import attach
from fairlead.gil.observe.programs.meeting import meeting
from fairlead.gil.schedule import control
from fairlead.gil.schedule.control import Policy


def begin(pid: int, policy: Policy, cpu_share: float, for_s: float | None) -> None:
    """Schedule another process, for so many seconds; None: until it is told otherwise.

    Raises: as ``attach.record``.
    """
    control.check(policy, cpu_share)
    settings = {"policy": policy, "cpu_share": cpu_share, "for_s": for_s}
    with meeting(pid) as directory:
        attach.call(pid, __name__, "begin_here", settings, directory)


def begin_here(settings: str) -> str:
    """In that process: switch the scheduler on. "ok", or why not."""
    wanted: dict[str, Any] = json.loads(settings)
    try:
        control.switch(wanted["policy"], wanted["cpu_share"], for_s=wanted["for_s"])
    except FairleadError as error:
        return str(error)
    return "ok"
