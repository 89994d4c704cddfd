"""RWLock against a model of its phases: tasks of a loop, and its thread, which is holder None."""

from __future__ import annotations

from typing import Any

import pytest
from actors import CANCELLED, Actor, Stage
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fairlead.errors import DeadlockError, NotHeldError
from fairlead.sync import RWLock, RWLockView

pytestmark = pytest.mark.once

ACTORS = st.integers(0, 3)
MODES = st.sampled_from(["reading", "upgradable", "writing"])
ORDER = ["", "reading", "upgradable", "writing"]


class RWLocks(RuleBasedStateMachine):
    """The model knows who is inside after each step, because nobody is ever passed but as phases say."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(4)
        self.held: dict[Actor | None, dict[str, int]] = {}
        self.waiting: list[tuple[Actor, str]] = []  # "raise": from upgradable to writing, always first

    @initialize()
    def make(self) -> None:
        self.lock = RWLock()

    def face(self, mode: str) -> RWLockView:
        return getattr(self.lock, mode)  # type: ignore[no-any-return]

    def level(self, who: Actor | None) -> str:
        times = self.held.get(who, {})
        return next((mode for mode in reversed(ORDER[1:]) if times.get(mode)), "")

    def inside(self, mode: str) -> int:
        return sum(self.level(who) == mode for who in self.held)

    def fits(self, mode: str, queued: bool) -> bool:
        if mode == "raise":
            return self.inside("reading") == 0
        if self.inside("writing") or (mode != "reading" and self.inside("upgradable")):
            return False
        if mode == "writing":
            return not self.held and (queued or not self.waiting)
        barred = any(wanted in ("writing", "raise") for _, wanted in self.waiting)
        ahead = mode == "upgradable" and any(wanted == "upgradable" for _, wanted in self.waiting)
        return queued or not (barred or ahead)

    def enter(self, who: Actor | None, mode: str) -> None:
        times = self.held.setdefault(who, {})
        times[mode] = times.get(mode, 0) + 1

    def admit(self, index: int) -> bool:
        actor, mode = self.waiting[index]
        if not self.fits(mode, True):
            return False
        del self.waiting[index]
        self.enter(actor, "writing" if mode == "raise" else mode)
        return True

    def serve(self, after_writing: bool) -> None:
        writer = next(
            (i for i, (_, wanted) in enumerate(self.waiting) if wanted in ("writing", "raise")), None
        )
        if writer is None or (after_writing and self.waiting[writer][1] == "writing"):
            for one in [one for one in self.waiting if one[1] in ("reading", "upgradable")]:
                self.admit(self.waiting.index(one))
            writer = 0 if self.waiting else None
        while writer is not None and self.waiting and self.admit(writer):
            pass
        self.stage.turn()
        for actor in self.stage.actors:
            assert actor.waits == (actor in [one for one, _ in self.waiting])

    def plan(self, who: Actor | None, mode: str) -> str:
        """What happens at once: error, in, or what is waited for."""
        level = self.level(who)
        if level and ORDER.index(level) >= ORDER.index(mode):
            return "in"
        if level == "reading":
            return "error"
        wanted = "raise" if level else mode
        return "in" if self.fits(wanted, False) else wanted

    @rule(at=ACTORS, mode=MODES)
    def come_in(self, at: int, mode: str) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return
        plan = self.plan(actor, mode)
        self.stage.tell(actor, self.face(mode).acquire_async)
        if plan == "in":
            assert actor.results[-1] is True
            self.enter(actor, mode)
        elif plan == "error":
            assert isinstance(actor.results[-1], DeadlockError)
        else:
            assert actor.waits
            self.waiting.insert(0 if plan == "raise" else len(self.waiting), (actor, plan))

    @rule(mode=MODES)
    def thread_tries(self, mode: str) -> None:
        plan = self.plan(None, mode)
        try:
            entered = self.face(mode).acquire(False)
        except DeadlockError:
            assert plan == "error"
            return
        assert entered is (plan == "in")
        if entered:
            self.enter(None, mode)

    def gone(self, who: Actor | None, mode: str) -> None:
        before = self.level(who)
        self.held[who][mode] -= 1
        if not self.level(who):
            del self.held[who]
        if before != self.level(who):
            self.serve(before == "writing")

    @rule(at=ACTORS, mode=MODES)
    def go_out(self, at: int, mode: str) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return

        async def call() -> Any:
            return self.face(mode).release()

        self.stage.tell(actor, call)
        if self.held.get(actor, {}).get(mode):
            assert actor.results[-1] is None
            self.gone(actor, mode)
        else:
            assert isinstance(actor.results[-1], NotHeldError)

    @precondition(lambda self: None in self.held)
    @rule(downgrade=st.booleans())
    def thread_goes_out_or_down(self, downgrade: bool) -> None:
        mode = self.level(None)
        if downgrade and mode != "reading":
            self.lock.downgrade()
            self.enter(None, "reading")
        else:
            self.face(mode).release()
        self.gone(None, mode)

    @precondition(lambda self: self.waiting)
    @rule(at=ACTORS, late=st.booleans())
    def cancel(self, at: int, late: bool) -> None:
        """Perhaps after it was granted what the thread has given, and has not run since."""
        actor, wanted = self.waiting[at % len(self.waiting)]
        mode = "writing" if wanted == "raise" else wanted
        level = self.level(None)
        if late and level and sum(self.held[None].values()) == 1:
            self.face(level).release()
            del self.held[None]
            self.grant_without_a_turn(level == "writing")
        actor.task.cancel()
        if (actor, wanted) in self.waiting:
            self.waiting.remove((actor, wanted))
            self.serve(False)
        else:
            self.held[actor][mode] -= 1
            if not self.level(actor):
                del self.held[actor]
            self.serve(mode == "writing")
        assert actor.results[-1] == CANCELLED

    def grant_without_a_turn(self, after_writing: bool) -> None:
        turn, self.stage.turn = self.stage.turn, lambda: None  # type: ignore[method-assign]
        actors, self.stage.actors = self.stage.actors, []
        try:
            self.serve(after_writing)
        finally:
            self.stage.turn, self.stage.actors = turn, actors  # type: ignore[method-assign]

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "lock"):
            assert self.lock.statistics() == (
                self.inside("reading"),
                self.inside("upgradable") == 1,
                self.inside("writing") == 1,
                len(self.waiting),
            )

    def teardown(self) -> None:
        for mode, times in self.held.pop(None, {}).items():
            for _ in range(times):
                self.face(mode).release()
        self.stage.close()
        if hasattr(self, "lock"):
            assert self.lock.statistics().waiting == 0


TestRWLocks = RWLocks.TestCase
TestRWLocks.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
