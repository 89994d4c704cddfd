"""What a simulation says: frozen records over the simulator's own arrays. Times are seconds."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

SimulatedEventKind = Literal[
    "start",
    "wait",
    "timeout",
    "ask",
    "drop",
    "forced-drop",
    "signal",
    "switch-wait",
    "leave-free",
    "hand",
    "kick",
    "acquire",
    "on-core",
    "off-core",
    "park",
    "wake",
    "exit",
]
"""start: a thread begins to exist. wait: it wants the GIL and ``other`` has it. timeout: it waited for a
whole switch interval in which the holder did not change. ask: it requests a drop of ``other``. drop,
forced-drop: the holder lets go. signal: of the sleepers, ``other`` is woken. switch-wait: a thread that was
forced out waits until another has had the GIL. leave-free, hand, kick: the scheduler's decision at a drop.
acquire: it has the GIL. on-core, off-core: the kernel's scheduler. park, wake: it goes to sleep waiting for
the GIL, it is woken from any sleep. exit: it ends."""

EVENT_KINDS: tuple[SimulatedEventKind, ...] = (
    "start",
    "wait",
    "timeout",
    "ask",
    "drop",
    "forced-drop",
    "signal",
    "switch-wait",
    "leave-free",
    "hand",
    "kick",
    "acquire",
    "on-core",
    "off-core",
    "park",
    "wake",
    "exit",
)
CLASSES = ("serving", "computing")
_EVENT = struct.Struct("=qIIIBBH")
_THREAD = struct.Struct("=4Q4q")
_NO_THREAD = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class SimulatedEvent:
    """One step. ``number`` is the GIL's switch number: how often another thread than the last has acquired
    it."""

    seconds: float
    kind: SimulatedEventKind
    thread: str
    other: str | None
    number: int
    scheduling_class: str
    core: int


@dataclass(frozen=True, slots=True)
class ThreadStatistics:
    """One thread's part."""

    name: str
    group: str
    acquisitions: int
    waits: int
    """Acquisitions that had to wait."""
    forced_drops: int
    requests_sent: int
    held_seconds: float
    waited_seconds: float
    max_wait_seconds: float
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    """The threads of a group together, and the requests (``Begin`` to ``End``) that they made."""

    name: str
    threads: int
    held_seconds: float
    requests: int
    mean_seconds: float | None
    p50_seconds: float | None
    """Quantiles are exact to a sixteenth."""
    p99_seconds: float | None
    max_seconds: float | None


@dataclass(frozen=True, slots=True)
class Names:
    """Names of threads by number: a group of one lends its own name, else it is followed by 1, 2, 3 ..."""

    groups: tuple[tuple[str, int], ...]

    def of(self, thread: int) -> tuple[str, str]:
        """(thread's name, group's name)"""
        for name, count in self.groups:
            if thread < count:
                return (name if count == 1 else f"{name}{thread + 1}"), name
            thread -= count
        raise IndexError(thread)


class Events(Sequence[SimulatedEvent]):
    """Events in order, each made when it is looked at."""

    def __init__(self, data: bytes, names: Names) -> None:
        self._data = data
        self._names = names

    def __len__(self) -> int:
        return len(self._data) // _EVENT.size

    @overload
    def __getitem__(self, index: int) -> SimulatedEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[SimulatedEvent]: ...
    def __getitem__(self, index: int | slice) -> SimulatedEvent | list[SimulatedEvent]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        t, thread, other, number, kind, cls, core = _EVENT.unpack_from(self._data, at * _EVENT.size)
        return SimulatedEvent(
            t / 1e9,
            EVENT_KINDS[kind],
            self._names.of(thread)[0],
            None if other == _NO_THREAD else self._names.of(other)[0],
            number,
            CLASSES[cls],
            core,
        )


class Threads(Sequence[ThreadStatistics]):
    """Threads in the order of their groups, each record made when it is looked at."""

    def __init__(self, data: bytes, names: Names) -> None:
        self._data = data
        self._names = names

    def __len__(self) -> int:
        return len(self._data) // _THREAD.size

    @overload
    def __getitem__(self, index: int) -> ThreadStatistics: ...
    @overload
    def __getitem__(self, index: slice) -> list[ThreadStatistics]: ...
    def __getitem__(self, index: int | slice) -> ThreadStatistics | list[ThreadStatistics]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        counts = _THREAD.unpack_from(self._data, at * _THREAD.size)
        return ThreadStatistics(*self._names.of(at), *counts[:4], *(ns / 1e9 for ns in counts[4:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """One simulated run."""

    status: Literal["finished", "time-up"]
    """finished: every thread that is not a daemon has ended. time-up: ``until_seconds`` came first."""
    elapsed_seconds: float
    passes: int
    """Acquisitions of the GIL."""
    switches: int
    """Acquisitions by another thread than the last holder."""
    context_switches: int
    """Changes of the thread on a core."""
    wakeups: int
    requests_sent: int
    forced_drops: int
    direct_handovers: int
    dropped_unclaimed: int
    woken_early: int
    steps: int
    """Events that the simulator worked off."""
    free_wanted_seconds: float
    """The longest time in which the GIL was free, was wanted by a thread that may take it, and all of those
    slept."""
    max_wait_seconds: dict[str, float]
    """The longest wait for the GIL by scheduling class; a wait that has not ended counts too."""
    watchdog_tripped: bool
    threads: Threads
    groups: dict[str, GroupStatistics]
    events: Events
    """The first ``events`` of the run (or since ``Measure``); empty unless asked for."""
    events_dropped: int
    """How many more there were."""
    spec: str
    """The whole input as JSON: ``python -m fairlead.gil.simulation SPEC`` repeats the run to the
    nanosecond."""

    def held_share(self, *groups: str) -> float:
        """The share (0..1) of the elapsed time in which threads of these groups held the GIL."""
        return sum(self.groups[name].held_seconds for name in groups) / self.elapsed_seconds

    def passes_by_row(self) -> list[tuple[str, ...]]:
        """Which thread runs on each pass: the holders in order, a new row whenever a thread would come up
        again in the same.

        For a first-in first-out schedule a row is one round through all running threads. Needs events; covers
        as much of the run as they do.
        """
        return list(_rows(event.thread for event in self.events if event.kind == "acquire"))


def _rows(holders: Iterator[str]) -> Iterator[tuple[str, ...]]:
    row: dict[str, None] = {}
    last = None
    for holder in holders:
        if holder == last:
            continue
        if holder in row:
            yield tuple(row)
            row = {}
        row[holder] = None
        last = holder
    if row:
        yield tuple(row)


def group_statistics(
    names: Names, threads: bytes, requests: list[tuple[Any, ...]]
) -> dict[str, GroupStatistics]:
    """Sums over the threads of each group. ``threads`` and ``requests`` as fairlead._native.simulate gives
    them."""
    held = memoryview(threads).cast("q")[4::8]
    groups = {}
    first = 0
    for (name, count), (number, total, longest, buckets) in zip(names.groups, requests, strict=True):
        groups[name] = GroupStatistics(
            name,
            count,
            sum(held[first : first + count]) / 1e9,
            number,
            total / number / 1e9 if number else None,
            _quantile(buckets, 0.5) if number else None,
            _quantile(buckets, 0.99) if number else None,
            longest / 1e9 if number else None,
        )
        first += count
    return groups


def _quantile(buckets: list[tuple[int, int, int]], q: float) -> float:
    """The upper end of the bucket in which the quantile lies."""
    wanted = q * sum(count for _, _, count in buckets)
    seen = 0
    for _, high, count in buckets:
        seen += count
        if seen >= wanted:
            return high / 1e9
    raise ValueError("no requests")
