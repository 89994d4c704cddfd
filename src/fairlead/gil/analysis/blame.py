"""Which thread held the GIL while others waited for it: exact, wait by wait.

The invariant: for every wait, the parts during which each thread held the GIL and the part during which
none did add up to the wait, to the nanosecond. Holds of one GIL do not overlap, so for each wait they are
one row of neighbours, found by bisection; only the first and the last can stick out over its ends.

What a sampler does (py-spy's --gil, 3.15's) is to look at intervals and see which thread has it; here nothing
falls between two looks. Stacks, though, are looks: one is taken when a wait gets longer than the threshold.
It stands for the whole of that hold's part in that wait, or for an equal share of it when several were taken;
what no stack was taken in stays without one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.gil.analysis.rates import PARTS
from fairlead.record.gil_intervals import IntervalChunk
from fairlead.record.gil_summary import Blame, Overrun, StackLoss
from fairlead.record.recording import EventType, Frames

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.void]

FREE_NS = 1_000_000
"""A thread that is awake takes a free GIL sooner by far, and one that has a core is awake by then."""
PAIRS_AT_ONCE = 2_000_000
"""How many (wait, hold) pairs are worked on together: 100 MB of memory."""


@dataclass(slots=True)
class _Loss:
    ns: int = 0
    waits: int = 0
    max_ns: int = 0


@dataclass(slots=True)
class _Late:
    holds: int = 0
    ns: int = 0
    asleep_ns: int = 0
    max_ns: int = 0


def _no_parts() -> list[int]:
    return [0] * len(PARTS)


@dataclass(slots=True)
class BlameLedger:
    """Keeps the blame of one GIL, chunk by chunk."""

    gil: int
    _blame: defaultdict[tuple[int, int], list[int]] = field(default_factory=lambda: defaultdict(_no_parts))
    """(waiter, holder) -> ns of each of PARTS"""
    _late: defaultdict[tuple[int, int], _Late] = field(default_factory=lambda: defaultdict(_Late))
    """(holder, its stack)"""
    _stacks: defaultdict[tuple[int, int, int, int], _Loss] = field(default_factory=lambda: defaultdict(_Loss))
    """(waiter, holder, stack of the holder, stack of the waiter)"""
    _holds: Array | None = None
    """Those that a wait which has not ended yet may reach back to."""
    _looks: Array | None = None
    """Stack events whose wait has not ended yet."""

    def add(self, chunk: IntervalChunk) -> None:
        import numpy as np

        holds = chunk.holds if self._holds is None else np.concatenate([self._holds, chunk.holds])
        for waits, pairs in _pairs(chunk.waits, holds):
            self._add_blame(waits, holds, *pairs)
        self._count_late(chunk.holds)
        self._add_stacks(chunk, holds)
        self._holds = holds[holds["end"] > chunk.pending_since]

    def _add_blame(self, waits: Array, holds: Array, of: NDArray[np.intp], hold: NDArray[np.intp]) -> None:
        """``of[i]`` is a wait and ``hold[i]`` a hold that overlaps it."""
        import numpy as np

        ends = np.minimum(waits["end"][of], holds["end"][hold])
        starts = np.maximum(waits["start"][of], holds["start"][hold])
        overlap = np.maximum(ends - starts, 0)
        parts = _parts(holds[hold], starts, ends, overlap)
        waiters, waiter = np.unique(waits["thread"], return_inverse=True)
        holders, holder = np.unique(holds["thread"][hold], return_inverse=True)
        cell = waiter[of] * len(holders) + holder
        # sums of whole ns below 2^53 (104 days) are exact in the doubles that bincount adds
        sums = [np.bincount(cell, weights=part, minlength=len(waiters) * len(holders)) for part in parts]
        for position in np.flatnonzero(sums[0]).tolist():
            w, h = divmod(position, len(holders))
            # no thread waits behind itself: that is a nanosecond of rounding between two clocks' readings
            holder_serial = int(holders[h]) if holders[h] != waiters[w] else 0
            into = self._blame[int(waiters[w]), holder_serial]
            for i, part in enumerate(sums if holder_serial else sums[:1]):
                into[i] += round(part[position])
        free = waits["end"] - waits["start"]
        free = free - np.bincount(of, weights=overlap, minlength=len(waits)).astype(np.int64)
        coreless = np.where(free >= FREE_NS, free, 0)
        for w, ns in enumerate(np.bincount(waiter, weights=free, minlength=len(waiters)).tolist()):
            if ns > 0:
                self._blame[int(waiters[w]), 0][0] += int(ns)
                self._blame[int(waiters[w]), 0][-1] += int(coreless[waiter == w].sum())
        self._add_late(holds[hold], parts[2] - parts[4] - parts[5], parts[3])

    def _add_late(self, holds: Array, waited: NDArray[np.float64], asleep: NDArray[np.float64]) -> None:
        """By what the holder was doing: ``waited[i]`` is what one waited behind ``holds[i]`` after a
        request."""
        import numpy as np

        late = np.flatnonzero(waited > 0)
        places, place = np.unique(holds[["thread", "stack"]][late], return_inverse=True)
        for i, (thread, stack) in enumerate(places.tolist()):
            mine = late[place == i]
            into = self._late[thread, stack]
            into.ns += round(waited[mine].sum())
            into.asleep_ns += round(asleep[mine].sum())

    def _count_late(self, holds: Array) -> None:
        import numpy as np

        late = holds["end"] - holds["asked"] + holds["asked_late"]
        late = late - np.minimum(late, holds["collecting"] + _coreless(holds))
        for i in np.flatnonzero(late >= FREE_NS).tolist():
            into = self._late[int(holds["thread"][i]), int(holds["stack"][i])]
            into.holds += 1
            into.max_ns = max(into.max_ns, int(late[i]))

    def _add_stacks(self, chunk: IntervalChunk, holds: Array) -> None:
        import numpy as np

        kind = chunk.events["kind"]
        looks = chunk.events[(kind == EventType.STACK_HOLDER) | (kind == EventType.STACK_WAITER)]
        if self._looks is not None:
            looks = np.concatenate([self._looks, looks])
        # the middle of what was waited lies in the wait, whether the look came just before its end or after
        middle = looks["t_ns"] - looks["value_ns"].astype(np.int64) // 2
        hold_of = _holds_at(holds, looks)
        settled = np.zeros(len(looks), dtype=bool)
        subject = np.where(looks["kind"] == EventType.STACK_WAITER, looks["thread"], looks["other"])
        # (wait, hold) -> stacks of the holder seen; wait -> stack of the waiter
        seen: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        own: dict[int, int] = {}
        for waiter in np.unique(subject).tolist():
            at = np.flatnonzero(subject == waiter)
            mine = np.flatnonzero(chunk.waits["thread"] == waiter)
            position = np.searchsorted(chunk.waits["end"][mine], middle[at], side="left")
            settled[at] = position < len(mine)
            for look, wait in zip(
                at[settled[at]].tolist(), mine[position[settled[at]]].tolist(), strict=True
            ):
                if middle[look] < chunk.waits["start"][wait]:
                    continue
                if looks["kind"][look] == EventType.STACK_WAITER:
                    own[wait] = int(looks["stack"][look])
                    continue
                if hold_of[look] >= 0:
                    seen[wait, int(hold_of[look])].append(int(looks["stack"][look]))
        self._looks = looks[~settled & (middle >= chunk.pending_since)]
        self._add_own(chunk.waits, holds, own, seen)
        for (wait, of_hold), stacks in seen.items():
            w, h = chunk.waits[wait], holds[of_hold]
            overlap = int(min(w["end"], h["end"]) - max(w["start"], h["start"]))
            if overlap <= 0 or w["thread"] == h["thread"]:
                continue
            for stack in stacks:
                loss = self._stacks[int(w["thread"]), int(h["thread"]), stack, own.get(wait, 0)]
                loss.ns += overlap // len(stacks)
                loss.waits += 1
                loss.max_ns = max(loss.max_ns, overlap)

    def _add_own(
        self, waits: Array, holds: Array, own: dict[int, int], seen: Iterable[tuple[int, int]]
    ) -> None:
        """What was waited behind holds that were not looked at, where the waiter was; ``own`` is its stack by
        the place of the wait, ``seen`` are the pairs (wait, hold) that were."""
        import numpy as np

        places = np.array(sorted(own), dtype=np.intp)
        looked_at = np.array([wait * len(holds) + hold for wait, hold in seen], dtype=np.int64)
        for some, (of, hold) in _pairs(waits[places], holds):
            wait, places = places[: len(some)][of], places[len(some) :]
            w, h = waits[wait], holds[hold]
            ns = np.minimum(w["end"], h["end"]) - np.maximum(w["start"], h["start"])
            kept = (ns > 0) & (w["thread"] != h["thread"])
            kept &= ~np.isin(wait.astype(np.int64) * len(holds) + hold, looked_at)
            stacks = np.array([own[at] for at in wait[kept].tolist()], dtype=np.int64)
            keys = np.stack([w["thread"][kept], h["thread"][kept], stacks], axis=1)
            order = np.lexsort(keys.T)
            keys, lost = keys[order], ns[kept][order]
            first = np.flatnonzero(np.diff(keys, axis=0, prepend=-1).any(axis=1))
            if len(first):
                counts = np.diff(first, append=len(keys)).tolist()
                sums = np.add.reduceat(lost, first).tolist()
                longest = np.maximum.reduceat(lost, first).tolist()
                for key, count, ns_, most in zip(keys[first].tolist(), counts, sums, longest, strict=True):
                    waiter, holder, stack = key
                    loss = self._stacks[waiter, holder, 0, stack]
                    loss.ns += ns_
                    loss.waits += count
                    loss.max_ns = max(loss.max_ns, most)

    def blame(self) -> list[Blame]:
        """The matrix, dearest first."""
        cells = sorted(self._blame.items(), key=lambda cell: -cell[1][0])
        return [
            Blame(
                gil=self.gil,
                waiter=waiter,
                holder=holder,
                **{part: ns / 1e9 for part, ns in zip(PARTS, cell, strict=True)},
            )
            for (waiter, holder), cell in cells
        ]

    def overruns(self, known: dict[int, Frames]) -> list[Overrun]:
        """Holds that went on after a request, by thread and stack, dearest first."""
        return [
            Overrun(
                gil=self.gil,
                holder=holder,
                frames=known.get(stack, ()),
                holds=late.holds,
                seconds=late.ns / 1e9,
                asleep_seconds=late.asleep_ns / 1e9,
                max_seconds=late.max_ns / 1e9,
            )
            for (holder, stack), late in sorted(self._late.items(), key=lambda item: -item[1].ns)
        ]

    def stacks(self, known: dict[int, Frames]) -> list[StackLoss]:
        """The matrix again, split by what both were doing, dearest first; with what no stack was taken in."""
        rest = {pair: parts[0] for pair, parts in self._blame.items()}
        merged: defaultdict[tuple[int, int, Frames, Frames], _Loss] = defaultdict(_Loss)
        for (waiter, holder, theirs, own), loss in self._stacks.items():
            rest[waiter, holder] -= loss.ns
            into = merged[waiter, holder, known.get(theirs, ()), known.get(own, ())]
            into.ns += loss.ns
            into.waits += loss.waits
            into.max_ns = max(into.max_ns, loss.max_ns)
        for (waiter, holder), ns in rest.items():
            if ns > 0:
                merged[waiter, holder, (), ()].ns += ns
        return [
            StackLoss(
                gil=self.gil,
                waiter=waiter,
                holder=holder,
                holder_frames=theirs,
                waiter_frames=own,
                seconds=loss.ns / 1e9,
                waits=loss.waits,
                max_seconds=loss.max_ns / 1e9,
            )
            for (waiter, holder, theirs, own), loss in sorted(merged.items(), key=lambda item: -item[1].ns)
        ]


def _coreless(holds: Array) -> NDArray[np.int64]:
    """How long each had no core after a request, and did not sleep by itself; and by how much the request was
    late, because a waiter had none."""
    import numpy as np

    late = holds["end"] - holds["asked"]
    coreless = np.minimum(late, holds["off_cpu"] - holds["early"]) - holds["asleep"]
    without: NDArray[np.int64] = np.maximum(coreless, 0) + holds["asked_late"]
    return without


def _parts(
    holds: Array, starts: NDArray[np.int64], ends: NDArray[np.int64], overlap: NDArray[np.int64]
) -> list[NDArray[Any]]:
    """Of waits that overlap these holds from ``starts`` to ``ends``: PARTS, in ns. What the holder did after
    the request is spread evenly over that time, which nearly every wait sits out."""
    import numpy as np

    due = holds["asked"] - holds["asked_late"]
    late = np.maximum(ends - np.maximum(starts, due), 0)
    asked = np.where(due < holds["end"], overlap - late, 0)
    whole = np.maximum(holds["end"] - due, 1)
    share = late / whole
    coreless = _coreless(holds)
    collecting = np.minimum(holds["collecting"], whole - coreless)
    asleep = np.minimum(holds["asleep"], whole)
    return [overlap, asked, late, share * asleep, share * collecting, share * coreless]


def _holds_at(holds: Array, looks: Array) -> NDArray[np.intp]:
    """For each look at a holder, its hold that the moment falls into or ends at, give or take an event;
    else -1."""
    import numpy as np

    found = np.full(len(looks), -1)
    if len(holds):
        after = np.searchsorted(holds["end"], looks["t_ns"], side="left")
        for position in (after - 1, after):
            within = np.clip(position, 0, len(holds) - 1)
            fits = (position == within) & (holds["thread"][within] == looks["thread"])
            found[fits] = within[fits]
    return found


def _pairs(waits: Array, holds: Array) -> Iterator[tuple[Array, tuple[NDArray[np.intp], NDArray[np.intp]]]]:
    """Stretches of the waits, each with all its pairs (position in the stretch, position in the holds)."""
    import numpy as np

    if not len(waits):
        return
    # holds that contradict each other may not be in order: bisection needs rows that only rise
    ends = np.maximum.accumulate(holds["end"]) if len(holds) else holds["end"]
    low = np.searchsorted(ends, waits["start"], side="right")
    high = np.maximum(np.searchsorted(holds["start"], waits["end"], side="left"), low)
    upto = np.cumsum(high - low)
    first = 0
    while first < len(waits):
        done = int(upto[first - 1]) if first else 0
        beyond = max(first + 1, int(np.searchsorted(upto, done + PAIRS_AT_ONCE, side="right")))
        counts = (high - low)[first:beyond]
        of = np.repeat(np.arange(beyond - first), counts)
        within = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
        yield waits[first:beyond], (of, np.repeat(low[first:beyond], counts) + within)
        first = beyond
