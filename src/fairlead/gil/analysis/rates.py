"""What happened between two snapshots of the counters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, get_args

from fairlead.record.gil_summary import Blame, Collection, Doing, GilThread, IdleLook, LoopDelays
from fairlead.record.recording import Frames

PARTS = (
    "seconds",
    "asked_seconds",
    "late_seconds",
    "asleep_seconds",
    "collecting_seconds",
    "coreless_seconds",
)
"""Of a Blame."""
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


def parse_threads(counters: dict[str, Any]) -> list[GilThread]:
    """The threads of a COUNTERS block."""
    return [GilThread.from_counters(entry) for entry in counters.get("threads", ())]


def parse_blame(rows: Iterable[Iterable[int]]) -> list[Blame]:
    """Cells as the extension has them: gil, waiter, holder, and the ns of each of PARTS."""
    return [
        Blame(
            gil=gil,
            waiter=waiter,
            holder=holder,
            **{part: ns / 1e9 for part, ns in zip(PARTS, ticks, strict=False)},
        )
        for gil, waiter, holder, *ticks in rows
    ]


def parse_collections(rows: Iterable[Iterable[int]], frames: Callable[[int], Frames]) -> list[Collection]:
    """Likewise; ``frames`` gives those of a stack by its number."""
    return [
        Collection(
            thread=thread,
            generation=generation,
            frames=frames(stack),
            runs=runs,
            seconds=ns / 1e9,
            max_seconds=longest / 1e9,
        )
        for thread, generation, stack, runs, ns, longest in rows
    ]


def parse_looks(rows: Iterable[Iterable[int]], frames: Callable[[int], Frames]) -> list[IdleLook]:
    """Likewise, dearest first."""
    doings = get_args(Doing)
    looks = [
        IdleLook(
            thread=thread,
            doing=doings[doing] if doing < len(doings) else "else",
            frames=frames(stack),
            seconds=ns / 1e9,
        )
        for thread, doing, stack, ns in rows
    ]
    return sorted(looks, key=lambda look: -look.seconds)


def rows_between(
    before: Iterable[list[int]], after: Iterable[list[int]], keys: int, *, maxima: int = 0
) -> list[list[int]]:
    """Rows of a COUNTERS block as they grew since the first snapshot. A row begins with so many keys; the
    last ``maxima`` of its numbers stay those since the start. Rows that did not grow are left out."""
    earlier = {tuple(row[:keys]): row for row in before}
    found = []
    for row in after:
        past = earlier.get(tuple(row[:keys]), [0] * len(row))
        end = len(row) - maxima
        grown = [now - then for now, then in zip(row[keys:end], past[keys:end], strict=True)]
        if any(grown):
            found.append([*row[:keys], *grown, *row[end:]])
    return found


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
