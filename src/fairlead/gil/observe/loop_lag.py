"""``fairlead.gil.watch_loop``: how late an event loop's callbacks run, and what made them late.

A callback of our own is due every `interval`, give or take half of it. One that runs late has waited for
other callbacks of the loop, for the GIL, or for a core. The counters of the observation say how long the
loop's thread waited for the GIL since the callback before, and behind which threads; the kernel says how
long it was ready to run and had no core. What is left of the delay, the loop's own callbacks took. A second
thread looks which one that is: it wakes only when a callback is overdue, and reads the stack of the loop's
thread."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, NamedTuple

from fairlead.errors import UsageError
from fairlead.gil.observe import names
from fairlead.gil.observe.access import Window, exclusive
from fairlead.gil.observe.observation import FrameCache, thread_name
from fairlead.machine import run_delay_ns
from fairlead.record import places
from fairlead.record.recording import Frame

if TYPE_CHECKING:
    from fairlead import _probe

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
STACKS_FROM_NS = 10_000_000
"""In longer waits for the GIL the stack of the thread that holds it is taken."""
_ODD = 2654435761
"""Times a clock of nanoseconds, modulo 2^32: as good as random."""
NOT_SEEN = "(not seen)"
"""As a callback: it was over before it could be looked at, or kept the GIL to its end."""
_RUNS = (asyncio.events.Handle._run.__code__, asyncio.Runner.run.__code__)
"""What has a callback within it: in asyncio's loops, and in uvloop's, which have no frames."""
_TURN = asyncio.BaseEventLoop._run_once.__code__  # type: ignore[attr-defined]
"""A turn of asyncio's loop; no callback runs if nothing of _RUNS is within it."""


class _Sums(NamedTuple):
    waited_ns: int
    coreless_ns: int
    behind: dict[tuple[int, int], int]
    """ns by holder and the number of its stack, 0 where none was taken."""


class _Parts(NamedTuple):
    """What a delay is made of, in seconds, and the callback that had its own part."""

    own: float
    waited: float
    coreless: float
    callback: str | None


_IN_TIME = _Parts(0.0, 0.0, 0.0, None)


class _Counters:
    """A window of the counters that all watches of the process share: it has room for a few windows only."""

    def __init__(self) -> None:
        self._users = 0
        self._window: Window | None = None

    def open(self) -> None:
        with exclusive():
            if self._window is None:
                self._window = Window(STACKS_FROM_NS)
            self._users += 1

    def read(self) -> _probe.Reading:
        with exclusive():
            assert self._window is not None
            return self._window.read()

    def close(self) -> None:
        with exclusive():
            self._users -= 1
            if self._users == 0 and self._window is not None:
                self._window.close()
                self._window = None


_counters = _Counters()


class LoopLag:
    """The lag of one event loop, while the ``with`` block goes on; see ``fairlead.gil.watch_loop``.

    Attributes, which can be read at any time and stay after the end:

        beats           callbacks of the watch that have run
        late            ... and of these, how many ran later than `threshold`
        late_seconds    the sum of their delays, which the next three add up to
        own_seconds     ... spent in the loop's own callbacks, computing or blocking
        gil_seconds     ... spent waiting for the GIL
        core_seconds    ... spent ready to run, without a core
        callbacks       own_seconds by where the callbacks were, in the program's own code:
                        "function (file:line)"
        holders         gil_seconds by the thread that held the GIL, and where it was: "name in function
                        (file:line)"; in waits of 10 ms and less without that
    """

    def __init__(self, interval: float, threshold: float) -> None:
        if not 0.001 <= interval <= 60:
            raise UsageError(f"interval is from 0.001 to 60 seconds, not {interval!r}")
        if not 0.001 <= threshold <= 60:
            raise UsageError(f"threshold is from 0.001 to 60 seconds, not {threshold!r}")
        self._interval, self._threshold = interval, threshold
        self._over = threading.Event()
        self._due = 0.0
        self._serial = 0
        self._seen = ""
        self._counts = [0] * (len(BUCKETS) + 1)
        self.beats = 0
        self.late = 0
        self.late_seconds = 0.0
        self._all_seconds = 0.0
        self.own_seconds = 0.0
        self.gil_seconds = 0.0
        self.core_seconds = 0.0
        self.callbacks: dict[str, float] = defaultdict(float)
        self.holders: dict[str, float] = defaultdict(float)

    def __enter__(self) -> LoopLag:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise UsageError("watch_loop watches the loop that runs here: enter it in a coroutine") from None
        _counters.open()
        from fairlead import _probe

        names.follow()
        self._ident, self._native = threading.get_ident(), threading.get_native_id()
        self._sums = self._read()
        self._watcher = threading.Thread(target=self._watch, name="fairlead-loop-watch", daemon=True)
        self._wait_for_next()
        self._number = _probe.loop_open(_plain(threading.current_thread().name), round(self._due * 1e9))
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._next.cancel()
        self._over.set()
        self._watcher.join()
        names.unfollow()
        from fairlead import _probe

        _probe.loop_close(self._number)
        _counters.close()

    def _wait_for_next(self) -> None:
        # at random, so as to be in step with nothing that the program does at intervals of its own
        pause = self._interval * (0.5 + time.perf_counter_ns() * _ODD % 2**32 / 2**32)
        self._due = time.monotonic() + pause
        self._next = self._loop.call_later(pause, self._beat)

    def _beat(self) -> None:
        delay = max(time.monotonic() - self._due, 0.0)
        before, self._sums = self._sums, self._read()
        seen, self._seen = self._seen, ""
        self.beats += 1
        self._all_seconds += delay
        self._counts[bisect_left(BUCKETS, delay)] += 1
        late = delay > self._threshold
        parts = self._blame(delay, before, self._sums, seen) if late else _IN_TIME
        self._wait_for_next()
        from fairlead import _probe

        _probe.loop_beat(
            self._number,
            round(delay * 1e9),
            late,
            round(parts.own * 1e9),
            round(parts.waited * 1e9),
            round(parts.coreless * 1e9),
            parts.callback,
            round(self._due * 1e9),
        )

    def _blame(self, delay: float, before: _Sums, after: _Sums, seen: str) -> _Parts:
        waited = min((after.waited_ns - before.waited_ns) / 1e9, delay)
        coreless = min((after.coreless_ns - before.coreless_ns) / 1e9, delay - waited)
        own = delay - waited - coreless
        self.late += 1
        self.late_seconds += delay
        self.gil_seconds += waited
        self.core_seconds += coreless
        self.own_seconds += own
        callback = seen or (NOT_SEEN if own > self._threshold else None)
        if callback:
            self.callbacks[callback] += own
        behind = {holder: ns - before.behind.get(holder, 0) for holder, ns in after.behind.items()}
        total = sum(behind.values())
        if waited > 0 and total > 0:
            from fairlead import _probe

            names.update()
            known = {serial: name for serial, *_, name in _probe.threads()}
            frames = FrameCache()
            for (holder, stack), ns in behind.items():
                if ns > 0:
                    name = f"{thread_name(holder, known)}{places.said(frames[stack]) if stack else ''}"
                    self.holders[name] += waited * ns / total
        return _Parts(own, waited, coreless, callback)

    def _read(self) -> _Sums:
        """What the loop's thread has waited until now."""
        reading = _counters.read()
        serial = self._find_serial()
        waited = sum(tally["waited_ns"] for tally in reading["threads"] if tally["serial"] == serial)
        behind: dict[tuple[int, int], int] = defaultdict(int)
        for _gil, waiter, holder, ns, *_ in reading["blame"]:
            if waiter == serial:
                behind[holder, 0] += ns
        for _gil, waiter, holder, _, stack, ns, *_ in reading["losses"]:
            if waiter == serial and stack:
                behind[holder, stack] += ns
                behind[holder, 0] -= ns
        return _Sums(waited, run_delay_ns(self._native), behind)

    def _find_serial(self) -> int:
        """The extension's number of the loop's thread, once that has been seen to take the GIL; else 0."""
        from fairlead import _probe

        if not self._serial:
            mine = (serial for serial, native, *_ in _probe.threads() if native == self._native)
            self._serial = next(mine, 0)
        return self._serial

    def _watch(self) -> None:
        """In a thread of its own: which callback runs while ours is overdue?"""
        while not self._over.is_set():
            due = self._due
            if self._over.wait(max(due + self._threshold - time.monotonic(), 0.0)):
                return
            if self._due == due and not self._seen:
                self._seen = _callback(sys._current_frames().get(self._ident))
            if self._due == due:
                self._over.wait(self._threshold)

    def prometheus(self) -> str:
        """The histogram of all delays, and the seconds by cause, in Prometheus' text format."""
        lines = ["# TYPE fairlead_loop_lag_seconds histogram"]
        total = 0
        for most, count in zip((*BUCKETS, "+Inf"), self._counts, strict=True):
            total += count
            lines.append(f'fairlead_loop_lag_seconds_bucket{{le="{most}"}} {total}')
        lines.append(f"fairlead_loop_lag_seconds_count {total}")
        lines.append(f"fairlead_loop_lag_seconds_sum {self._all_seconds!r}")
        lines.append("# TYPE fairlead_loop_late_seconds_total counter")
        for cause in ("own", "gil", "core"):
            seconds = getattr(self, f"{cause}_seconds")
            lines.append(f'fairlead_loop_late_seconds_total{{cause="{cause}"}} {seconds!r}')
        return "\n".join([*lines, ""])

    def __str__(self) -> str:
        lines = [f"{self.late} of {self.beats} callbacks were late, by {self.late_seconds:.3f} s in all"]
        for cause, seconds, parts in (
            ("the loop's own callbacks", self.own_seconds, self.callbacks),
            ("waiting for the GIL", self.gil_seconds, self.holders),
            ("no core", self.core_seconds, {}),
        ):
            lines.append(f"  {seconds:8.3f} s  {cause}")
            lines += [
                f"    {part:8.3f} s  {name}"
                for name, part in sorted(parts.items(), key=lambda one: -one[1])[:5]
            ]
        return "\n".join(lines)


def _callback(frame: FrameType | None) -> str:
    """Where what the loop called is: the innermost line of the program's own; "": there is none, or the loop
    itself runs, or sleeps."""
    frames: list[Frame] = []
    while frame is not None and frame.f_code not in _RUNS:
        code = frame.f_code
        if code is _TURN:
            return ""
        if Path(code.co_filename).parent.name not in ("asyncio", "uvloop"):
            frames.append((code.co_qualname, code.co_filename, frame.f_lineno))
        frame = frame.f_back
    at = places.own(tuple(frames)) if frame is not None else None
    if at is None:
        return ""
    function, file, line = at
    return _plain(f"{places.short(function)} ({Path(file).name}:{line})")


def _plain(text: str) -> str:
    """As the extension takes it: what is no UTF-8, and the character that ends a string in C, replaced."""
    return text.replace("\0", "?").encode("utf-8", "replace").decode()
