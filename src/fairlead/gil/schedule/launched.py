"""In a program that is to be scheduled from its start: switches the scheduler on before the first line."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from fairlead.errors import FairleadError
from fairlead.gil.schedule.control import check, slacken, switch

VARIABLE = "FAIRLEAD_GIL"
SHARE_VARIABLE = "FAIRLEAD_GIL_CPU_SHARE"
DEFAULT_SHARE = 0.05


def begin(settings: str) -> str | None:
    """Schedule this program, or say why that cannot be.

    On a free-threaded build the program goes on: it lacks nothing, there is no GIL to schedule.

    Args:
        settings: policy, cpu_share, timer_slack, canary_s (or null) and pid (of the process that was asked
            for) as JSON.
    """
    wanted: dict[str, Any] = json.loads(settings)
    free_threaded = "t" in sys.abiflags
    if free_threaded and wanted["policy"] != "stock" and wanted["pid"] in (None, os.getpid()):
        _say(f"{sys.executable} is a free-threaded build: there is no GIL to schedule; it runs as it is")
    try:
        if free_threaded or wanted["policy"] == "stock":
            slacken(wanted["timer_slack"])
        elif wanted["canary_s"] is not None:
            from fairlead.gil.schedule import canary

            canary.begin(wanted["policy"], wanted["cpu_share"], wanted["canary_s"])
            slacken(wanted["timer_slack"])
        else:
            switch(wanted["policy"], wanted["cpu_share"], wanted["timer_slack"])
    except FairleadError as error:
        return str(error)
    return None


def begin_from_environment() -> None:
    """What the hook in site-packages calls in every program that has FAIRLEAD_GIL in its environment.

    Nothing that is wrong keeps the program from starting: it is said in one line, and the interpreter
    schedules as ever.
    """
    policy = os.environ.get(VARIABLE, "")
    if not policy or sys.flags.ignore_environment or __name__ in os.environ.get("FAIRLEAD_START", ""):
        return  # the last: `fairlead run` has something to say, and is asked next
    share = os.environ.get(SHARE_VARIABLE) or str(DEFAULT_SHARE)
    try:
        check(policy, float(share))
    except ValueError as error:
        why: str | None = f"{VARIABLE}={policy} {SHARE_VARIABLE}={share}: {error}"
    else:
        wanted = {"policy": policy, "cpu_share": float(share), "timer_slack": None, "canary_s": None}
        wanted["pid"] = None
        why = begin(json.dumps(wanted))
    if why is not None:
        _say(f"{why}; going on without")


def _say(text: str) -> None:
    if sys.stderr is not None:
        print(f"fairlead: {text}", file=sys.stderr, flush=True)
