"""What disturbed a sample: other processes, the host, a quota, or a core that ran slower.

The foreign share is how much of the machine other processes took.

``/proc/stat`` counts in ticks of 10 ms, and most kernels sample what they count as busy. Idle time is
exact apart from the rounding, so busy is taken as what is not idle: *wall time x cores - idle*. Of that,
what this process and its ended children used is known to the microsecond, and what those that live used to
the tick; the rest is foreign, time stolen from a virtual machine included.

Rounding costs up to two ticks per core, so a window under half a second says little. A sample that is
shorter is judged by a window that begins earlier, at a moment when no sample was running: what disturbed
the machine a moment ago disturbs it still. Without one, the answer is None, never a guess.

What the kernel counts by itself is told apart from that: time stolen by the host of a virtual machine
(``/proc/stat``), and time in which the control group had used up its quota (``cpu.stat``). And a fixed piece
of Python code runs before each sample: its CPU time says how fast the core is, whatever else runs.
"""

from __future__ import annotations

import os
import resource
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fairlead import machine
from fairlead.lab.isolation.stop import Stop
from fairlead.record.sample import DISTURBED

WINDOW_S = 0.5
SPIN_STEPS = 100_000
"""Steps of the fixed code before each sample, some milliseconds."""
_PATIENCE_STEP_S = 0.25
_STAT = Path("/proc/stat")
_QUOTAS = (
    ("/sys/fs/cgroup/cpu.stat", "throttled_usec", 1e-6),
    ("/sys/fs/cgroup/cpu/cpu.stat", "throttled_time", 1e-9),
)
"""Where control groups of version 2 and 1 say how long they were throttled, and in what."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters at one moment."""

    at_s: float
    idle_s: float
    """Of the cores that this process may use, summed up."""
    own_s: float
    """CPU time of this process, its ended children, and their descendants and its own that live."""
    stolen_s: float = 0.0
    """Of the same cores, what the host gave to other machines."""
    throttled_s: float = 0.0
    """How long the quota kept this control group from running."""


def read(cpus: frozenset[int]) -> Reading | None:
    """Read the counters now; None where there is no /proc/stat."""
    try:
        lines = _STAT.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    names = {f"cpu{cpu}" for cpu in cpus}
    ticks = stolen = 0
    for line in lines:
        name, *counters = line.split()
        if name in names:
            ticks += int(counters[3]) + int(counters[4])
            stolen += int(counters[7])
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Reading(
        at_s=time.monotonic(),
        idle_s=ticks / os.sysconf("SC_CLK_TCK"),
        own_s=sum(usage.ru_utime + usage.ru_stime for usage in used) + _living_s(),
        stolen_s=stolen / os.sysconf("SC_CLK_TCK"),
        throttled_s=throttled_s(),
    )


def _living_s() -> float:
    """What the living descendants of this process and their own ended children have used."""
    ticks = 0
    for pid in machine.family(os.getpid())[1:]:
        with suppress(OSError):  # it has just ended
            ticks += sum(map(int, machine.stat_of(pid)[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def throttled_s() -> float:
    """How long the quota has kept this control group from running; 0 where there is none."""
    for path, name, unit_s in _QUOTAS:
        try:
            lines = Path(path).read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        for line in lines:
            key, _, value = line.partition(" ")
            if key == name:
                return int(value) * unit_s
    return 0.0


def spin_s() -> float:
    """CPU seconds of a fixed piece of Python code, the better of two."""
    return min(_spun_s() for _ in range(2))


def _spun_s() -> float:
    begin = time.thread_time()
    for _ in range(SPIN_STEPS):
        pass
    return time.thread_time() - begin


class Meter:
    """Tells the foreign share of one sample after another.

    Call ``begin`` and ``end`` around each, when nothing of a sample runs.
    """

    def __init__(
        self,
        read: Callable[[frozenset[int]], Reading | None] = read,
        spin: Callable[[], float] = spin_s,
        adopt: Callable[[], None] = lambda: None,
    ) -> None:
        """``adopt``: has what the sample left behind count as its own, see ``subprocess_runner.adopting``."""
        self._cpus = frozenset(os.sched_getaffinity(0))
        self._read = read
        self._past: deque[Reading] = deque()
        self._begun: Reading | None = None
        self.stolen_share: float | None = None
        """Of the sample that ended last: the share of the cores' time that the host gave to others."""
        self.throttled_s: float | None = None
        """Of the sample that ended last: how long the quota kept it from running."""
        self.spin_s: float | None = None
        """CPU seconds of the fixed code just before it."""
        self._spin = spin
        self._adopt = adopt

    def begin(self) -> None:
        """A sample is about to start."""
        self.spin_s = self._spin()
        self._begun = self._read(self._cpus)
        if self._begun is not None:
            while len(self._past) > 1 and self._past[1].at_s <= self._begun.at_s - WINDOW_S:
                self._past.popleft()
            self._past.append(self._begun)

    def end(self) -> float | None:
        """The foreign share, 0 to 1, of the sample that has ended, or of the half second up to its end."""
        self.stolen_share = self.throttled_s = None
        self._adopt()
        now = self._read(self._cpus)
        if now is None or self._begun is None:
            return None
        passed_s = (now.at_s - self._begun.at_s) * len(self._cpus)
        self.stolen_share = min(1.0, max(0.0, (now.stolen_s - self._begun.stolen_s) / passed_s))
        self.throttled_s = max(0.0, now.throttled_s - self._begun.throttled_s)
        since = next((r for r in reversed(self._past) if now.at_s - r.at_s >= WINDOW_S), None)
        return None if since is None else self._share(since, now)

    def wait_for_quiet(self, limit_s: float, stop: Stop) -> None:
        """Wait until others take less than ``DISTURBED``, for at most ``limit_s`` seconds, or a stop."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            before = self._read(self._cpus)
            stopped = stop.wait(_PATIENCE_STEP_S)
            now = self._read(self._cpus)
            if stopped or before is None or now is None or self._share(before, now) < DISTURBED:
                return

    def _share(self, since: Reading, now: Reading) -> float:
        return share(since, now, len(self._cpus))


def share(since: Reading, now: Reading, cores: int) -> float:
    """The foreign share between two readings of so many cores."""
    capacity = (now.at_s - since.at_s) * cores
    foreign = capacity - (now.idle_s - since.idle_s) - (now.own_s - since.own_s)
    return min(1.0, max(0.0, foreign / capacity))
