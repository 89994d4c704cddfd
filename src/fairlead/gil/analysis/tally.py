"""What each thread did with one GIL, added up exactly from holds, waits and events.

All sums are kept in integer nanoseconds and turned into seconds at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.record.gil_intervals import IntervalChunk
from fairlead.record.gil_summary import HISTOGRAM_BUCKETS, GilThread
from fairlead.record.recording import CONTENDED, EventType, Thread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_OF_A_HOLD = (EventType.OFFCPU, EventType.ASLEEP, EventType.OFFCPU_EARLY)


@dataclass(slots=True)
class _Sums:
    """Of one thread; ns where it is time."""

    acquisitions: int = 0
    contended: int = 0
    held: int = 0
    off_cpu: int = 0
    asleep: int = 0
    waited: int = 0
    max_wait: int = 0
    max_held: int = 0
    overrun: int = 0
    overrun_off_cpu: int = 0
    max_overrun: int = 0
    forced: int = 0
    dropped: int = 0
    requests: int = 0
    handoffs: int = 0
    waits_by_size: Any = 0
    holds_by_size: Any = 0


@dataclass(slots=True)
class Tally:
    """Adds up one GIL, chunk by chunk."""

    gil: int
    switches: int = 0
    off_cpu_known: bool = False
    _threads: dict[int, _Sums] = field(default_factory=dict)
    _spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of each thread, when something first happened to it, and last."""
    _last_holder: int = 0

    def add(self, chunk: IntervalChunk) -> None:
        import numpy as np

        events, holds, waits = chunk.events, chunk.holds, chunk.waits
        acquired = events[events["kind"] == EventType.ACQUIRE]
        for thread, count in _count(acquired["thread"]):
            self._of(thread).acquisitions += count
        row = np.concatenate([[self._last_holder], acquired["thread"]])
        self.switches += int(np.count_nonzero((row[1:] != row[:-1]) & (row[:-1] != 0)))
        self._last_holder = int(row[-1])
        for thread, count in _count(events["thread"][events["kind"] == EventType.REQUEST]):
            self._of(thread).requests += count
        passed = (acquired["flags"] & CONTENDED != 0) & (acquired["other"] != acquired["thread"])
        for thread, count in _count(acquired["other"][passed & (acquired["other"] != 0)]):
            self._of(thread).handoffs += count
        for thread, mine in _by_thread(holds):
            sums, lengths = self._of(thread), mine["end"] - mine["start"]
            sums.held += int(lengths.sum())
            sums.max_held = max(sums.max_held, int((lengths // mine["turns"]).max()))
            sums.off_cpu += int(mine["off_cpu"].sum())
            sums.asleep += int(mine["asleep"].sum())
            sums.forced += int(np.count_nonzero(mine["forced"]))
            turns = mine["turns"][mine["closed"]]
            sums.acquisitions += int(turns.sum()) - len(turns)
            sums.dropped += int(turns.sum())
            # of a row's holds the mean is known
            sums.holds_by_size += _histogram(lengths[mine["closed"]] // turns, turns)
        for thread, mine in _by_thread(waits):
            sums, lengths = self._of(thread), mine["end"] - mine["start"]
            sums.waited += int(lengths.sum())
            sums.max_wait = max(sums.max_wait, int(lengths.max()))
            sums.contended += int(np.count_nonzero(mine["closed"]))
            sums.waits_by_size += _histogram(lengths[mine["closed"]])
        for thread, at in _groups(events["thread"]):
            first, last = int(events["t_ns"][at[0]]), int(events["t_ns"][at[-1]])
            self._spans[thread] = self._spans.get(thread, (first, last))[0], last
        self._add_overruns(holds)
        self.off_cpu_known = self.off_cpu_known or bool(np.isin(events["kind"], _OF_A_HOLD).any())

    def _add_overruns(self, holds: NDArray[np.void]) -> None:
        """Time from the first request that fell into a hold to its end; and its parts."""
        import numpy as np

        asked = holds[holds["asked"] < holds["end"]]
        late = asked["end"] - asked["asked"]
        late_off_cpu = np.minimum(late, asked["off_cpu"] - asked["early"])
        for thread, mine in _groups(asked["thread"]):
            sums = self._of(thread)
            sums.overrun += int(late[mine].sum())
            sums.overrun_off_cpu += int(late_off_cpu[mine].sum())
            sums.max_overrun = max(sums.max_overrun, int(late[mine].max()))

    def _of(self, thread: int) -> _Sums:
        return self._threads.setdefault(thread, _Sums())

    def at_once(self) -> int:
        """How many threads there were at the same time, at most."""
        steps = sorted(
            [(first, 1) for first, _ in self._spans.values()]
            + [(last + 1, -1) for _, last in self._spans.values()]
        )
        now = most = 0
        for _, step in steps:
            now += step
            most = max(most, now)
        return most

    def threads(self, known: dict[int, Thread]) -> list[GilThread]:
        """One record for each thread that had to do with this GIL."""
        return [
            GilThread(
                serial=serial,
                name=(known[serial].name if serial in known else "") or f"thread {serial}",
                native_id=known[serial].native_id if serial in known else 0,
                gil=self.gil,
                acquisitions=sums.acquisitions,
                contended=sums.contended,
                held_seconds=sums.held / 1e9,
                held_off_cpu_seconds=sums.off_cpu / 1e9 if self.off_cpu_known else None,
                held_asleep_seconds=sums.asleep / 1e9 if self.off_cpu_known else None,
                waited_seconds=sums.waited / 1e9,
                max_wait_seconds=sums.max_wait / 1e9,
                max_held_seconds=sums.max_held / 1e9,
                overrun_seconds=sums.overrun / 1e9,
                overrun_off_cpu_seconds=sums.overrun_off_cpu / 1e9 if self.off_cpu_known else None,
                max_overrun_seconds=sums.max_overrun / 1e9,
                forced_drops=sums.forced,
                voluntary_drops=sums.dropped - sums.forced,
                requests=sums.requests,
                handoffs=sums.handoffs,
                wait_histogram=_as_tuple(sums.waits_by_size),
                held_histogram=_as_tuple(sums.holds_by_size),
            )
            for serial, sums in self._threads.items()
        ]


def _groups(threads: NDArray[Any]) -> list[tuple[int, NDArray[np.intp]]]:
    """(thread, positions) for each thread in the array."""
    import numpy as np

    order = np.argsort(threads, kind="stable")
    names, starts = np.unique(threads[order], return_index=True)
    return list(zip(names.tolist(), np.split(order, starts[1:]), strict=True)) if len(names) else []


def _by_thread(intervals: NDArray[np.void]) -> list[tuple[int, NDArray[np.void]]]:
    return [(thread, intervals[positions]) for thread, positions in _groups(intervals["thread"])]


def _count(threads: NDArray[Any]) -> list[tuple[int, int]]:
    import numpy as np

    names, counts = np.unique(threads, return_counts=True)
    return list(zip(names.tolist(), counts.tolist(), strict=True))


def _histogram(lengths: NDArray[np.int64], times: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    import numpy as np

    # frexp gives x = m * 2^e with 0.5 <= m < 1, so that e - 1 is the floor of log2, exactly
    buckets = np.frexp(lengths.astype(np.float64))[1] - 1
    within = np.clip(buckets, 0, HISTOGRAM_BUCKETS - 1)
    return np.bincount(within, weights=times, minlength=HISTOGRAM_BUCKETS).astype(np.int64)


def _as_tuple(histogram: Any) -> tuple[int, ...]:
    return (0,) * HISTOGRAM_BUCKETS if isinstance(histogram, int) else tuple(histogram.tolist())
