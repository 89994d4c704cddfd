"""SimpleQueue, CombiningLock, StartGate, once, Flag and ResourceGuard against models: tasks, and threads."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Any

import pytest
from actors import CANCELLED, Actor, Staged
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from waiting import PATIENCE_S, Thread, until

from fairlead.errors import QueueEmpty, ResourceBusyError
from fairlead.sync import CombiningLock, Flag, ResourceGuard, SimpleQueue, StartGate, once

pytestmark = pytest.mark.once

ACTORS = st.integers(0, 4)


class Lines(Staged):
    def __init__(self) -> None:
        super().__init__()
        self.subject: SimpleQueue[int] = SimpleQueue()
        self.held: deque[int] = deque()

    @rule(item=st.integers(0, 9), in_a_task=st.booleans())
    def put(self, item: int, in_a_task: bool) -> None:
        idle = self.stage.idle()
        if in_a_task and idle:
            self.stage.tell(idle[0], lambda: self.subject.put_async(item))
            self.expect(idle[:1], [None])
        else:
            self.subject.put(item)
        self.held.append(item)
        self.serve()

    def serve(self) -> None:
        self.stage.turn()
        while self.held and self.waiting:
            self.expect([self.waiting.pop(0)], [self.held.popleft()])

    @rule(at=ACTORS)
    def get(self, at: int) -> None:
        actor = self.stage.actors[at]
        if not actor.waits:
            self.stage.tell(actor, self.subject.get_async)
            self.waiting.append(actor)
            self.serve()

    @rule()
    def thread_gets(self) -> None:
        if self.held:
            assert self.subject.get(timeout=0) == self.held.popleft()
        else:
            with pytest.raises(QueueEmpty):
                self.subject.get_nowait()

    @precondition(lambda self: self.waiting)
    @rule(at=ACTORS, late=st.booleans())
    def cancel(self, at: int, late: bool) -> None:
        """Perhaps when there is an object for it: the next one has that."""
        actor = self.waiting.pop(at % len(self.waiting))
        if late:
            self.subject.put(7)
            self.held.append(7)
        actor.task.cancel()
        self.serve()
        self.expect([actor], [CANCELLED])

    @invariant()
    def agree(self) -> None:
        assert self.subject.statistics() == (len(self.held), len(self.waiting))
        assert self.subject.empty() is (not self.held)


class Combining(Staged):
    """Another thread holds the lock for a while, and then runs what the tasks came for, in their order."""

    @initialize(batch=st.integers(1, 3))
    def make(self, batch: int) -> None:
        self.subject = CombiningLock(batch=batch)
        self.batch = batch
        self.holder: Thread | None = None
        self.ran: list[int] = []
        self.due: list[int] = []
        self.combined = self.number = 0
        self.asked: list[tuple[int, bool]] = []
        """What each that waits has come for: its number, and whether it fails."""

    @precondition(lambda self: self.holder is None)
    @rule()
    def thread_holds_the_lock(self) -> None:
        self.go = threading.Event()
        self.holder = Thread(self.subject.run, lambda: self.go.wait(PATIENCE_S))
        until(self.subject.locked)

    def section(self, number: int, fails: bool) -> int:
        self.ran.append(number)
        if fails:
            raise LookupError(number)
        return number

    @rule(at=ACTORS, fails=st.booleans())
    def ask(self, at: int, fails: bool) -> None:
        actor, number = self.stage.actors[at], self.number
        if actor.waits:
            return
        self.number += 1
        self.stage.tell(actor, lambda: self.subject.run_async(lambda: self.section(number, fails)))
        if self.holder is None:
            self.due.append(number)
            self.expect([actor], [LookupError if fails else number])
        else:
            self.waiting.append(actor)
            self.asked.append((number, fails))

    @rule(failing=st.integers(0, 31))
    def all_ask(self, failing: int) -> None:
        for at in range(5):
            self.ask(at, bool(failing >> at & 1))

    @precondition(lambda self: self.waiting)
    @rule(at=ACTORS)
    def cancel(self, at: int) -> None:
        actor = self.waiting.pop(at % len(self.waiting))
        del self.asked[at % len(self.asked)]
        actor.task.cancel()
        self.stage.turn()
        self.expect([actor], [CANCELLED])

    @precondition(lambda self: self.holder is not None)
    @rule(at=st.none() | ACTORS)
    def thread_lets_go(self, at: int | None) -> None:
        """Perhaps one is cancelled that has not run since: what was run for it stays so."""
        assert self.holder is not None
        self.go.set()
        self.holder.result()
        self.holder = None
        results: list[Any] = [LookupError if fails else number for number, fails in self.asked]
        mine = min(self.batch, len(results))
        due = [number for number, _ in self.asked]
        if at is not None and results:
            at %= len(results)
            self.waiting[at].task.cancel()
            results[at] = CANCELLED
            if at >= mine:
                del due[at]
        self.combined += mine
        self.due += due
        self.stage.turn()
        gone, self.waiting, self.asked = self.waiting, [], []
        self.expect(gone, results)

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "subject"):
            assert self.ran == self.due
            state = (self.holder is not None, len(self.waiting), self.combined, self.batch)
            assert self.subject.statistics() == state

    def teardown(self) -> None:
        if getattr(self, "holder", None) is not None:
            self.thread_lets_go(None)
        super().teardown()


class Gates(Staged):
    def __init__(self) -> None:
        super().__init__()
        self.subject = StartGate()
        self.threads: list[Thread] = []

    @rule(at=ACTORS)
    def wait(self, at: int) -> None:
        actor = self.stage.actors[at]
        if not actor.waits:
            self.stage.tell(actor, self.subject.wait_async)
            self.waiting.append(actor)
            self.pass_if_open()

    @precondition(lambda self: len(self.threads) < 2)
    @rule()
    def thread_waits(self) -> None:
        self.threads.append(Thread(self.subject.behind(int), 411))
        expected = 0 if self.subject.is_open() else len(self.waiting) + len(self.threads)
        until(lambda: self.subject.statistics().waiting == expected)
        self.pass_if_open()

    @precondition(lambda self: self.waiting)
    @rule(at=ACTORS, late=st.booleans())
    def cancel(self, at: int, late: bool) -> None:
        """Perhaps when it has just been let through."""
        actor = self.waiting.pop(at % len(self.waiting))
        if late:
            self.subject.open()
        actor.task.cancel()
        self.pass_if_open()
        self.expect([actor], [CANCELLED])

    @rule()
    def open(self) -> None:
        self.subject.open()
        self.pass_if_open()

    def pass_if_open(self) -> None:
        if self.subject.is_open():
            for thread in self.threads:
                assert thread.result() == 411
            until(lambda: self.subject.statistics().waiting == 0)
        self.stage.turn()
        if self.subject.is_open():
            gone, self.waiting, self.threads = self.waiting, [], []
            self.expect(gone, [True] * len(gone))

    @invariant()
    def agree(self) -> None:
        is_open = self.subject.is_open()
        assert self.subject.wait(0) is is_open
        assert self.subject.statistics() == (is_open, len(self.waiting) + len(self.threads))
        assert all(actor.waits for actor in self.waiting)

    def teardown(self) -> None:
        self.open()
        super().teardown()


class Onces(Staged):
    """The function waits for its end, which a rule decides; who is first in ``waiting`` runs it."""

    def __init__(self) -> None:
        super().__init__()
        self.subject = once(self.function)
        self.calls = self.begun = 0
        self.value: int | None = None
        self.end: asyncio.Future[int]

    async def function(self) -> int:
        self.calls += 1
        self.end = self.stage.loop.create_future()
        return await self.end

    @rule(at=ACTORS)
    def call(self, at: int) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return
        self.stage.tell(actor, self.subject.call_async)
        if self.value is not None:
            self.expect([actor], [self.value])
            return
        self.waiting.append(actor)
        self.begun += len(self.waiting) == 1

    @precondition(lambda self: self.waiting)
    @rule(value=st.integers(0, 9))
    def return_a_value(self, value: int) -> None:
        self.end.set_result(value)
        self.value = value
        self.stage.turn()
        gone, self.waiting = self.waiting, []
        self.expect(gone, [value] * len(gone))

    @precondition(lambda self: self.waiting)
    @rule(at=st.none() | ACTORS)
    def fail_or_cancel(self, at: int | None) -> None:
        """Whoever runs it fails, or somebody is cancelled; if that was who ran it, the next one does."""
        at = 0 if at is None else at % len(self.waiting)
        fails = at == 0 and self.calls % 2 == 0
        actor = self.waiting.pop(at)
        if fails:
            self.end.set_exception(LookupError())
        else:
            actor.task.cancel()
        self.begun += at == 0 and bool(self.waiting)
        self.stage.turn()
        self.expect([actor], [LookupError if fails else CANCELLED])

    @invariant()
    def agree(self) -> None:
        done = self.value is not None
        assert self.calls == self.begun
        waiting = max(len(self.waiting) - 1, 0)
        assert self.subject.statistics() == (done, bool(self.waiting), waiting)


class Guards(Staged):
    def __init__(self) -> None:
        super().__init__()
        self.subject = ResourceGuard("reading from")
        self.inside: Actor | None = None

    async def enter(self) -> None:
        self.subject.__enter__()

    async def leave(self) -> None:
        self.subject.__exit__(None, None, None)

    @rule(at=ACTORS)
    def come(self, at: int) -> None:
        actor = self.stage.actors[at]
        self.stage.tell(actor, self.enter)
        self.expect([actor], [None if self.inside is None else ResourceBusyError])
        self.inside = self.inside or actor

    @precondition(lambda self: self.inside is not None)
    @rule()
    def go(self) -> None:
        assert self.inside is not None
        self.stage.tell(self.inside, self.leave)
        self.expect([self.inside], [None])
        self.inside = None

    @rule()
    def thread_comes_and_goes(self) -> None:
        if self.inside is None:
            with self.subject, pytest.raises(ResourceBusyError, match="already reading from"):
                self.subject.__enter__()
        else:
            with pytest.raises(ResourceBusyError):
                self.subject.__enter__()

    @invariant()
    def agree(self) -> None:
        assert self.subject.statistics() == (self.inside is not None,)


class Flags(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.subject: Flag[int] = Flag()
        self.value: int | None = None

    @rule(values=st.lists(st.integers(0, 9), min_size=1, max_size=3))
    def threads_set(self, values: list[int]) -> None:
        """At once: one of them is told so, if it was not set before, and its value stays."""
        gate = StartGate()
        threads = [Thread(gate.behind(self.subject.set), value) for value in values]
        gate.open()
        told = [value for thread, value in zip(threads, values, strict=True) if thread.result()]
        if self.value is None:
            assert len(told) == 1
            self.value = told[0]
        else:
            assert told == []

    @rule()
    def clear(self) -> None:
        self.subject.clear()
        self.value = None

    @invariant()
    def agree(self) -> None:
        is_set = self.value is not None
        assert self.subject.is_set() is bool(self.subject) is is_set
        assert self.subject.get(-1) == (self.value if is_set else -1)
        assert self.subject.statistics() == (is_set,)


TestLines = Lines.TestCase
TestLines.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestCombining = Combining.TestCase
TestCombining.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestGates = Gates.TestCase
TestGates.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
TestOnces = Onces.TestCase
TestOnces.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestGuards = Guards.TestCase
TestGuards.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
TestFlags = Flags.TestCase
TestFlags.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)
