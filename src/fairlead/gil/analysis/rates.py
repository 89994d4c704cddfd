"""What happened between two snapshots of the counters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from fairlead.record.gil_summary import Blame, GilThread, LoopDelays

_GROWING = (
    "acquisitions", "contended", "held_seconds", "held_off_cpu_seconds", "held_asleep_seconds",
    "waited_seconds", "overrun_seconds", "overrun_off_cpu_seconds", "forced_drops", "voluntary_drops",
    "requests", "handoffs",
)  # fmt: skip


def between(before: Iterable[GilThread], after: Iterable[GilThread]) -> list[GilThread]:
    """Each thread's counts since the first snapshot; the longest wait and hold stay those since the start.

    Threads that did nothing in between are left out.
    """
    earlier = {(thread.gil, thread.serial): thread for thread in before}
    found = []
    for thread in after:
        past = earlier.get((thread.gil, thread.serial))
        if past is not None:
            changed: dict[str, Any] = {
                name: getattr(thread, name) - (getattr(past, name) or 0)
                for name in _GROWING
                if getattr(thread, name) is not None
            }
            for name in ("wait_histogram", "held_histogram"):
                now, then = getattr(thread, name), getattr(past, name)
                changed[name] = (
                    tuple(a - b for a, b in zip(now, then, strict=True)) if len(now) == len(then) else now
                )
            lately = replace(thread, **changed)
        else:
            lately = thread
        if lately.acquisitions or lately.held_seconds > 0 or lately.waited_seconds > 0:
            found.append(lately)
    return sorted(found, key=lambda thread: -(thread.held_seconds + thread.waited_seconds))


def parse_counters(counters: dict[str, Any]) -> tuple[list[GilThread], list[Blame]]:
    """The threads and the blame of a COUNTERS block."""
    threads = [GilThread.from_counters(entry) for entry in counters.get("threads", ())]
    blame = [
        Blame(gil=gil, waiter=waiter, holder=holder, seconds=ns / 1e9)
        for gil, waiter, holder, ns in counters.get("blame", ())
    ]
    return threads, blame


def parse_loops(counters: dict[str, Any]) -> tuple[tuple[LoopDelays, ...], tuple[tuple[str, float], ...]]:
    """The watched event loops of a COUNTERS block, and the seconds of their callbacks, dearest first."""
    loops = tuple(
        LoopDelays(
            name=entry["name"],
            beats=entry["beats"],
            late=entry["late"],
            own_seconds=entry["own_ns"] / 1e9,
            gil_seconds=entry["gil_ns"] / 1e9,
            core_seconds=entry["core_ns"] / 1e9,
            overdue_seconds=entry["overdue_ns"] / 1e9,
        )
        for entry in counters.get("loops", ())
        if entry["beats"] or entry["overdue_ns"]  # others were watched before
    )
    callbacks = sorted(((name, ns / 1e9) for name, ns in counters.get("callbacks", ()) if ns), key=_dearest)
    return loops, tuple(callbacks)


def _dearest(callback: tuple[str, float]) -> float:
    return -callback[1]
