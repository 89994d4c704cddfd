"""The scheduler's switch, its state, and the priorities of threads."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from fairlead import machine
from fairlead.errors import UnsupportedInterpreterError, UsageError
from fairlead.gil.observe import tested
from fairlead.gil.observe.access import require
from fairlead.record.policies import CANARY_STATES, POLICIES, PRIORITIES
from fairlead.record.policies import CanaryState as CanaryState
from fairlead.record.policies import Policy as Policy
from fairlead.record.policies import Priority as Priority

SHARE_ONE = 1024
SPIN_QUOTA = 2.5
"""Cores: one for the holder of the GIL, one for the thread that spins, and a margin for what runs beside."""
NICE = {"io": -5, "background": 10}
FOREVER_NS = 2**62
"""More than a hundred years."""

_share = 0.05
_open = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """What the scheduler of the main interpreter's GIL is, and has done since it was first switched on."""

    policy: Policy
    """"stock" before it was switched on, too, after the watchdog has given up, and where the hooks do not see
    the threads that wait."""
    cpu_share: float
    waiting: int
    """Threads that wait for the GIL now."""
    watchdog_tripped: bool
    watchdog_trips: int
    """How often it has given up."""
    switched_off: bool
    """By ``fairlead ctl --pid N off``: what the program asks for changes nothing, until another order."""
    canary: CanaryState
    """Of ``fairlead run --canary``: "tries", then "kept" or "rejected"; "none" without one."""
    scheduled_seconds: float
    """Time under another policy than "stock"."""
    acquisitions: int
    waits: int
    """Acquisitions that had to wait."""
    forced_drops: int
    direct_handovers: int
    """Drops that named their successor."""
    dropped_unclaimed: int
    """Drops that woke no waiter, because the thread was expected back at once."""
    requests: int
    """Holders that were asked to drop the GIL."""
    repeated_requests: int
    woken_early: int
    """Sleeping waiters that were woken to set their timers anew."""
    slices: int
    """Times that computing threads went first for the sake of their share."""
    spins: int
    """Waits that began on the core, not asleep; none by a thread that may use one core only."""
    withdrawn: int
    """Grants taken back because their thread did not get to run within a millisecond."""


def check(policy: str, cpu_share: float, timer_slack: float | None = None) -> None:
    """Raises UsageError unless these can be given to ``switch``."""
    if policy not in POLICIES:
        raise UsageError(f"no policy {policy!r}; it is one of {', '.join(POLICIES)}")
    if not 0.01 <= cpu_share <= 0.95:
        raise UsageError(
            f"cpu_share is from .01 to .95, not {cpu_share:g}: .05 keeps 5 % of the GIL for computing threads"
        )
    if timer_slack is not None and not 1e-9 <= timer_slack <= 1:
        raise UsageError(f"timer_slack is from 1e-9 to 1 second, not {timer_slack}")


def slacken(timer_slack: float | None) -> None:
    """Sets this thread's timer slack, and that of those that it starts; None leaves it.

    Raises:
        UnsupportedInterpreterError: the system has none.
    """
    if timer_slack is not None and not machine.set_timer_slack_ns(round(timer_slack * 1e9)):
        raise UnsupportedInterpreterError("only Linux has timer slack: leave it out")


def may_spin(cores: machine.Cores) -> bool:
    """Whether a waiting thread may look for the GIL on its core: not if that can use a CPU quota up.

    When a quota is used up, the kernel stops the whole process for the rest of a period, the holder included.
    That costs more than all that spinning wins.
    """
    return cores.usable > 1 and (cores.quota is None or cores.quota >= SPIN_QUOTA)


def switch(
    policy: Policy,
    cpu_share: float,
    timer_slack: float | None = None,
    for_s: float | None = None,
    *,
    trial: bool = False,
) -> bool:
    """``fairlead.gil.schedule``; after so many seconds the interpreter's own scheduling is back.

    False: this is a trial, and another process has ordered a policy, which stays.

    The hooks see to that end, and not a thread of ours: forked children keep to it, and nothing else is in
    the program for it.
    """
    global _share
    check(policy, cpu_share, timer_slack)
    require()
    from fairlead import _probe

    for_ns = 0 if for_s is None else max(1, min(round(for_s * 1e9), FOREVER_NS))
    spin = may_spin(machine.cores())
    done = _probe.schedule(POLICIES.index(policy), round(cpu_share * SHARE_ONE), spin, for_ns, trial)
    tested.warn()
    _share = cpu_share
    _open_to_orders()
    slacken(timer_slack)
    return done


def _open_to_orders() -> None:
    """``fairlead ctl`` finds this process, and each child that it forks (see ``outside.py``)."""
    global _open
    if not _open:
        from fairlead import _probe

        _open = True
        _probe.control()


def canary(now: CanaryState) -> None:
    """Say what a trial has come to, for ``state()``, the counters and ``fairlead ctl``.

    Raises: as ``switch``.
    """
    require()
    from fairlead import _probe

    _probe.canary(CANARY_STATES.index(now))


def state() -> Scheduler:
    """``fairlead.gil.scheduler``."""
    require()
    from fairlead import _probe

    counts = _probe.scheduler()
    return Scheduler(
        policy=POLICIES[counts.pop("mode")],
        cpu_share=_share,
        watchdog_tripped=bool(counts.pop("tripped")),
        watchdog_trips=counts.pop("trips"),
        switched_off=bool(counts.pop("off")),
        canary=CANARY_STATES[counts.pop("canary")],
        scheduled_seconds=counts.pop("scheduled_ns") / 1e9,
        **counts,
    )


@contextmanager
def prioritised(level: Priority) -> Iterator[None]:
    """``fairlead.gil.priority``."""
    if level not in PRIORITIES:
        raise UsageError(f"no priority {level!r}; it is one of {', '.join(PRIORITIES)}")
    try:
        require()
    except UnsupportedInterpreterError:
        with _nice(level):
            yield
        return
    from fairlead import _probe

    before = _probe.priority(PRIORITIES.index(level))
    try:
        yield
    finally:
        _probe.priority(before)


@contextmanager
def _nice(level: Priority) -> Iterator[None]:
    """Where there is no GIL to schedule, the kernel's scheduler is told, as far as it lets us."""
    if level not in NICE or sys.platform != "linux":
        yield
        return
    thread = threading.get_native_id()
    before = os.getpriority(os.PRIO_PROCESS, thread)
    wanted = (min if level == "io" else max)(before, NICE[level])
    with suppress(PermissionError):  # only the privileged may raise a thread
        os.setpriority(os.PRIO_PROCESS, thread, wanted)
    try:
        yield
    finally:
        with suppress(PermissionError):  # likewise: else the thread stays in the background
            os.setpriority(os.PRIO_PROCESS, thread, before)
