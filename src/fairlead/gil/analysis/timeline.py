"""Gathers a timeline while a recording is analysed, in memory that does not grow with the recording.

Two things are kept for each thread: how much it held and waited in each of some 2,000 bins, exactly; and
single intervals, as long as there are not too many. When there are, the shortest go first: the long ones
are what one looks for, and the bins still tell of the short ones. The width of a bin starts small and
doubles, neighbours being put together, whenever the recording has outgrown them, since its end is not known
beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.record.gil_intervals import IntervalChunk
from fairlead.record.gil_timeline import Lane, Timeline

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BINS = 2048
FIRST_BIN_NS = 1024
MOST_INTERVALS = 150_000
MOST_THREADS = 256
"""Further threads have no lane."""
MOST_LANES = 40
"""Of those, the dearest are shown."""


@dataclass(slots=True)
class _Kind:
    bins: NDArray[np.int64]
    intervals: list[NDArray[np.int64]] = field(default_factory=list)


@dataclass(slots=True)
class TimelineCollector:
    """``analyse(recording, watch=collector.watch)``, then ``collector.timeline(end_ns)``."""

    bin_ns: int = FIRST_BIN_NS
    shortest_ns: int = 0
    _lanes: dict[tuple[int, int], tuple[_Kind, _Kind]] = field(default_factory=dict)
    _left_out: set[tuple[int, int]] = field(default_factory=set)
    _intervals: int = 0

    def watch(self, chunk: IntervalChunk) -> None:
        import numpy as np

        ends = [int(found["end"].max()) for found in (chunk.holds, chunk.waits) if len(found)]
        while ends and max(ends) > self.bin_ns * BINS:
            self._double()
        for which, found in enumerate((chunk.holds, chunk.waits)):
            for thread in np.unique(found["thread"]).tolist():
                kind = self._kind((chunk.gil, thread), which)
                if kind is not None:
                    self._add(kind, found[found["thread"] == thread])
        while self._intervals > MOST_INTERVALS:
            self._forget_short()

    def _kind(self, key: tuple[int, int], which: int) -> _Kind | None:
        import numpy as np

        if key not in self._lanes:
            if len(self._lanes) >= MOST_THREADS:
                self._left_out.add(key)
                return None
            self._lanes[key] = (_Kind(np.zeros(BINS, np.int64)), _Kind(np.zeros(BINS, np.int64)))
        return self._lanes[key][which]

    def _add(self, kind: _Kind, found: NDArray[np.void]) -> None:
        import numpy as np

        starts, ends = found["start"], found["end"]
        # the covered time up to each edge; a thread's intervals of one kind do not overlap
        edges = np.arange(BINS + 1, dtype=np.int64) * self.bin_ns
        before = np.searchsorted(ends, edges, side="right")
        covered = np.concatenate([[0], np.cumsum(ends - starts)])[before]
        begun = before < len(found)
        covered[begun] += np.maximum(edges[begun] - starts[before[begun]], 0)
        kind.bins += np.diff(covered)
        pairs = np.column_stack([starts, ends])[ends - starts >= self.shortest_ns]
        kind.intervals.append(pairs)
        self._intervals += len(pairs)

    def _double(self) -> None:
        self.bin_ns *= 2
        for lane in self._lanes.values():
            for kind in lane:
                half = kind.bins.reshape(-1, 2).sum(axis=1)
                kind.bins[: BINS // 2] = half
                kind.bins[BINS // 2 :] = 0

    def _forget_short(self) -> None:
        self.shortest_ns = max(1024, self.shortest_ns * 2)
        self._intervals = 0
        for lane in self._lanes.values():
            for kind in lane:
                kind.intervals = [
                    pairs[pairs[:, 1] - pairs[:, 0] >= self.shortest_ns] for pairs in kind.intervals
                ]
                self._intervals += sum(map(len, kind.intervals))

    def timeline(self, end_ns: int) -> Timeline:
        """What was gathered, of a recording that ended then."""
        used = min(BINS, -(-max(end_ns, 1) // self.bin_ns))
        lanes = [
            Lane(
                gil=gil,
                serial=serial,
                held=holds.bins[:used],
                waited=waits.bins[:used],
                holds=_joined(holds.intervals),
                waits=_joined(waits.intervals),
            )
            for (gil, serial), (holds, waits) in self._lanes.items()
        ]
        lanes.sort(key=lambda lane: -int(lane.held.sum() + lane.waited.sum()))
        return Timeline(
            end_ns=end_ns,
            bin_ns=self.bin_ns,
            shortest_ns=self.shortest_ns,
            lanes=tuple(lanes[:MOST_LANES]),
            left_out=len(self._left_out) + max(0, len(lanes) - MOST_LANES),
        )


def _joined(intervals: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    import numpy as np

    return np.concatenate(intervals) if intervals else np.empty((0, 2), np.int64)
