"""A battle for the GIL, event by event: what the lab's ``gil.trace`` and ``gil.battle`` leave in a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

EventKind = Literal["want", "request", "take", "drop", "forced drop", "hand-over", "busy"]
"""want: it begins to wait. request: it asks the holder to drop. take: it has the GIL. drop: it lets go by
itself. forced drop: after a request. hand-over: the waiter has it now. busy: it was woken and finds it taken,
before Python 3.2."""

EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One thing that one thread did."""

    t_us: float
    """Since the beginning of the trace."""
    kind: EventKind
    thread: int
    """Index of the thread."""
    other: int | None
    """Index of the thread that it concerns: the holder for a want or a request, the next for a hand-over."""
    value_us: float
    """For how long it waited (request, take, busy) or held (drop)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GilTrace:
    """The beginning of a battle in its order, and the counts of all of it."""

    n: int
    """The size of the sample."""
    threads: tuple[str, ...]
    events: tuple[TraceEvent, ...]
    left_out: int
    """How many events came later."""
    counts: dict[str, int]
    """By kind; and "switch", takes by another thread than the one before."""
    answer_us: float | None
    """Median from the first request to the drop."""
    gap_us: float | None
    """Median, at a switch, from the drop to the take: no thread has the GIL meanwhile."""

    @classmethod
    def from_details(cls, n: int, details: Mapping[str, Any]) -> GilTrace | None:
        """Read it from the details of a sample; None when they hold none, or none that makes sense."""
        try:
            trace = details["trace"]
            threads = tuple(str(name) for name in trace["threads"])
            events = tuple(
                TraceEvent(float(t_us), _kind(kind), int(thread), _index(other), float(value_us))
                for t_us, kind, thread, other, value_us in trace["events"]
            )
            if any(
                not 0 <= index < len(threads)
                for event in events
                for index in (event.thread, event.other or 0)
            ):
                return None
            return cls(
                n=n,
                threads=threads,
                events=events,
                left_out=int(trace["left_out"]),
                counts={str(name): int(count) for name, count in trace["counts"].items()},
                answer_us=_number(trace["answer_us"]),
                gap_us=_number(trace["gap_us"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def holds(self) -> list[tuple[int, float, float]]:
        """(thread, from, to) in us of the holds that ended within the events."""
        return [
            (event.thread, max(0.0, event.t_us - event.value_us), event.t_us)
            for event in self.events
            if event.kind in ("drop", "forced drop")
        ]

    def waits(self) -> list[tuple[int, float, float]]:
        """(thread, from, to) in us of the waits that ended within the events."""
        return [
            (event.thread, max(0.0, event.t_us - event.value_us), event.t_us)
            for event in self.events
            if event.kind == "take" and event.value_us > 0
        ]


def _kind(kind: Any) -> EventKind:
    return EVENT_KINDS[EVENT_KINDS.index(kind)]


def _index(other: Any) -> int | None:
    return None if other is None else int(other)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
