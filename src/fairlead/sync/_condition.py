"""Condition: threads and tasks that wait, under one lock, until another tells them to look again.

A thread's wait is one call of native code. A task's is a coroutine: it queues, lets go of the lock, waits,
and takes the lock again under the protection of its library, so that a cancellation comes through only when
the lock is held.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from fairlead._native import ConditionQueue, Lock, LockStatistics, Operation, RLock, RLockStatistics
from fairlead.errors import NotHeldError, UsageError
from fairlead.wait import uncancelled

T = TypeVar("T")


class ConditionStatistics(NamedTuple):
    """A condition at one moment.

    Attributes:
        waiting: threads and tasks that wait to be notified.
        lock: the statistics of its lock.
    """

    waiting: int
    lock: LockStatistics | RLockStatistics


class Condition:
    """As threading.Condition, and with ``wait_async`` and ``async with`` as asyncio.Condition.

    Guarantees: waiters are notified, and take the lock again, in the order in which they began to wait:
    ``notify_all`` wakes one, and each wakes the next as soon as it has the lock. When ``wait`` or
    ``wait_async`` ends, in whatever way, the lock is held again, as often as before. A wait that ends with an
    exception takes no notification along: if it had been notified, the next waiter is. No spurious wake-ups;
    but another may have had the lock meanwhile, so re-check the predicate, or use ``wait_for``.

    Args:
        lock: a Lock or an RLock; without one, an RLock of its own.
        fair: of the condition's own lock, as of an RLock.
    """

    __slots__ = ("__weakref__", "_lock", "_lost", "_notices", "acquire", "acquire_async", "locked", "release")

    def __init__(self, lock: Lock | RLock | None = None, *, fair: bool = False) -> None:
        if lock is None:
            lock = RLock(fair=fair)
        elif fair:
            raise ValueError(
                "fair is for a lock that the Condition makes itself: make your lock with fair=True"
            )
        if not isinstance(lock, Lock | RLock):
            raise TypeError(
                f"a Condition takes a Lock or an RLock of fairlead.sync, not {type(lock).__name__}"
            )
        if isinstance(lock, Lock) and lock.on_owner_death == "break":
            raise UsageError(
                "a Condition must be able to acquire its lock again: it takes no lock that breaks"
            )
        self._lock = lock
        self._notices = ConditionQueue()
        self._lost: dict[int, int] = {}
        self.acquire = lock.acquire
        self.release = lock.release
        self.locked = lock.locked
        self.acquire_async = lock.acquire_async

    def __enter__(self) -> bool:
        return self._lock.__enter__()

    def __exit__(self, *exc_info: object) -> None:
        self._lock.__exit__(*exc_info)

    def __aenter__(self) -> Operation[Any]:
        if self._lost:
            self._lost.pop(threading.get_ident(), None)
        return self._lock.__aenter__()

    def __aexit__(
        self, kind: type[BaseException] | None, error: object, traceback: object
    ) -> Awaitable[None]:
        if kind is GeneratorExit and (times := self._lost.pop(threading.get_ident(), 0)):
            if times > 1:
                self._lost[threading.get_ident()] = times - 1
            return _nothing()
        return self._lock.__aexit__()

    def _held(self) -> bool:
        """As far as the lock can tell: an RLock whether by the caller, a Lock whether at all."""
        return self._lock._is_owned() if isinstance(self._lock, RLock) else self._lock.locked()

    def wait(self, timeout: float | None = None) -> bool:
        """Lets go of the lock, waits until it is notified, and takes the lock again.

        For threads. False: it was not notified within the time. NotHeldError (a RuntimeError) when the lock
        is not held, DeadlockError in a task.
        """
        return self._notices.wait(self._lock, timeout)

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """Waits until the predicate is true, which is called with the lock held; returns its last value."""
        if timeout is not None and timeout != -1 and not timeout >= 0:
            raise ValueError("timeout value must be a non-negative number, or None")
        deadline = None if timeout is None or timeout == -1 else time.monotonic() + timeout
        while not (result := predicate()):
            if deadline is None:
                self.wait(timeout)
            elif (left := deadline - time.monotonic()) > 0:
                self.wait(left)
            else:
                break
        return result

    async def wait_async(self) -> bool:
        """As ``wait``, for tasks, with the time-outs of their library."""
        if not self._held():
            raise NotHeldError("cannot wait on un-acquired lock")
        ticket = self._notices.join()
        times = self._let_go()
        try:
            await ticket
        except GeneratorExit:
            self._lose(times)
            raise
        except BaseException:
            await self._take_again(times)
            raise
        try:
            await self._take_again(times)
        except BaseException:
            self._notices.notify(1)
            raise
        finally:
            self._notices._pass()
        return True

    async def wait_for_async(self, predicate: Callable[[], T]) -> T:
        """As ``wait_for``, for tasks."""
        while not (result := predicate()):
            await self.wait_async()
        return result

    def _let_go(self) -> int:
        """Lets go of the lock entirely; how often it was held."""
        if isinstance(self._lock, RLock):
            return self._lock._release_save()[0]
        self._lock.release()
        return 1

    async def _take_again(self, times: int) -> None:
        try:
            await uncancelled(self._lock.acquire_async)
        except GeneratorExit:
            self._lose(times)
            raise
        finally:
            if times > 1 and self._held():
                for _ in range(times - 1):
                    self._lock.acquire()

    def _lose(self, times: int) -> None:
        """The coroutine is closed, in this thread, and cannot wait for the lock, which another may hold.

        As many `async with` blocks around it are left next, and must not release what is not theirs.
        """
        self._lost[threading.get_ident()] = times

    def notify(self, n: int = 1) -> None:
        """Wakes the first n that wait. The lock must be held, or it raises NotHeldError."""
        if not self._held():
            raise NotHeldError("cannot notify on un-acquired lock")
        self._notices.notify(n)

    def notify_all(self) -> None:
        """Wakes all that wait. The lock must be held, or it raises NotHeldError."""
        self.notify(self._notices.waiting())

    def statistics(self) -> ConditionStatistics:
        """A record of the moment."""
        return ConditionStatistics(self._notices.waiting(), self._lock.statistics())

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._lock, RLock):
            raise TypeError(
                "cannot pickle 'fairlead.sync.Condition' object: the holder of its RLock is known in one "
                "interpreter only; make it with a Lock"
            )
        return _elsewhere, (self._lock, self._notices)

    def __repr__(self) -> str:
        return f"<fairlead.sync.Condition {self._lock!r}, {self._notices.waiting()} waiting>"


async def _nothing() -> None:
    pass


def _elsewhere(lock: Lock, notices: ConditionQueue) -> Condition:
    """The same condition in the interpreter that these have come to."""
    condition = Condition(lock)
    condition._notices = notices
    return condition
