"""The primitives of fairlead.sync.shared. A caller is a process: this one, a second one, or one that is
killed after its calls. Which of those that wait is served is not specified."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import strategies as st

from fairlead.errors import NotHeldError, OwnerDiedError, QueueEmpty, QueueFull, QueueShutDown
from fairlead.sync import shared
from specifications.meetings import Barriers
from specifications.specification import WAITS, Specification, at_once, waits

HERE, THERE, DEAD, GONE = range(4)
"""DEAD is about to be killed, those that are GONE have been."""


class SharedPrimitive(Specification):
    examples = 12
    steps = 20
    peer = 0
    """The second process."""

    def died(self) -> None:
        """DEAD is killed."""

    def begun(self) -> bool:
        """Whether all that wait do so by now, where it tells."""
        return True

    def last_call(self) -> tuple[int, str, tuple[Any, ...]]:
        """Ends somebody's wait."""
        raise NotImplementedError


class SharedLocks(SharedPrimitive):
    """That its owner died is told to those that come until one recovers it, or it is theirs."""

    take_over = st.booleans()
    owner: int | None = None
    deaths = 0

    def make(self) -> Any:
        return shared.Lock(take_over=self.take_over)

    @waits(refused=False)
    def acquire(self) -> Any:
        if self.owner in (HERE, THERE, DEAD):
            return WAITS
        if self.owner == GONE and not self.take_over:
            return OwnerDiedError
        self.deaths += self.owner == GONE
        self.owner = self.me.who
        return True

    @at_once()
    def release(self) -> Any:
        if self.owner != self.me.who:
            return NotHeldError
        self.owner = None
        return None

    @at_once(when=lambda it: it.owner in (None, GONE))
    def recover(self) -> bool:
        died = self.owner == GONE
        self.deaths += died
        self.owner = self.me.who
        return died

    def died(self) -> None:
        self.owner = GONE if self.owner == DEAD else self.owner

    def last_call(self) -> tuple[int, str, tuple[Any, ...]]:
        return self.owner, "release", ()

    def check(self) -> None:
        locked, owner, _, deaths = self.subject.statistics()
        assert self.subject.locked() is locked is (self.owner is not None)
        assert deaths == self.deaths
        assert self.owner in (None, GONE) or owner == (os.getpid() if self.owner == HERE else self.peer)


class SharedSemaphores(SharedPrimitive):
    """Each permit is owned by a process. Those of one that dies are free for who comes."""

    value = st.integers(1, 3)

    def make(self) -> Any:
        self.held = [0, 0, 0]
        return shared.Semaphore(self.value, owned=True)

    @waits(refused=False)
    def acquire(self) -> Any:
        if sum(self.held) == self.value:
            return WAITS
        self.held[self.me.who] += 1
        return True

    @at_once(st.integers(1, 2))
    def release(self, many: int) -> Any:
        if self.held[self.me.who] < many:
            return NotHeldError
        self.held[self.me.who] -= many
        return None

    def died(self) -> None:
        self.held[DEAD] = 0

    def last_call(self) -> tuple[int, str, tuple[Any, ...]]:
        return (HERE if self.held[HERE] else THERE), "release", (1,)

    def check(self) -> None:
        """Of the dead it learns when somebody comes."""
        assert self.subject.locked() or sum(self.held) < self.value


class SharedEvents(SharedPrimitive):
    flag = False

    def make(self) -> Any:
        return shared.Event()

    @waits(refused=False)
    def wait(self) -> Any:
        return True if self.flag else WAITS

    @at_once()
    def set(self) -> None:
        self.flag = True

    @at_once()
    def clear(self) -> None:
        self.flag = False

    @at_once()
    def is_set(self) -> bool:
        return self.flag

    def last_call(self) -> tuple[int, str, tuple[Any, ...]]:
        return HERE, "set", ()

    def check(self) -> None:
        assert self.subject.is_set() is self.flag


class SharedBarriers(Barriers, SharedPrimitive):
    """That the last is killed as soon as it is through is no loss for the others."""

    examples = 12
    parties = st.integers(2, 3)

    def make(self) -> Any:
        return shared.Barrier(self.parties)

    def last_call(self) -> tuple[int, str, tuple[Any, ...]]:
        return HERE, "abort", ()

    def begun(self) -> bool:
        return self.broken or self.subject.n_waiting == len(self.queue)

    def check(self) -> None:
        assert self.subject.broken is self.broken
        assert self.begun()


def room(message: bytes) -> int:
    return 8 + len(message) + -len(message) % 8


class SharedQueues(SharedPrimitive):
    """Messages are bytes, of which so many fit; each takes 8 more than it has, in whole eights."""

    capacity = st.sampled_from([64, 128, 4096])
    open = True

    def make(self) -> Any:
        self.messages: list[bytes] = []
        return shared.Queue(capacity_bytes=self.capacity)

    def used(self) -> int:
        return sum(map(room, self.messages))

    @at_once(st.binary(max_size=70))
    def put_nowait(self, message: bytes) -> Any:
        if room(message) > self.capacity:
            return ValueError
        if not self.open:
            return QueueShutDown
        full = self.used() + room(message) > self.capacity
        return QueueFull if full else self.messages.append(message)

    @waits(refused=QueueEmpty)
    def get(self) -> Any:
        if self.messages:
            return self.messages.pop(0)
        return WAITS if self.open else QueueShutDown

    @at_once(st.booleans(), when=lambda it: it.age > 10)
    def shutdown(self, immediate: bool) -> None:
        self.open = False
        self.messages = [] if immediate else self.messages

    def last_call(self) -> tuple[int, str, tuple[Any, ...]]:
        return HERE, "shutdown", (True,)

    def check(self) -> None:
        """Of what was thrown away the room is not given back."""
        found = self.subject.statistics()
        assert found.shut_down is not self.open
        if self.open:
            assert found.used == self.used()
            assert self.subject.empty() is not bool(self.messages)


SHARED = [SharedLocks, SharedSemaphores, SharedEvents, SharedBarriers, SharedQueues]
