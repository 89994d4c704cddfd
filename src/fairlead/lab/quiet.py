"""How much of the machine other processes took: the foreign share of a sample.

``/proc/stat`` counts in ticks of 10 ms, and most kernels sample what they count as busy. Idle time is
exact apart from the rounding, so busy is taken as what is not idle: *wall time x cores - idle*. Of that,
what this process and all its ended children used is known to the microsecond; the rest is foreign, time
stolen from a virtual machine included.

Rounding costs up to two ticks per core, so a window under half a second says little. A sample that is
shorter is judged by a window that begins earlier, at a moment when no sample was running: what disturbed
the machine a moment ago disturbs it still. Without one, the answer is None, never a guess.
"""

from __future__ import annotations

import os
import resource
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fairlead.lab.stop import Stop

NOISY = 0.10
"""The foreign share above which a sample is tried again."""

WINDOW_S = 0.5
_PATIENCE_STEP_S = 0.25
_STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters at one moment."""

    at_s: float
    idle_s: float
    """Of the cores that this process may use, summed up."""
    own_s: float
    """CPU time of this process and its ended children."""


def read(cpus: frozenset[int]) -> Reading | None:
    """Read the counters now; None where there is no /proc/stat."""
    try:
        lines = _STAT.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    names = {f"cpu{cpu}" for cpu in cpus}
    ticks = 0
    for line in lines:
        name, *counters = line.split()
        if name in names:
            ticks += int(counters[3]) + int(counters[4])
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Reading(
        at_s=time.monotonic(),
        idle_s=ticks / os.sysconf("SC_CLK_TCK"),
        own_s=sum(usage.ru_utime + usage.ru_stime for usage in used),
    )


class Meter:
    """Tells the foreign share of one sample after another.

    Call ``begin`` and ``end`` around each, when nothing of a sample runs.
    """

    def __init__(self, read: Callable[[frozenset[int]], Reading | None] = read) -> None:
        self._cpus = frozenset(os.sched_getaffinity(0))
        self._read = read
        self._past: deque[Reading] = deque()
        self._begun: Reading | None = None

    def begin(self) -> None:
        """A sample is about to start."""
        self._begun = self._read(self._cpus)
        if self._begun is not None:
            while len(self._past) > 1 and self._past[1].at_s <= self._begun.at_s - WINDOW_S:
                self._past.popleft()
            self._past.append(self._begun)

    def end(self) -> float | None:
        """The foreign share, 0 to 1, of the sample that has ended, or of the half second up to its end."""
        now = self._read(self._cpus)
        if now is None or self._begun is None:
            return None
        since = next((r for r in reversed(self._past) if now.at_s - r.at_s >= WINDOW_S), None)
        return None if since is None else self._share(since, now)

    def wait_for_quiet(self, limit_s: float, stop: Stop) -> None:
        """Wait until others take less than ``NOISY``, for ``limit_s`` seconds at most, or until stopped."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            before = self._read(self._cpus)
            stopped = stop.wait(_PATIENCE_STEP_S)
            now = self._read(self._cpus)
            if stopped or before is None or now is None or self._share(before, now) < NOISY:
                return

    def _share(self, since: Reading, now: Reading) -> float:
        return share(since, now, len(self._cpus))


def share(since: Reading, now: Reading, cores: int) -> float:
    """The foreign share between two readings of so many cores."""
    capacity = (now.at_s - since.at_s) * cores
    foreign = capacity - (now.idle_s - since.idle_s) - (now.own_s - since.own_s)
    return min(1.0, max(0.0, foreign / capacity))
