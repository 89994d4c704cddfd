"""A tree of phasers against a model that does everything eagerly: parties come, go, wait and are early."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from actors import CANCELLED, Actor, Staged
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from fairlead.errors import UsageError
from fairlead.sync import Phaser

pytestmark = pytest.mark.once

AT = st.integers(0, 4)
NODE = st.integers(0, 2)


class Node:
    """A phaser as one would tell it. `early` has an entry for each early one: whether it goes for good."""

    def __init__(self, parent: Node | None) -> None:
        self.parent = parent
        self.parties = self.unarrived = 0
        self.children: list[Node] = []
        """Those with parties, of which some are missing."""
        self.missing: list[Node] = []
        self.early: list[bool] = []

    def members(self) -> int:
        return self.parties + len(self.children)

    def complete(self) -> bool:
        return not self.unarrived and not self.missing

    def join(self, advancing: bool) -> bool:
        """Whether one that comes is of this phase."""
        if self.members():
            return not self.complete()
        if self.parent is None:
            return not advancing
        now = self.parent.join(advancing)
        self.parent.children.append(self)
        if now:
            self.parent.missing.append(self)
        return now

    def register(self, count: int, advancing: bool) -> bool:
        now = self.join(advancing)
        self.parties += count
        self.unarrived += count if now else 0
        return now

    def arrive(self, gone: bool) -> None:
        self.unarrived -= 1
        self.parties -= gone
        self.climb()

    def climb(self) -> None:
        if self.complete() and self.parent is not None:
            self.parent.missing.remove(self)
            if not self.members():
                self.parent.children.remove(self)
            self.parent.climb()

    def begin(self) -> None:
        self.unarrived, self.missing = self.parties, list(self.children)


class Phasers(Staged):
    @initialize()
    def make(self) -> None:
        self.root = Phaser(on_advance=self.on_advance)
        child = Phaser(parent=self.root)
        self.subjects = [self.root, child, Phaser(parent=child)]
        top = Node(None)
        middle = Node(top)
        self.nodes = [top, middle, Node(middle)]
        self.phase, self.terminated = 0, False
        self.plan: list[int | None] = []
        """What on_advance does next: registers with this node, or (None) ends it all."""
        self.until: list[tuple[Actor, int]] = []

    def on_advance(self, phase: int, parties: int) -> bool:
        """Runs while the model still has the phase that is over."""
        assert (phase, parties) == (self.phase, self.nodes[0].members())
        assert self.nodes[0].complete()
        todo = self.plan.pop(0) if self.plan else -1
        if todo is not None and todo >= 0:
            assert self.subjects[todo].register() == phase + 1
            self.nodes[todo].register(1, advancing=True)
        ends = todo is None or not self.nodes[0].members()
        if ends:
            self.terminated = True
            return todo is None
        self.phase += 1
        for node in self.nodes:
            node.begin()
        for node in self.nodes:
            early, node.early = node.early, []
            for gone in sorted(early):
                node.arrive(gone)
        return False

    def arrives(self, at: int, call: Callable[[], Any], gone: bool) -> None:
        """A thread that does not wait; the model goes first, as far as the last one's call."""
        if (phase := self.expected(at, gone)) is UsageError:
            with pytest.raises(UsageError):
                call()
        else:
            assert call() == phase
        self.told()

    def expected(self, at: int, gone: bool) -> Any:
        node = self.nodes[at]
        if self.terminated:
            return None
        if node.unarrived:
            phase = self.phase
            node.arrive(gone)
            return phase
        if len(node.early) == node.parties:
            return UsageError
        node.early.append(gone)
        return self.phase + 1

    def told(self) -> None:
        """Those whose phase is over go on."""
        self.stage.turn()
        done = [entry for entry in self.until if self.terminated or entry[1] < self.phase]
        self.until = [entry for entry in self.until if entry not in done]
        self.expect([actor for actor, _ in done], [None if self.terminated else self.phase] * len(done))

    @rule(at=NODE, count=st.integers(0, 2))
    def register(self, at: int, count: int) -> None:
        found = self.subjects[at].bulk_register(count)
        if self.terminated:
            assert found is None
        elif count:
            assert found == self.phase + (not self.nodes[at].register(count, advancing=False))
        else:
            assert found == self.phase

    @rule(at=NODE)
    def arrive(self, at: int) -> None:
        self.arrives(at, self.subjects[at].arrive, gone=False)

    @rule(at=NODE)
    def arrive_and_deregister(self, at: int) -> None:
        self.arrives(at, self.subjects[at].arrive_and_deregister, gone=True)

    @rule(at=AT, node=NODE)
    def arrive_and_wait(self, at: int, node: int) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return
        phase = self.expected(node, gone=False)
        self.stage.tell(actor, self.subjects[node].arrive_and_wait_async)
        if phase is UsageError:
            self.expect([actor], [UsageError])
            return
        if phase is None:
            self.expect([actor], [None])
            return
        self.until.append((actor, phase))
        self.told()

    @rule(at=AT, node=NODE, ahead=st.integers(-2, 2))
    def wait_phase(self, at: int, node: int, ahead: int) -> None:
        actor, phase = self.stage.actors[at], max(0, self.phase + ahead)
        if actor.waits:
            return
        self.stage.tell(actor, lambda: self.subjects[node].wait_phase_async(phase))
        self.until.append((actor, phase))
        self.told()

    @precondition(lambda self: self.until)
    @rule(at=AT)
    def cancel(self, at: int) -> None:
        actor, _ = self.until.pop(at % len(self.until))
        actor.task.cancel()
        self.stage.turn()
        self.expect([actor], [CANCELLED])

    @rule(todo=st.sampled_from([0, 1, 2, 1, 2, None]))
    def plan_one(self, todo: int | None) -> None:
        if len(self.plan) < 2:
            self.plan.append(todo)

    @precondition(lambda self: self.phase > 3)
    @rule(at=NODE)
    def terminate(self, at: int) -> None:
        self.subjects[at].terminate()
        self.terminated = True
        self.told()

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "nodes"):
            return
        waiting = [actor for actor, _ in self.until]
        for actor in self.stage.actors:
            assert actor.waits == (actor in waiting)
        for subject, node in zip(self.subjects, self.nodes, strict=True):
            found = subject.statistics()
            assert (found.phase, found.parties) == (self.phase, node.members())
            assert found.arrived == node.members() - node.unarrived - len(node.missing)
            assert (found.waiting, found.terminated) == (len(waiting), self.terminated)


TestPhasers = Phasers.TestCase
TestPhasers.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
