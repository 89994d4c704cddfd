"""What a call does with its time: on a core, waiting for one, or waiting for something else; and whether it
holds the GIL meanwhile.

The kernel tells a thread's time on a core and, in schedstat's second number, in the queue for one. The GIL
is asked for by the thread that watches: one that sleeps briefly has it back at once if the call computes
without it, and after a switch interval if it does not let go. A nap in which the call had no core tells
nothing: a thread that is woken for the GIL and gets no core has not taken it yet.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from fairlead.machine import run_delay_ns

NAP_S = 0.0005
ENOUGH = 3
"""Naps that a verdict on the GIL needs."""
COMPUTED_S = NAP_S / 5
"""A call that was so long on a core during a nap has computed in it, and not just been woken."""
MOMENTS = 5
"""So often is looked for a moment in which the thread did not wait for a core."""


_RUN_DELAY_IS_TOLD = Path("/proc/self/schedstat").exists()


@dataclass(frozen=True, slots=True)
class CallSample:
    """What one call, or the beginning of one, did."""

    wall_s: float
    """Without the time for which it was ready and waited for a core: that is not its doing."""
    busy_s: float
    """On a core."""
    held: bool | None
    """Whether it held the GIL while it computed; None if it was too short to tell."""

    @property
    def busy(self) -> float:
        """The share of its time."""
        return min(1.0, self.busy_s / self.wall_s) if self.wall_s > 0 else 1.0


class CallMeter:
    """``begin`` and ``end`` are called by the thread that makes the call; ``expect``, before that, and
    ``watch`` by another."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._native_id = self._clock = 0
        self._from = self._until = (0.0, 0.0)
        """Moments on a clock that stands still while the thread waits for a core, and its time on one."""

    def expect(self) -> None:
        """Another call is to be measured."""
        self._ended.clear()
        self._from = (0.0, 0.0)

    @property
    def has_begun(self) -> bool:
        return self._from[0] > 0

    def begin(self) -> None:
        self._native_id = threading.get_native_id()
        self._clock = time.pthread_getcpuclockid(threading.get_ident())
        self._from = self._read()

    def end(self) -> None:
        self._until = self._read()
        self._ended.set()

    def watch(self, most_s: float) -> CallSample | None:
        """Waits for the end of the call, so long; None if it has not begun."""
        interval = sys.getswitchinterval()
        limit = time.monotonic() + most_s
        late: list[float] = []
        ran = self._from
        while not self._ended.is_set() and time.monotonic() < limit:
            begin = time.monotonic()
            time.sleep(NAP_S)
            if self.has_begun and not self._ended.is_set():
                passed = time.monotonic() - begin - NAP_S
                ran = ran if ran[0] else self._from
                now = self._now()
                if now is None:
                    continue
                if now[1] > ran[1] + COMPUTED_S:
                    late.append(passed)
                if now[1] > ran[1]:
                    ran = now
        if not self.has_begun:
            return None
        if self._ended.is_set():
            wall, busy = self._until
        elif self._is_runnable() and ran[0] > self._from[0]:  # for a core, uncounted yet
            wall, busy = ran
        else:
            wall, busy = self._now() or self._until
        held = median(late) > interval / 2 if len(late) >= ENOUGH else None
        computed = busy - self._from[1]
        return CallSample(max(wall - self._from[0], computed), computed, held)

    def _is_runnable(self) -> bool:
        if not _RUN_DELAY_IS_TOLD:
            return False
        try:
            stat = Path(f"/proc/self/task/{self._native_id}/stat").read_text()
        except OSError:
            return False  # it has ended just now
        return stat.rpartition(")")[2].split()[0] == "R"

    def _now(self) -> tuple[float, float] | None:
        """None: the thread has ended just now, and so has the call."""
        try:
            return self._read()
        except OSError:
            return None

    def _read(self) -> tuple[float, float]:
        """Of the moments that are tried, that with the shortest wait for a core in it. One with none at all
        may not come for seconds: without a GIL, two that read this send each other off their cores."""
        before = run_delay_ns(self._native_id)
        read, least = (0.0, 0.0), math.inf
        for _ in range(MOMENTS):
            moment, busy = time.monotonic(), time.clock_gettime(self._clock)
            waited = run_delay_ns(self._native_id)
            if waited - before < least:
                read, least = (moment - waited / 1e9, busy), waited - before
            if not least:
                break
            before = waited
        return read
