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
    _last_holder: int = 0
    _requests: NDArray[np.int64] | None = None
    """Times of requests that came in a hold which has not ended yet."""
    _off_cpu: NDArray[np.void] | None = None
    """OFFCPU, ASLEEP and OFFCPU_EARLY events of a hold which has not ended yet."""

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
            sums.max_held = max(sums.max_held, int(lengths.max()))
            sums.forced += int(np.count_nonzero(mine["forced"]))
            sums.dropped += int(np.count_nonzero(mine["closed"]))
            sums.holds_by_size += _histogram(lengths[mine["closed"]])
        for thread, mine in _by_thread(waits):
            sums, lengths = self._of(thread), mine["end"] - mine["start"]
            sums.waited += int(lengths.sum())
            sums.max_wait = max(sums.max_wait, int(lengths.max()))
            sums.contended += int(np.count_nonzero(mine["closed"]))
            sums.waits_by_size += _histogram(lengths[mine["closed"]])
        self._add_overruns(chunk, off_cpu_after=self._add_off_cpu(chunk))

    def _add_overruns(self, chunk: IntervalChunk, *, off_cpu_after: NDArray[np.int64]) -> None:
        """Time from the first request that fell into a hold to its end; and the part off the CPU."""
        import numpy as np

        asked = chunk.events["t_ns"][chunk.events["kind"] == EventType.REQUEST]
        if self._requests is not None:
            asked = np.concatenate([self._requests, asked])
        holds = chunk.holds
        which = np.searchsorted(holds["end"], asked, side="left")
        self._requests = asked[which == len(holds)]
        asked, which = asked[which < len(holds)], which[which < len(holds)]
        inside = asked >= holds["start"][which]
        which, first = np.unique(which[inside], return_index=True)
        late = holds["end"][which] - asked[inside][first]
        late_off_cpu = np.minimum(late, off_cpu_after[which])
        for thread, mine in _groups(holds["thread"][which]):
            sums = self._of(thread)
            sums.overrun += int(late[mine].sum())
            sums.overrun_off_cpu += int(late_off_cpu[mine].sum())
            sums.max_overrun = max(sums.max_overrun, int(late[mine].max()))

    def _add_off_cpu(self, chunk: IntervalChunk) -> NDArray[np.int64]:
        """The time off the CPU in each hold, but for what lay before the first request.

        An OFFCPU tells it of the hold that ends with it, an ASLEEP and an OFFCPU_EARLY parts of that.
        """
        import numpy as np

        kinds = chunk.events["kind"]
        seen = chunk.events[np.isin(kinds, _OF_A_HOLD)]
        if self._off_cpu is not None:
            seen = np.concatenate([self._off_cpu, seen])
        self.off_cpu_known = self.off_cpu_known or len(seen) > 0
        which = np.searchsorted(chunk.holds["end"], seen["t_ns"], side="left")
        self._off_cpu = seen[which == len(chunk.holds)]
        within = which < len(chunk.holds)
        off_cpu, asleep, before = longest = np.zeros((len(_OF_A_HOLD), len(chunk.holds)), dtype=np.int64)
        for kind, row in zip(_OF_A_HOLD, longest, strict=True):
            told = within & (seen["kind"] == kind)
            np.maximum.at(row, which[told], seen["value_ns"][told].astype(np.int64))
        for thread, mine in _groups(chunk.holds["thread"]):
            sums = self._of(thread)
            sums.off_cpu += int(off_cpu[mine].sum())
            sums.asleep += int(asleep[mine].sum())
        return off_cpu - before

    def _of(self, thread: int) -> _Sums:
        return self._threads.setdefault(thread, _Sums())

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


def _histogram(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    import numpy as np

    # frexp gives x = m * 2^e with 0.5 <= m < 1, so that e - 1 is the floor of log2, exactly
    buckets = np.frexp(lengths.astype(np.float64))[1] - 1
    return np.bincount(np.clip(buckets, 0, HISTOGRAM_BUCKETS - 1), minlength=HISTOGRAM_BUCKETS)


def _as_tuple(histogram: Any) -> tuple[int, ...]:
    return (0,) * HISTOGRAM_BUCKETS if isinstance(histogram, int) else tuple(histogram.tolist())
