"""RateLimiter against a model of its dates: tasks of a loop, its thread, and a clock that is advanced."""

from __future__ import annotations

import pytest
from actors import CANCELLED, Actor, Staged
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from fairlead.sync import ManualClock, RateLimiter

pytestmark = pytest.mark.once

ACTORS = st.integers(0, 4)
COUNTS = st.integers(1, 3)
EACH = 4
"""Seconds from one permit to the next; the clock goes by whole ones."""


class Rates(Staged):
    @initialize(burst=st.integers(1, 3))
    def make(self, burst: int) -> None:
        self.clock, self.burst = ManualClock(), burst
        self.subject = RateLimiter(1, EACH, burst=burst, clock=self.clock)
        self.now = self.full = 0
        self.wanted: list[int] = []
        """Of each that waits."""
        self.granted: list[tuple[Actor, int, int]] = []
        """In the last step: who, how many, and when the bucket would have been full after that."""

    def date(self, n: int) -> int:
        return max(self.full, self.now) + (n - self.burst) * EACH

    def take(self, n: int) -> int:
        self.full = max(self.full, self.now) + n * EACH
        return self.full

    def serve(self, until: int) -> None:
        self.granted = []
        while self.wanted and self.date(self.wanted[0]) <= until:
            self.now = max(self.now, self.date(self.wanted[0]))
            n = self.wanted.pop(0)
            self.granted.append((self.waiting.pop(0), n, self.take(n)))
        self.now = until

    def see(self) -> None:
        self.stage.turn()
        for actor, _, _ in self.granted:
            self.expect([actor], [True])

    @rule(at=ACTORS, n=COUNTS)
    def acquire(self, at: int, n: int) -> None:
        actor, n = self.stage.actors[at], min(n, self.burst)
        if not actor.waits:
            there = not self.wanted and self.date(n) <= self.now
            self.stage.tell(actor, lambda: self.subject.acquire_async(n))
            if there:
                self.take(n)
                self.expect([actor], [True])
            else:
                self.waiting.append(actor)
                self.wanted.append(n)

    @rule(n=COUNTS, timeout=st.integers(0, 20))
    def thread_acquires(self, n: int, timeout: int) -> None:
        """If it must not wait: the permits are there, or are known not to come in time."""
        n = min(n, self.burst)
        date = self.date(n + sum(self.wanted))
        if not self.wanted and date <= self.now:
            assert self.subject.acquire(True, timeout, n) is True
            self.take(n)
        elif timeout == 0 or date > self.now + timeout:
            assert self.subject.acquire(True, timeout, n) is False

    @rule(n=COUNTS)
    def thread_tries(self, n: int) -> None:
        n = min(n, self.burst)
        there = not self.wanted and self.date(n) <= self.now
        assert self.subject.acquire(False, n=n) is there
        if there:
            self.take(n)

    @rule(seconds=st.integers(0, 14))
    def pass_time(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.serve(self.now + seconds)
        self.see()

    @precondition(lambda self: self.waiting)
    @rule(at=ACTORS, seconds=st.integers(0, 10))
    def cancel(self, at: int, seconds: int) -> None:
        """Perhaps after it was granted what it wants, and has not run since."""
        actor = self.waiting[at % len(self.waiting)]
        self.clock.advance(seconds)
        self.serve(self.now + seconds)
        actor.task.cancel()
        mine = [grant for grant in self.granted if grant[0] is actor]
        granted = [grant for grant in self.granted if grant[0] is not actor]
        if mine:
            _, n, full = mine[0]
            if self.full == full:  # given back, if nobody was granted anything since
                self.full -= n * EACH
        else:
            del self.wanted[self.waiting.index(actor)]
            self.waiting.remove(actor)
        self.serve(self.now)
        self.granted += granted
        self.see()
        self.expect([actor], [CANCELLED])

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "subject"):
            used = -(-max(self.full - self.now, 0) // EACH)
            assert self.subject.statistics() == (self.burst - used, self.burst, len(self.waiting))
            for n in range(1, self.burst + 1):
                wait = self.date(n + sum(self.wanted)) - self.now
                assert self.subject.delay(n) == pytest.approx(max(wait, 0))
            assert all(actor.waits for actor in self.waiting)


TestRates = Rates.TestCase
TestRates.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
