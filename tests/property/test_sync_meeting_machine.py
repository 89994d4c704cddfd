"""Condition, Barrier, Event, Latch and CountdownEvent against models: tasks of a loop, and its thread."""

from __future__ import annotations

from typing import Any

import pytest
from actors import CANCELLED, Actor, Staged
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from fairlead.errors import BrokenBarrierError, NotHeldError, TooManyReleasesError
from fairlead.sync import Barrier, Condition, CountdownEvent, Event, Latch, Lock, RLock

pytestmark = pytest.mark.once

ACTORS = st.integers(0, 4)


class Conditions(Staged):
    """The thread may hold the lock for a while; who was notified then waits for it, in order."""

    @initialize(lock=st.sampled_from([None, Lock, RLock]))
    def make(self, lock: Any) -> None:
        self.subject = Condition(fair=True) if lock is None else Condition(lock(fair=True))
        self.held = False
        self.woken: list[Actor] = []
        self.cancelled: set[Actor] = set()

    async def wait(self) -> bool:
        async with self.subject:
            return bool(await self.subject.wait_async())

    @precondition(lambda self: not self.held)
    @rule(at=ACTORS)
    def begin_to_wait(self, at: int) -> None:
        if not self.stage.actors[at].waits:
            self.stage.tell(self.stage.actors[at], self.wait)
            self.waiting.append(self.stage.actors[at])

    @precondition(lambda self: not self.held)
    @rule()
    def thread_holds_the_lock(self) -> None:
        assert self.subject.acquire(False)
        self.held = True

    @precondition(lambda self: self.held)
    @rule()
    def thread_lets_go(self) -> None:
        self.subject.release()
        self.held = False
        self.settle()

    @rule(n=st.integers(0, 3))
    def notify(self, n: int) -> None:
        if not self.held:
            with pytest.raises(NotHeldError):
                self.subject.notify(n)
            self.subject.acquire()
        self.wake(n)
        self.subject.notify(n)
        if not self.held:
            self.subject.release()
            self.settle()
        else:
            self.stage.turn()

    def wake(self, n: int) -> None:
        self.woken += self.waiting[:n]
        del self.waiting[:n]

    @precondition(lambda self: not self.held)
    @rule()
    def thread_waits_in_vain(self) -> None:
        with self.subject:
            assert self.subject.wait(0) is False
        self.settle()

    @precondition(lambda self: self.waiting)
    @rule(at=ACTORS, late=st.booleans())
    def cancel_one_that_waits(self, at: int, late: bool) -> None:
        """Perhaps in the instant in which the first one is notified, which may be the same."""
        actor = self.waiting[at % len(self.waiting)]
        if late:
            if self.held:
                self.subject.notify(1)
            else:
                with self.subject:
                    self.subject.notify(1)
            self.wake(1)
        actor.task.cancel()
        if actor in self.woken:  # and has not run since: the notice goes to the next at once
            self.woken.remove(actor)
            self.wake(1)
        else:
            self.waiting.remove(actor)
        self.cancelled.add(actor)
        self.stage.turn()
        if self.held:
            assert actor.waits  # for the lock
            self.subject.release()
            self.held = False
        self.cancelled.discard(actor)
        self.settle()
        self.expect([actor], [CANCELLED])

    @precondition(lambda self: self.held and self.woken)
    @rule(at=ACTORS)
    def cancel_one_that_waits_for_the_lock(self, at: int) -> None:
        actor = self.woken[at % len(self.woken)]
        actor.task.cancel()
        self.cancelled.add(actor)
        self.stage.turn()
        assert actor.waits

    def settle(self) -> None:
        """The lock is free: all that were woken have it in turn; who is cancelled passes its notice on."""
        self.stage.turn()
        self.stage.turn()
        if self.held:
            return
        while self.woken:
            actor = self.woken.pop(0)
            if actor in self.cancelled:
                self.wake(1)
            self.expect([actor], [CANCELLED if actor in self.cancelled else True])
            self.cancelled.discard(actor)

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "subject"):
            assert self.subject.statistics().waiting == len(self.waiting)
            assert self.subject.locked() is self.held

    def teardown(self) -> None:
        if getattr(self, "held", False):
            self.subject.release()
        super().teardown()


class Barriers(Staged):
    @initialize(parties=st.integers(1, 4))
    def make(self, parties: int) -> None:
        self.parties = parties
        self.subject = Barrier(parties)
        self.broken = False

    def end(self, results: list[Any]) -> None:
        self.stage.turn()
        gone, self.waiting = self.waiting, []
        self.expect(gone, results)

    @rule(at=ACTORS)
    def arrive(self, at: int) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return
        self.stage.tell(actor, self.subject.wait_async)
        if self.broken:
            self.expect([actor], [BrokenBarrierError])
            return
        self.waiting.append(actor)
        if len(self.waiting) == self.parties:
            self.end(list(range(self.parties)))

    @precondition(lambda self: not self.broken and len(self.waiting) == self.parties - 1)
    @rule(at=ACTORS, cancels=st.booleans())
    def thread_is_the_last(self, at: int, cancels: bool) -> None:
        """Perhaps one is cancelled that was let through and has not run since: the others are through."""
        assert self.subject.wait() == self.parties - 1
        results: list[Any] = list(range(self.parties - 1))
        if cancels and self.waiting:
            self.waiting[at % len(self.waiting)].task.cancel()
            results[at % len(self.waiting)] = CANCELLED
        self.end(results)

    @precondition(lambda self: len(self.waiting) < self.parties - 1)
    @rule()
    def thread_times_out(self) -> None:
        with pytest.raises(BrokenBarrierError):
            self.subject.wait(0)
        self.broken = True
        self.end([BrokenBarrierError] * len(self.waiting))

    @precondition(lambda self: self.waiting)
    @rule(at=ACTORS)
    def cancel(self, at: int) -> None:
        at %= len(self.waiting)
        self.waiting[at].task.cancel()
        self.broken = True
        results: list[Any] = [BrokenBarrierError] * len(self.waiting)
        results[at] = CANCELLED
        self.end(results)

    @rule(reset=st.booleans())
    def abort_or_reset(self, reset: bool) -> None:
        if reset:
            self.subject.reset()
        else:
            self.subject.abort()
        self.broken = not reset
        self.end([BrokenBarrierError] * len(self.waiting))

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "subject"):
            assert self.subject.statistics() == (self.parties, len(self.waiting), self.broken)


class Counts(Staged):
    """What is to come, from n to 0, where all that wait go on; an Event's is 1."""

    @initialize(kind=st.sampled_from([Event, Latch, CountdownEvent]), count=st.integers(0, 3))
    def make(self, kind: Any, count: int) -> None:
        self.kind = kind
        self.count = 1 if kind is Event else count
        self.subject = kind() if kind is Event else kind(count)

    @rule(at=ACTORS)
    def wait(self, at: int) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return
        self.stage.tell(actor, self.subject.wait_async)
        if self.count == 0:
            self.expect([actor], [True])
        else:
            self.waiting.append(actor)

    @rule(n=st.integers(1, 2), again=st.booleans())
    def count_down(self, n: int, again: bool) -> None:
        """Perhaps up again at once: who waited goes on all the same."""
        if self.kind is Event:
            self.subject.set()
            self.count = 0
        elif n > self.count:
            with pytest.raises(TooManyReleasesError):
                self.subject.count_down(n)
        else:
            self.subject.count_down(n)
            self.count -= n
        came = self.count == 0
        if again:
            self.up()
        if came:
            self.stage.turn()
            gone, self.waiting = self.waiting, []
            self.expect(gone, [True] * len(gone))

    @rule()
    def up(self) -> None:
        if self.kind is Event:
            self.subject.clear()
            self.count = 1
        elif self.kind is CountdownEvent:
            self.subject.count_up()
            self.count += 1

    @precondition(lambda self: self.waiting)
    @rule(at=ACTORS)
    def cancel(self, at: int) -> None:
        actor = self.waiting.pop(at % len(self.waiting))
        actor.task.cancel()
        self.stage.turn()
        self.expect([actor], [CANCELLED])

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "subject"):
            assert self.subject.is_set() is (self.count == 0)
            assert self.subject.statistics().waiting == len(self.waiting)
            assert self.subject.wait(0) is (self.count == 0)
            for actor in self.waiting:
                assert actor.waits


TestConditions = Conditions.TestCase
TestConditions.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestBarriers = Barriers.TestCase
TestBarriers.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestCounts = Counts.TestCase
TestCounts.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
