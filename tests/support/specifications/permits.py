"""Permits that one has until one gives them back, or that come with time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from fairlead import sync
from fairlead.errors import AlreadyHeldError, NotHeldError, TooManyReleasesError
from fairlead.sync.extra import ManualClock
from specifications.specification import THREAD, WAITS, Call, Specification, at_once, waits

WHICH = st.integers(0, 1)


def some(it: Any) -> Any:
    return st.none() if it.most is None else st.integers(1, it.most)


def one_of_two(it: Any, which: int) -> Any:
    return it.subject[which]


class Permits(Specification):
    """Two semaphores, or locks, which have one permit. A newcomer passes no waiter, nor one for many."""

    examples = 70
    kind = st.sampled_from([sync.Lock, sync.Semaphore, sync.BoundedSemaphore])
    most = st.integers(1, 4)

    def make(self) -> Any:
        self.most = None if self.kind is sync.Lock else self.most
        self.free = [self.most or 1] * 2
        return [self.kind(*[self.most] if self.most else [], fair=True) for _ in range(2)]

    def wanted(self, call: Call) -> Any:
        return call.arguments[0] if call.name == "choose" else call.arguments[:1]

    @waits(WHICH, n=some, on=one_of_two, refused=False)
    def acquire(self, which: int, n: int | None) -> Any:
        first = not any(which in self.wanted(call) for call in self.ahead("acquire", "choose"))
        if not first or (n or 1) > self.free[which]:
            return WAITS
        self.free[which] -= n or 1
        return True

    @at_once(WHICH, n=some, on=one_of_two, likely=lambda it: min(it.free) == 0)
    def release(self, which: int, n: int | None) -> Any:
        if self.kind is not sync.Semaphore and self.free[which] + (n or 1) > (self.most or 1):
            return TooManyReleasesError if self.most else NotHeldError
        self.free[which] += n or 1
        return None

    undo_acquire = release

    def choices(self) -> Any:
        """Both, but if both can be had at once only one: select takes any."""
        waiting = [which for call in self.queue for which in self.wanted(call)]
        ready = sum(self.free[which] > 0 and which not in waiting for which in range(2))
        return st.permutations(range(2)).map(lambda both: both[: 1 if ready == 2 else 2])

    def select(self, cases: list[int]) -> Any:
        return sync.select_async(*(self.subject[which].acquire_async() for which in cases))

    @waits(choices, task=select)
    def choose(self, cases: list[int]) -> Any:
        """One permit, of whichever has one first."""
        taken = [index for index, which in enumerate(cases) if self.acquire(which, 1) is True]
        return (taken[0], True) if taken else WAITS

    def undo_choose(self, cases: list[int]) -> None:
        self.release(cases[self.me.result[0]], 1)

    def check(self) -> None:
        """Until it runs, one that has chosen may still be counted where it has got nothing."""
        chose = sum(call.name == "choose" for call in self.granted)
        for which, subject in enumerate(self.subject):
            value, waiting, fair = subject.statistics()
            assert (value, fair) == (self.free[which] if self.most else 1 - self.free[which], True)
            assert 0 <= waiting - sum(which in self.wanted(call) for call in self.queue) <= chose
            assert subject.locked() is (self.free[which] == 0)


class RLocks(Specification):
    """Its holder, at first perhaps the thread, may take it again, and gives it back as often."""

    examples = 40
    holder = st.sampled_from([THREAD, None])

    def make(self) -> Any:
        lock = sync.RLock(fair=True)
        self.depth = int(self.holder == THREAD and lock.acquire())
        return lock

    @waits(refused=False)
    def acquire(self) -> Any:
        if self.holder != self.me.who and (self.depth or self.ahead()):
            return WAITS
        self.holder = self.me.who
        self.depth += 1
        return True

    @at_once(likely=lambda it: it.holder == it.me.who)
    def release(self) -> Any:
        if self.holder != self.me.who:
            return NotHeldError
        self.depth -= 1
        self.holder = self.me.who if self.depth else None
        return None

    undo_acquire = release

    def check(self) -> None:
        assert self.subject.statistics() == (self.depth > 0, self.depth, len(self.queue), True)
        assert self.subject._recursion_count() == (self.depth if self.holder == THREAD else 0)


class Limiters(Specification):
    """A borrower has one token at most. What is taken away is missing at once, or as it comes back."""

    examples = 25
    total = st.integers(1, 3)

    def make(self) -> Any:
        self.borrowers: list[int] = []
        return sync.CapacityLimiter(self.total, fair=True)

    @waits(refused=False)
    def acquire(self) -> Any:
        if self.me.who in self.borrowers:
            return AlreadyHeldError
        if self.ahead() or len(self.borrowers) >= self.total:
            return WAITS
        self.borrowers.append(self.me.who)
        return True

    @at_once(likely=lambda it: it.me.who in it.borrowers)
    def release(self) -> Any:
        return self.borrowers.remove(self.me.who) if self.me.who in self.borrowers else NotHeldError

    undo_acquire = release

    @at_once(st.integers(0, 4), now=lambda it, total: setattr(it.subject, "total_tokens", total))
    def resize(self, total: int) -> None:
        self.total = total

    def statistics(self) -> Any:
        return len(self.borrowers), self.total, len(self.queue), True


EACH = 4


class Rates(Specification):
    """A permit comes every EACH seconds, unless there are `most`. All are there at the date `full`, if none
    is taken until then; those that are given back unused count as taken, if others were taken since."""

    examples = 80
    most = st.integers(1, 3)
    now = full = 0
    passes = False

    def make(self) -> Any:
        self.clock = ManualClock()
        return sync.RateLimiter(1, EACH, burst=self.most, clock=self.clock)

    def date(self, n: int) -> int:
        """When there are so many."""
        return max(self.full, self.now) + (n - self.most) * EACH

    def delay(self, n: int) -> int:
        """How long a newcomer would wait, behind all others."""
        return max(self.date(n + sum(call.arguments[0] for call in self.queue)) - self.now, 0)

    def retry(self, call: Call) -> bool:
        """One that is told to look, as another has left, takes nothing if it is cancelled itself."""
        return (self.passes or call not in self.doomed) and super().retry(call)

    @waits(n=some, refused=False)
    def acquire(self, n: int) -> Any:
        if self.ahead() or self.date(n) > self.now:
            return WAITS
        self.full = self.me.full = max(self.full, self.now) + n * EACH
        return True

    def undo_acquire(self, n: int) -> None:
        self.full -= n * EACH if self.full == self.me.full else 0

    def hopeless(self) -> Any:
        return st.integers(1, self.most).flatmap(
            lambda n: st.tuples(st.just(n), st.integers(0, max(self.delay(n) - 1, 0)))
        )

    @at_once(hopeless, now=lambda it, what: it.subject.acquire(True, what[1], what[0]))
    def acquire_within(self, what: tuple[int, int]) -> Any:
        """A time that is known not to suffice is not waited for."""
        return not self.queue and not self.delay(what[0]) and self.acquire(what[0])

    @at_once(st.integers(0, 14), now=lambda it, seconds: it.clock.advance(seconds))
    def advance(self, seconds: int) -> None:
        """Those that are due meanwhile are served at their dates."""
        until, self.passes = self.now + seconds, True
        while self.queue and self.date(self.queue[0].arguments[0]) <= until:
            self.now = max(self.now, self.date(self.queue[0].arguments[0]))
            self.serve()
        self.now, self.passes = until, False

    def check(self) -> None:
        used = -(-max(self.full - self.now, 0) // EACH)
        assert self.subject.statistics() == (self.most - used, self.most, len(self.queue))
        for n in range(1, self.most + 1):
            assert self.subject.delay(n) == pytest.approx(self.delay(n))
