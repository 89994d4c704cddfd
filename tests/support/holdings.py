"""The primitives that have holders: how each is taken first, and by which call another then waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from blocked import Blocked
from waiting import Inside

from fairlead.sync import CapacityLimiter, Lock, RLock, RWLock


@dataclass(frozen=True)
class Holding:
    name: str
    make: Callable[[], Any]
    taken: str = ""
    wanted: str = ""

    @property
    def kind(self) -> str:
        return type(self.make()).__name__

    def block(self, lock: Any, how: str) -> Any:
        return getattr(lock, how) if how else lock

    def calls(self, lock: Any, how: str) -> tuple[Any, Any, Callable[[Any], Any]]:
        """By a thread, by a task, and letting go."""
        one = self.block(lock, how)
        return one.acquire, one.acquire_async, lambda _: one.release()

    def blocked(self, _: int = 1, mine: bool = False) -> Blocked:
        """Held by a thread of its own, or by this one."""
        lock = self.make()
        wait, wait_async, undo = self.calls(lock, self.wanted)
        if mine:
            block = self.block(lock, self.taken)
            block.__enter__()
            end: Callable[[], Any] = partial(block.__exit__, None, None, None)
        else:
            end = Inside(self.block(lock, self.taken)).wait().go
        return Blocked(
            lock,
            wait,
            wait_async,
            lambda: int(lock.statistics().waiting),
            end,
            undo=undo,
        )


HOLDINGS = [
    Holding("Lock", Lock),
    Holding("fair Lock", partial(Lock, fair=True)),
    Holding("RLock", RLock),
    Holding("fair RLock", partial(RLock, fair=True)),
    Holding("RWLockView writing, read", RWLock, "reading", "writing"),
    Holding("RWLockView reading, written", RWLock, "writing", "reading"),
    Holding("RWLockView upgradable", RWLock, "upgradable", "upgradable"),
]
LIMITER = Holding("CapacityLimiter", partial(CapacityLimiter, 1))
