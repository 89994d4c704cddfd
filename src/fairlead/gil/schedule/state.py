"""What the scheduler is, and has done."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.gil.observe.access import require
from fairlead.gil.schedule import control
from fairlead.record.policies import CANARY_STATES, POLICIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.record.policies import CanaryState, Policy


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


def state() -> Scheduler:
    """``fairlead.gil.scheduler``."""
    require()
    from fairlead import _probe

    counts = _probe.scheduler()
    return Scheduler(
        policy=POLICIES[counts.pop("mode")],
        cpu_share=control.share,
        watchdog_tripped=bool(counts.pop("tripped")),
        watchdog_trips=counts.pop("trips"),
        switched_off=bool(counts.pop("off")),
        canary=CANARY_STATES[counts.pop("canary")],
        scheduled_seconds=counts.pop("scheduled_ns") / 1e9,
        **counts,
    )
