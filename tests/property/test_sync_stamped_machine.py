"""StampedLock against a model: tasks of a loop and its thread inside, and stamps of those who only look."""

from __future__ import annotations

from typing import Any

import pytest
from actors import CANCELLED, Actor, Staged
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from fairlead.errors import NotHeldError
from fairlead.sync import StampedLock

pytestmark = pytest.mark.once

ACTORS = st.integers(0, 4)
MODES = st.sampled_from(["read", "write"])
ANY = st.integers(0, 99)


class Stamped(Staged):
    """The model knows who is inside after each step, because phases are handed over."""

    def __init__(self) -> None:
        super().__init__()
        self.subject = StampedLock()
        self.inside: dict[int, str] = {}
        self.gone: list[int] = []
        self.looks: list[tuple[int, int]] = []
        """Stamps of those who look, and which change they have seen last."""
        self.changes = 0
        self.wanted: list[str] = []
        """Of each that waits."""
        self.granted: list[tuple[Actor, str]] = []

    def writing(self) -> bool:
        return "write" in self.inside.values()

    def fits(self, mode: str, queued: bool) -> bool:
        if mode == "write":
            return not (self.inside or self.granted) and (queued or not self.wanted)
        busy = self.writing() or any(mode == "write" for _, mode in self.granted)
        return not busy and (queued or "write" not in self.wanted)

    def admit(self, at: int) -> bool:
        if not self.fits(self.wanted[at], True):
            return False
        self.granted.append((self.waiting.pop(at), self.wanted.pop(at)))
        return True

    def serve(self, after_writing: bool) -> None:
        if after_writing or "write" not in self.wanted:
            while "read" in self.wanted and self.admit(self.wanted.index("read")):
                pass
        while "write" in self.wanted and self.admit(self.wanted.index("write")):
            pass
        if "write" not in self.wanted:
            while "read" in self.wanted and self.admit(self.wanted.index("read")):
                pass

    def enter(self, stamp: Any, mode: str) -> None:
        assert stamp > 0
        assert stamp not in self.inside
        assert stamp not in self.gone
        self.inside[stamp] = mode
        self.changes += mode == "write"

    def see(self) -> None:
        self.stage.turn()
        granted, self.granted = self.granted, []
        for actor, mode in granted:
            assert not actor.waits
            self.enter(actor.results[-1], mode)

    def leave(self, stamp: int) -> str:
        self.gone.append(stamp)
        return self.inside.pop(stamp)

    @rule(at=ACTORS, mode=MODES)
    def acquire(self, at: int, mode: str) -> None:
        actor = self.stage.actors[at]
        if not actor.waits:
            there = self.fits(mode, False)
            self.stage.tell(actor, getattr(self.subject, f"acquire_{mode}_async"))
            if there:
                self.enter(actor.results[-1], mode)
            else:
                self.waiting.append(actor)
                self.wanted.append(mode)

    @rule(mode=MODES)
    def thread_tries(self, mode: str) -> None:
        there = self.fits(mode, False)
        stamp = getattr(self.subject, f"acquire_{mode}")(False)
        if there:
            self.enter(stamp, mode)
        else:
            assert stamp == 0

    @precondition(lambda self: self.inside)
    @rule(which=ANY)
    def release(self, which: int) -> None:
        stamp = sorted(self.inside)[which % len(self.inside)]
        self.subject.release(stamp)
        self.serve(self.leave(stamp) == "write")
        self.see()

    @rule()
    def look(self) -> None:
        stamp = self.subject.optimistic_read()
        if self.writing():
            assert stamp == 0
        else:
            self.looks.append((stamp, self.changes))

    @precondition(lambda self: self.inside)
    @rule(which=ANY, to=st.sampled_from(["read", "write", "optimistic_read"]))
    def convert(self, which: int, to: str) -> None:
        stamp = sorted(self.inside)[which % len(self.inside)]
        mode = self.inside[stamp]
        got = getattr(self.subject, f"try_convert_to_{to}")(stamp)
        if to == mode:
            assert got == stamp
        elif to == "write" and len(self.inside) > 1:
            assert got == 0
        else:
            self.leave(stamp)
            if to == "optimistic_read":
                self.looks.append((got, self.changes))
            else:
                self.enter(got, to)
            if to != "write":
                self.serve(mode == "write")
        self.see()
        if to == "optimistic_read":
            assert self.subject.validate(got) is (self.changes == self.looks[-1][1])

    @precondition(lambda self: self.looks)
    @rule(which=ANY, to=MODES)
    def convert_one_who_looks(self, which: int, to: str) -> None:
        stamp, changes = self.looks[which % len(self.looks)]
        there = self.fits(to, False) and changes == self.changes
        got = getattr(self.subject, f"try_convert_to_{to}")(stamp)
        if there:
            self.enter(got, to)
        else:
            assert got == 0

    @precondition(lambda self: self.gone)
    @rule(which=ANY)
    def stamps_of_those_who_left_are_refused(self, which: int) -> None:
        stamp = self.gone[which % len(self.gone)]
        subject = self.subject
        assert subject.validate(stamp) is False
        for call in (subject.release, subject.try_convert_to_write, subject.try_convert_to_optimistic_read):
            with pytest.raises(NotHeldError):
                call(stamp)

    @precondition(lambda self: self.waiting)
    @rule(at=ACTORS, which=ANY, late=st.booleans())
    def cancel(self, at: int, which: int, late: bool) -> None:
        """Perhaps after it was granted what it wants, and has not run since: nothing has been written."""
        actor = self.waiting[at % len(self.waiting)]
        if late and self.inside:
            stamp = sorted(self.inside)[which % len(self.inside)]
            self.subject.release(stamp)
            self.serve(self.leave(stamp) == "write")
        actor.task.cancel()
        if actor in self.waiting:
            del self.wanted[self.waiting.index(actor)]
            self.waiting.remove(actor)
            self.serve(False)
        else:
            mode = next(mode for one, mode in self.granted if one is actor)
            self.granted.remove((actor, mode))
            self.serve(mode == "write")
        self.see()
        assert actor.results[-1] == CANCELLED

    @invariant()
    def agree(self) -> None:
        modes = list(self.inside.values())
        assert self.subject.statistics() == (modes.count("read"), self.writing(), len(self.waiting))
        for stamp, changes in self.looks[-5:]:
            assert self.subject.validate(stamp) is (changes == self.changes and not self.writing())
        assert all(self.subject.validate(stamp) for stamp in self.inside)

    def teardown(self) -> None:
        for stamp in self.inside:
            self.subject.release(stamp)
        super().teardown()


TestStamped = Stamped.TestCase
TestStamped.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
