"""ManualClock: time that passes when a test says so."""

from __future__ import annotations

import threading
from numbers import Real
from weakref import WeakSet

from fairlead.errors import UsageError
from fairlead.sync import RateLimiter
from fairlead.sync.extra._common import refuse_pickling


class ManualClock:
    """A clock for tests of what waits for time: it stands still, and ``advance`` moves it.

    ``RateLimiter(..., clock=ManualClock())`` goes by it: threads and tasks then wait until the clock has been
    advanced far enough, and never for real time. Its time-outs are of that clock, too.
    """

    __slots__ = ("__weakref__", "_adopted", "_advancing", "_now")

    def __init__(self) -> None:
        self._now = 0  # nanoseconds
        self._advancing = threading.RLock()
        self._adopted: WeakSet[RateLimiter] = WeakSet()

    @property
    def now(self) -> float:
        """Seconds since it was made."""
        return self._now / 1e9

    def advance(self, seconds: float) -> None:
        """Lets time pass. A waiter that is due is served at its moment, in order, before this returns.

        Any thread or task; never waits for the served waiters to run.
        """
        if not isinstance(seconds, Real) or not 0 <= seconds < 2**30:
            raise UsageError(f"a clock is advanced by a number of seconds, 0 or more, not by {seconds!r}")
        with self._advancing:
            until = self._now + round(seconds * 1e9)
            while True:
                due = [date for one in list(self._adopted) if (date := one._next()) is not None]
                self._set(min([until, *(max(date, self._now) for date in due)]))
                if self._now == until:
                    return

    def _set(self, now: int) -> None:
        self._now = now
        for one in list(self._adopted):
            one._set(now)

    def _adopt(self, limiter: RateLimiter) -> None:
        with self._advancing:
            self._adopted.add(limiter)
            limiter._set(self._now)

    __reduce__ = refuse_pickling

    def __repr__(self) -> str:
        return f"<fairlead.sync.extra.ManualClock at {self.now} s>"
