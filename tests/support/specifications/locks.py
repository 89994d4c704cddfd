"""Readers-writer locks, and the combiner, whose holder runs what others came for."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from hypothesis import strategies as st
from waiting import PATIENCE_S, Thread, until

from fairlead.errors import DeadlockError, NotHeldError
from fairlead.sync import RWLock
from fairlead.sync.extra import Combiner, StampedLock
from specifications.specification import THREAD, WAITS, Call, Specification, at_once, waits


class Phases(Specification):
    """Phases of reading and writing alternate while both are wanted: a write phase that ends lets in all
    readers that wait at that instant. A writer that waits keeps newcomers out."""

    examples = 50
    steps = 30
    readers_turn = False

    def writes(self, call: Call) -> bool:
        raise NotImplementedError

    def raises(self, call: Call) -> bool:  # noqa: ARG002
        """Whether it reads already, and will be the next to write."""
        return False

    def new(self) -> bool:
        return self.me not in self.queue

    def kept_out(self) -> bool:
        return self.new() and any(self.writes(call) for call in self.queue)

    def serve(self) -> None:
        readers_turn, self.readers_turn = self.readers_turn, False
        while True:
            writers = [call for call in self.queue if self.writes(call)]
            if not writers or (readers_turn and not self.raises(writers[0])):
                for call in [call for call in self.queue if call not in writers]:
                    self.retry(call)
            if not writers or not self.retry(writers[0]):
                return


MODES = ["", "reading", "upgradable", "writing"]
MODE = st.sampled_from(MODES[1:])


def view(it: Any, mode: str) -> Any:
    return getattr(it.subject, mode)


class RWLocks(Phases):
    """A holder, at first perhaps the thread, may come in again, by any view that asks for no more than it
    has. The one that is upgradable may write next, before all others; a reader may not."""

    examples = 120
    mode = MODE | st.just("")

    def make(self) -> Any:
        self.held: list[Counter[str]] = [Counter() for _ in range(THREAD + 1)]
        lock = RWLock()
        if self.mode:
            self.held[THREAD][self.mode] = int(getattr(lock, self.mode).acquire())
        return lock

    def writes(self, call: Call) -> bool:
        return call.arguments == ("writing",)

    def raises(self, call: Call) -> bool:
        return self.level(call.who) == "upgradable"

    def level(self, who: int) -> str:
        return max((mode for mode, times in self.held[who].items() if times), key=MODES.index, default="")

    def inside(self, mode: str) -> int:
        return [self.level(who) for who in range(THREAD + 1)].count(mode)

    def enqueue(self, call: Call) -> None:
        self.queue.insert(0 if self.raises(call) else len(self.queue), call)

    def fits(self, mode: str) -> bool:
        if self.raises(self.me):
            return not self.inside("reading")
        if mode == "writing":
            return not (self.new() and self.queue) and self.inside("") == THREAD + 1
        if self.inside("writing") or self.kept_out():
            return False
        return mode == "reading" or not (self.inside("upgradable") or (self.new() and self.queue))

    @waits(MODE, on=view, refused=False)
    def acquire(self, mode: str) -> Any:
        level = self.level(self.me.who)
        if MODES.index(level) < MODES.index(mode):
            if level == "reading":
                return DeadlockError
            if not self.fits(mode):
                return WAITS
        self.held[self.me.who][mode] += 1
        return True

    @at_once(MODE, on=view, likely=lambda it: it.level(it.me.who))
    def release(self, mode: str) -> Any:
        held, before = self.held[self.me.who], self.level(self.me.who)
        if not held[mode]:
            return NotHeldError
        held[mode] -= 1
        self.readers_turn = before == "writing" != self.level(self.me.who)
        return None

    undo_acquire = release

    @at_once(likely=lambda it: it.level(it.me.who) in MODES[2:])
    def downgrade(self) -> Any:
        """With no other writer in between."""
        level = self.level(self.me.who)
        if level not in MODES[2:]:
            return NotHeldError
        self.held[self.me.who]["reading"] += 1
        return self.release(level)

    def statistics(self) -> Any:
        return *(self.inside(mode) for mode in MODES[1:]), len(self.queue)


class Stamp:
    """Of a holder or of an optimistic reader, given after so many writers had begun."""

    number = 0

    def __init__(self, mode: str, changes: int) -> None:
        self.mode, self.changes = mode, changes

    def learn(self, number: int) -> bool:
        self.number = number
        return number > 0


def any_stamp(it: Any) -> Any:
    return st.integers(0, len(it.stamps) - 1)


class StampedLocks(Specification):
    """Waiters are served in order. An optimistic reader's stamp is valid until the next writer begins."""

    examples = 50
    steps = 30
    changes = 0

    def make(self) -> Any:
        self.stamps: list[Stamp] = []
        self.inside: list[Stamp | Call] = []
        """A task that was let in and has not run since has no stamp yet, and has written nothing."""
        return StampedLock()

    def writes(self, call: Call) -> bool:
        return call.name == "acquire_write"

    def writing(self) -> bool:
        return any(one.mode == "write" if isinstance(one, Stamp) else self.writes(one) for one in self.inside)

    def waiting(self) -> list[Call]:
        return self.ahead("acquire_read", "acquire_write")

    @waits(refused=0)
    def acquire_read(self) -> Any:
        return WAITS if self.writing() or self.waiting() else self.inside.append(self.me)

    @waits(refused=0)
    def acquire_write(self) -> Any:
        return WAITS if self.inside or self.waiting() else self.inside.append(self.me)

    def ran_acquire_read(self) -> Any:
        return self.convert_to("read", self.me)

    def ran_acquire_write(self) -> Any:
        return self.convert_to("write", self.me)

    def undo_acquire_read(self) -> None:
        self.inside.remove(self.me)

    undo_acquire_write = undo_acquire_read

    def convert_to(self, mode: str, one: Stamp | Call) -> Any:
        if one in self.inside:
            self.inside.remove(one)
        self.changes += mode == "write"
        self.stamps.append(Stamp(mode, self.changes))
        self.inside += self.stamps[-1:] if mode in ("read", "write") else []
        return self.stamps[-1].learn

    @at_once()
    def optimistic_read(self) -> Any:
        active = any(isinstance(one, Stamp) and one.mode == "write" for one in self.inside)
        return 0 if active else self.convert_to("optimistic_read", self.me)

    @at_once(
        any_stamp, now=lambda it, at: it.subject.release(it.stamps[at].number), when=lambda it: it.stamps
    )
    def release(self, at: int) -> Any:
        return self.inside.remove(self.stamps[at]) if self.stamps[at] in self.inside else NotHeldError

    @at_once(
        any_stamp,
        st.sampled_from(["read", "write", "optimistic_read"]),
        now=lambda it, at, to: getattr(it.subject, f"try_convert_to_{to}")(it.stamps[at].number),
        when=lambda it: it.stamps,
    )
    def convert(self, at: int, to: str) -> Any:
        """A reader must be alone to write, but may pass those that wait."""
        stamp = self.stamps[at]
        if stamp.mode == "optimistic_read":
            if stamp.changes != self.changes:
                return 0
            if to != stamp.mode:
                taken = self.acquire_read() if to == "read" else self.acquire_write()
                return 0 if taken is WAITS else self.convert_to(to, self.me)
        elif stamp not in self.inside:
            return NotHeldError
        elif to == "write" != stamp.mode and len(self.inside) > 1:
            return 0
        return stamp.number if to == stamp.mode else self.convert_to(to, stamp)

    def check(self) -> None:
        writing = self.writing()
        assert self.subject.statistics() == (0 if writing else len(self.inside), writing, len(self.queue))
        for stamp in self.stamps:
            optimistic = stamp.mode == "optimistic_read"
            valid = stamp.changes == self.changes if optimistic else stamp in self.inside
            assert self.subject.validate(stamp.number) is valid
        numbers = [stamp.number for stamp in self.stamps if stamp.mode != "optimistic_read"]
        assert len(numbers) == len(set(numbers))


class Combiners(Specification):
    """Another thread holds the lock for a while, and then runs what the first of those that wait came for.
    The next one gets the lock, runs its own, and passes the lock on, as that is in the main thread."""

    examples = 40
    combined = numbers = 0
    batch = st.integers(1, 3)
    holder: Thread | None = None

    def make(self) -> Any:
        self.runs: list[int] = []
        self.should_run: list[int] = []
        return Combiner(batch=self.batch)

    def number(self) -> Any:
        self.numbers += 1
        return st.just(self.numbers)

    def locked(self) -> bool:
        return self.holder is not None or any(call.result == "leads" for call in self.granted)

    def function(self, number: int, fails: bool) -> int:
        self.runs.append(number)
        return number // (not fails)

    def ask(self, number: int, fails: bool) -> Any:
        return self.subject.run_async(lambda: self.function(number, fails))

    @waits(number, st.booleans(), task=ask)
    def asks(self, *_: Any) -> Any:
        return WAITS if self.locked() or self.ahead() else "leads"

    def ran_asks(self, number: int, fails: bool) -> Any:
        self.should_run += [number] if self.me.result == "leads" else []
        return ZeroDivisionError if fails else number

    def begin(self) -> None:
        self.over = threading.Event()
        self.holder = Thread(self.subject.run, lambda: self.over.wait(PATIENCE_S))
        until(self.subject.locked)

    @at_once(now=begin, by_thread=True, when=lambda it: not (it.locked() or it.queue))
    def hold(self) -> None:
        pass

    def finish(self) -> None:
        self.over.set()
        self.holder.result()

    @at_once(now=finish, by_thread=True, when=lambda it: it.holder)
    def let_go(self) -> None:
        self.holder = None
        for call in self.queue[: self.batch]:
            self.combined += 1
            self.should_run.append(call.arguments[0])
            self.grant(call, "has been run")

    def check(self) -> None:
        assert self.runs == self.should_run
        assert self.subject.statistics() == (self.locked(), len(self.queue), self.combined, self.batch)

    def stop(self) -> None:
        if self.holder:
            self.finish()
            self.let_go()
            self.serve()
