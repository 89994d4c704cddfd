"""From the events of a recording to holds and waits, chunk by chunk, GIL by GIL, in bounded memory.

A DROP says how long the thread held, an ACQUIRE how long it waited, so each interval comes from one event
and a lost one spoils no other. What stays open over the border of a chunk (a hold in progress, and what
happened in it; waits that have not ended) is carried along, and comes out at the end of the recording as
intervals that are not closed.

The rules of a lock are checked on the way: one holder at a time, every drop after an acquisition by the
same thread, times that never run backwards. A breach is excused only where events are known to be missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.record.recording import (
    CONTENDED,
    END,
    EVENT_FIELDS,
    FORCED,
    LOST,
    ROW,
    BlockType,
    EventType,
    Recording,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.void]

HOLD_FIELDS = [
    ("start", "<i8"), ("end", "<i8"), ("thread", "<i8"), ("asked", "<i8"), ("off_cpu", "<i8"),
    ("asleep", "<i8"), ("early", "<i8"), ("asked_late", "<i8"), ("collecting", "<i8"), ("turns", "<i8"),
    ("stack", "<u4"), ("forced", "?"), ("closed", "?"),
]  # fmt: skip
"""``asked``: when the first request came; ``end``, if none did. ``off_cpu``, ``asleep``, ``early`` and
``asked_late`` are what OFFCPU, ASLEEP, OFFCPU_EARLY and ASKED_LATE say of the hold; ``collecting``: how
long garbage was collected after the request. ``turns``: how many holds it is; more than one are a row of
short ones, moved together."""
WAIT_FIELDS = [("start", "<i8"), ("end", "<i8"), ("thread", "<i8"), ("closed", "?")]
IN_A_HOLD = (
    EventType.REQUEST,
    EventType.OFFCPU,
    EventType.ASLEEP,
    EventType.OFFCPU_EARLY,
    EventType.COLLECTED,
    EventType.ASKED_LATE,
)
CHUNK_EVENTS = 250_000
"""Blocks are put together until there are so many events: large enough for array arithmetic to pay."""


@dataclass(frozen=True, slots=True)
class IntervalChunk:
    """What one stretch of a recording says about one GIL. Times are ns since the recording's start.

    ``holds`` are in the order of time, and so is every later chunk's. ``waits`` are those that ended in
    this chunk, in the order of their ends. In the last chunk of a GIL both may hold intervals that are not
    closed, cut off at the end.
    """

    gil: int
    holds: Array
    waits: Array
    events: Array
    """As in the file, but with ``t_ns`` since the recording's start."""
    pending_since: int
    """No wait of a later chunk began before this time."""
    last: bool


@dataclass(slots=True)
class Intervals:
    """The holds and waits of a recording.

    Attributes, complete once ``chunks()`` has come to its end:
        end_ns: when the recording ended, since its start; or its events did.
        full_ns: when its events ended because the file was as large as it may be; 0: that did not happen.
        events: how many events were read.
        lost: (t0, t1, count) of the stretches in which events were lost.
        problems: breaches of the rules of a lock, one line.
    """

    recording: Recording
    end_ns: int = 0
    full_ns: int = 0
    events: int = 0
    lost: list[tuple[int, int, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _gils: dict[int, _Gil] = field(default_factory=dict)

    def chunks(self) -> Iterator[IntervalChunk]:
        """Every chunk of every GIL. The chunks of one GIL follow one another in time."""
        import numpy as np

        start = self.recording.meta.start_ns
        for block in self.recording.blocks(BlockType.LOST, BlockType.END, BlockType.FULL):
            if block.type != BlockType.LOST:
                if not self.full_ns:
                    self.end_ns = max(0, END.unpack_from(block.payload)[0] - start)
                self.full_ns = self.end_ns if block.type == BlockType.FULL else self.full_ns
            else:
                t0, t1, count = LOST.unpack_from(block.payload)
                self.lost.append((t0 - start, t1 - start, count))
        gathered: list[Array] = []
        size = 0
        for block in self.recording.blocks(BlockType.EVENTS):
            gathered.append(block.events())
            size += len(gathered[-1])
            if size >= CHUNK_EVENTS:
                yield from self._split(np.concatenate(gathered))
                gathered, size = [], 0
        if gathered:
            yield from self._split(np.concatenate(gathered))
        for gil in self._gils.values():
            yield gil.finish(self.end_ns)
            self.problems.extend(gil.breaches.lines())

    def _split(self, raw: Array) -> Iterator[IntervalChunk]:
        import numpy as np

        events = raw.astype([("t_ns", "<i8"), *EVENT_FIELDS[1:]])
        events["t_ns"] -= self.recording.meta.start_ns
        self.events += len(events)
        self.end_ns = max(self.end_ns, int(events["t_ns"].max()))
        for index in np.unique(events["gil"]).tolist():
            gil = self._gils.setdefault(index, _Gil(index, _Breaches(index, self.lost)))
            yield gil.take(events[events["gil"] == index])


@dataclass(slots=True)
class _Gil:
    """What is open at the border between two chunks of one GIL."""

    index: int
    breaches: _Breaches
    hold: tuple[int, int] | None = None
    """(since, thread)"""
    happened: Array | None = None
    """Events of a hold that has not ended yet."""
    waits: dict[int, int] = field(default_factory=dict)
    """thread -> since"""
    before: Array | None = None
    """The last ACQUIRE or DROP of the chunk before."""

    def take(self, events: Array) -> IntervalChunk:
        import numpy as np

        kind = events["kind"]
        turns = events[(kind == EventType.ACQUIRE) | (kind == EventType.DROP)]
        self.breaches.check(turns if self.before is None else np.concatenate([self.before, turns]))
        self.before = turns[-1:] if len(turns) else self.before
        holds = self._holds(events)
        acquired = turns[
            (turns["kind"] == EventType.ACQUIRE)
            & ((turns["flags"] & CONTENDED != 0) | (turns["value_ns"] > 0))
        ]
        waits = np.zeros(len(acquired), dtype=WAIT_FIELDS)
        waits["end"] = acquired["t_ns"]
        waits["start"] = _since(acquired)
        waits["thread"] = acquired["thread"]
        waits["closed"] = True
        self._carry(
            turns,
            events[(kind == EventType.WANT) | (kind == EventType.ACQUIRE) | (kind == EventType.THREAD_END)],
        )
        pending = min(self.waits.values(), default=int(events["t_ns"][-1]))
        return IntervalChunk(self.index, holds, waits, events, pending, last=False)

    def _carry(self, turns: Array, wants: Array) -> None:
        import numpy as np

        if len(turns):
            last = turns[-1]
            self.hold = (
                (int(last["t_ns"]), int(last["thread"])) if last["kind"] == EventType.ACQUIRE else None
            )
        threads, from_end = np.unique(wants["thread"][::-1], return_index=True)
        for thread, position in zip(threads.tolist(), from_end.tolist(), strict=True):
            event = wants[len(wants) - 1 - position]
            if event["kind"] == EventType.WANT:
                self.waits[thread] = int(event["t_ns"])
            else:
                self.waits.pop(thread, None)

    def _holds(self, events: Array) -> Array:
        """Those that end in this chunk, with what happened in each."""
        import numpy as np

        at = np.flatnonzero(events["kind"] == EventType.DROP)
        drops = events[at]
        holds = np.zeros(len(drops), dtype=HOLD_FIELDS)
        holds["end"] = drops["t_ns"]
        holds["start"] = _since(drops)
        for name in ("thread", "stack"):
            holds[name] = drops[name]
        holds["turns"] = np.where(drops["flags"] & ROW, drops["other"], 1)
        holds["forced"] = (drops["flags"] & FORCED) != 0
        holds["closed"] = True
        inside = np.flatnonzero(np.isin(events["kind"], IN_A_HOLD))
        happened, hold = events[inside], np.searchsorted(at, inside)
        if self.happened is not None:
            happened = np.concatenate([self.happened, happened])
            hold = np.concatenate([np.zeros(len(self.happened), dtype=hold.dtype), hold])
        over = hold < len(holds)
        self.happened = happened[~over]
        _tell(holds, happened[over], hold[over])
        return holds

    def finish(self, end_ns: int) -> IntervalChunk:
        import numpy as np

        holds = np.zeros(int(self.hold is not None), dtype=HOLD_FIELDS)
        if self.hold is not None:
            since, holds["thread"] = self.hold
            holds["turns"] = 1
            holds["start"], holds["end"] = since, max(end_ns, since)
            if self.happened is not None:
                _tell(holds, self.happened, np.zeros(len(self.happened), dtype=np.intp))
        waits = [(since, max(end_ns, since), thread, False) for thread, since in self.waits.items()]
        return IntervalChunk(
            self.index,
            holds,
            np.array(waits, dtype=WAIT_FIELDS),
            np.empty(0, dtype=[("t_ns", "<i8"), *EVENT_FIELDS[1:]]),
            end_ns,
            last=True,
        )


def _since(events: Array) -> Any:
    """When intervals began that ended at these events; never before the recording."""
    import numpy as np

    return np.maximum(events["t_ns"] - events["value_ns"].astype(np.int64), 0)


def _tell(holds: Array, happened: Array, hold: NDArray[np.intp]) -> None:
    """Notes in each hold what happened in it; ``hold[i]`` is the place of that of ``happened[i]``."""
    import numpy as np

    kind, times, values = happened["kind"], happened["t_ns"], happened["value_ns"].astype(np.int64)
    holds["asked"] = holds["end"]
    asked = (kind == EventType.REQUEST) & (times >= holds["start"][hold])
    np.minimum.at(holds["asked"], hold[asked], times[asked])
    for event, name in (
        (EventType.OFFCPU, "off_cpu"),
        (EventType.ASLEEP, "asleep"),
        (EventType.OFFCPU_EARLY, "early"),
        (EventType.ASKED_LATE, "asked_late"),
    ):
        told = kind == event
        np.maximum.at(holds[name], hold[told], values[told])
    collected = np.flatnonzero(kind == EventType.COLLECTED)
    began = np.maximum(times - values, holds["asked"][hold])[collected]
    np.add.at(holds["collecting"], hold[collected], np.maximum(times[collected] - began, 0))


@dataclass(slots=True)
class _Breaches:
    """Counts breaches of the rules of a lock in one GIL's row of ACQUIRE and DROP."""

    gil: int
    lost: list[tuple[int, int, int]]
    found: dict[str, tuple[int, int]] = field(default_factory=dict)
    """what -> (how often, when first)"""

    def check(self, turns: Array) -> None:
        import numpy as np

        before, after = turns[:-1], turns[1:]
        excused = np.zeros(len(after), dtype=bool)
        for t0, t1, _ in self.lost:
            excused |= (before["t_ns"] <= t1) & (after["t_ns"] >= t0)
        took, dropped = after["kind"] == EventType.ACQUIRE, after["kind"] == EventType.DROP
        had = before["kind"] == EventType.ACQUIRE
        same = before["thread"] == after["thread"]
        for what, breach in (
            ("acquired while it was held", took & had),
            ("dropped without having been acquired", dropped & ~had),
            ("dropped by another thread than its holder", dropped & had & ~same),
            ("time running backwards", after["t_ns"] < before["t_ns"]),
        ):
            at = np.flatnonzero(breach & ~excused)
            if len(at):
                count, first = self.found.get(what, (0, int(after["t_ns"][at[0]])))
                self.found[what] = (count + len(at), first)

    def lines(self) -> list[str]:
        return [
            f"GIL {self.gil}: {what} ({count} times, first at {first / 1e9:.6f} s): it contradicts itself"
            for what, (count, first) in self.found.items()
        ]
