"""The sums of all that was counted in this process."""

from __future__ import annotations

from fairlead.gil.observe.access import require
from fairlead.record.policies import CANARY_STATES

NAMES = {
    "observed_ns": "observed_seconds",
    "acquisitions": "acquisitions",
    "contended": "contended_acquisitions",
    "held_ns": "held_seconds",
    "held_off_cpu_ns": "held_off_cpu_seconds",
    "held_asleep_ns": "held_asleep_seconds",
    "waited_ns": "waited_seconds",
    "overrun_ns": "overrun_seconds",
    "forced_drops": "forced_drops",
    "voluntary_drops": "voluntary_drops",
    "requests": "drop_requests",
    "handoffs": "handoffs",
}

NOT_COUNTED = ("mode", "waiting", "tripped", "off", "canary")
"""What the scheduler says of the present moment."""


def totals() -> dict[str, float]:
    """See ``fairlead.gil.counters``."""
    require()
    from fairlead import _probe

    found: dict[str, float] = {}
    for key, value in _probe.totals().items():
        if isinstance(value, int) and key in NAMES:
            scale = 1e9 if key.endswith("_ns") else 1.0
            found[f"fairlead_gil_{NAMES[key]}_total"] = value / scale
    scheduler = _probe.scheduler()
    for state in ("kept", "rejected"):
        found[f"fairlead_gil_canary_{state}_total"] = float(CANARY_STATES[scheduler["canary"]] == state)
    for key in NOT_COUNTED:
        del scheduler[key]
    found["fairlead_gil_scheduled_seconds_total"] = scheduler.pop("scheduled_ns") / 1e9
    found["fairlead_gil_watchdog_trips_total"] = float(scheduler.pop("trips"))
    return found | {f"fairlead_gil_scheduler_{key}_total": float(value) for key, value in scheduler.items()}
