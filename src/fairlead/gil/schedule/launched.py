"""In a program that is to be scheduled from its start: switches the scheduler on before the first line."""

from __future__ import annotations

import os
import sys

from fairlead.errors import FairleadError
from fairlead.gil.observe.importing import when_imported
from fairlead.gil.schedule.control import check, slacken, switch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fairlead.record.policies import Policy

VARIABLE = "FAIRLEAD_GIL"
SHARE_VARIABLE = "FAIRLEAD_GIL_CPU_SHARE"
DEFAULT_SHARE = 0.05


def begin(wanted: dict[str, Any]) -> str | None:
    """Schedule this program, or say why that cannot be.

    Args:
        wanted: policy, cpu_share, timer_slack and canary_s (or None).
    """
    if wanted["policy"] != "stock" and "t" in sys.abiflags:
        return (
            f"{sys.executable} is a free-threaded build and has no GIL to schedule: run the program without"
            " fairlead, or with fairlead run --if-possible"
        )
    try:
        if wanted["policy"] == "stock":
            slacken(wanted["timer_slack"])
        elif wanted["canary_s"] is not None:
            try_first(wanted["policy"], wanted["cpu_share"], wanted["canary_s"])
            slacken(wanted["timer_slack"])
        else:
            switch(wanted["policy"], wanted["cpu_share"], wanted["timer_slack"])
    except FairleadError as error:
        return str(error)
    return None


def try_first(policy: Policy, cpu_share: float, window_s: float) -> None:
    """Have a canary (``canary.py``) in this process as soon as it starts a thread, and in each child that it
    forks.

    A process of one thread has nothing to try, and a thread of ours would be in the way of its forks.
    """
    switch("stock", cpu_share)
    pid = [0]

    def wrap(threading: Any) -> None:
        original = threading.Thread.start

        def start(self: Any) -> None:
            if pid[0] != os.getpid():
                pid[0] = os.getpid()
                begin_canary(original, threading.Thread)
            original(self)

        threading.Thread.start = start

    def begin_canary(start: Any, thread: Any) -> None:
        try:
            from fairlead.gil.schedule.canary import Canary
        except ImportError as error:  # a module of the program may stand in for one of Python's
            _say(f"process {os.getpid()}: the canary has ended: {error}")
        else:
            canary = Canary(policy, cpu_share, window_s)
            start(thread(target=canary.run, name="fairlead-canary", daemon=True))

    when_imported("threading", wrap)
    os.register_at_fork(after_in_child=lambda: switch("stock", cpu_share, trial=True))


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
        why = begin({"policy": policy, "cpu_share": float(share), "timer_slack": None, "canary_s": None})
    if why is not None:
        _say(f"{why}; going on without")


def _say(text: str) -> None:
    if sys.stderr is not None:
        print(f"fairlead: {text}", file=sys.stderr, flush=True)
