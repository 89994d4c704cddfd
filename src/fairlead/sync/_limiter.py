"""CapacityLimiter: tokens that are lent to borrowers, one to each."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Coroutine
from typing import Any, NamedTuple
from weakref import ref

from fairlead._native import RLock, Semaphore, task_ended
from fairlead.errors import AlreadyHeldError, DeadlockError, NotHeldError, OwnerDeathWarning
from fairlead.wait import current_task, others_run

_MOST = 0x7FFFFFFF
_LOOKED_AT = 16


class _Life:
    """Goes with its thread."""


class _Thread:
    """A thread, which is never mistaken for an earlier one."""

    __slots__ = ("_life",)

    def __init__(self, life: _Life) -> None:
        self._life = ref(life)

    def ended(self) -> bool:
        return self._life() is None


class _Here(threading.local):
    """The thread that asks."""

    def __init__(self) -> None:
        self._life = _Life()
        self.me = _Thread(self._life)


_here = _Here()


class CapacityLimiterStatistics(NamedTuple):
    """A limiter at one moment.

    Attributes:
        borrowed: tokens that are lent.
        total: tokens that there are; ``math.inf`` for no limit.
        waiting: threads and tasks that wait.
        fair: whether all waiters are served in order.
    """

    borrowed: int
    total: float
    waiting: int
    fair: bool


class CapacityLimiter:
    """So many at a time: as anyio's and trio's, for threads and tasks alike.

    A token belongs to its borrower: the task that runs, or the thread, or any hashable object by the methods
    with ``on_behalf_of``. Each has at most one: a second, and a release by one that has none, are refused.
    Order, fairness, cancellation and time-outs are those of a Semaphore. ``total_tokens`` may be changed at
    any
    time: what is taken away is missing at once, and where all are lent as they come back.
    """

    __slots__ = ("__weakref__", "_lent", "_resizing", "_semaphore", "_total")

    def __init__(self, total_tokens: float, *, fair: bool = False) -> None:
        self._total = _checked(total_tokens)
        self._semaphore = Semaphore(_permits(self._total), fair=fair)
        self._resizing = RLock()
        # by borrower: in which thread (None: it waits), whether by itself, and in which thread it began to
        self._lent: dict[object, list[Any]] = {}

    @property
    def total_tokens(self) -> float:
        """How many there are: a whole number, or ``math.inf``."""
        return self._total

    @total_tokens.setter
    def total_tokens(self, value: float) -> None:
        value = _checked(value)
        with self._resizing:
            more = _permits(value) - _permits(self._total)
            self._total = value
            if more > 0:
                self._semaphore.release(more)
            elif more < 0:
                self._semaphore._withdraw(-more)

    @property
    def borrowed_tokens(self) -> int:
        """How many are lent, those too that a waiter was granted and has not come for."""
        return _permits(self._total) - self._semaphore._balance()

    @property
    def available_tokens(self) -> float:
        """How many are not; below nothing while more are lent than there are now."""
        return self._total - self.borrowed_tokens

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Borrows a token; says whether it did. As ``Lock.acquire``; AlreadyHeldError if the caller has one.

        DeadlockError when it would wait for ever for tokens that this thread and its own tasks have.
        """
        borrower = _caller()
        mine = self._begin(borrower, True)
        taken = False
        try:
            taken = self._semaphore.acquire(False)
            if not taken and blocking and timeout is None and self._all_are_ours():
                raise DeadlockError(
                    "this thread and its tasks have every token, and cannot give one back while it waits; "
                    "use `async with`, or a timeout"
                )
            if not taken:
                taken = self._wait(blocking, timeout)
        finally:
            self._end(borrower, mine, taken)
        return taken

    def acquire_on_behalf_of(
        self, borrower: object, blocking: bool = True, timeout: float | None = None
    ) -> bool:
        """Borrows a token for an object, which any thread or task may return."""
        mine = self._begin(borrower, False)
        taken = False
        try:
            taken = self._semaphore.acquire(False) or self._wait(blocking, timeout)
        finally:
            self._end(borrower, mine, taken)
        return taken

    def acquire_async(self) -> Coroutine[Any, Any, bool]:
        """As ``acquire``, for tasks: for the one that calls."""
        return self._acquire_async(_caller(), True)

    def acquire_on_behalf_of_async(self, borrower: object) -> Coroutine[Any, Any, bool]:
        """As ``acquire_on_behalf_of``, for tasks."""
        return self._acquire_async(borrower, False)

    async def _acquire_async(self, borrower: object, own: bool) -> bool:
        mine = self._begin(borrower, own)
        taken = False
        try:
            taken = self._semaphore.acquire(False)
            if not taken:
                self._look_at_borrowers()
                taken = await self._semaphore.acquire_async()
        finally:
            self._end(borrower, mine, taken)
        return taken

    def release(self) -> None:
        """Gives the caller's token back. NotHeldError (a RuntimeError) if it has none."""
        self.release_on_behalf_of(_caller())

    def release_on_behalf_of(self, borrower: object) -> None:
        """Gives the token of this borrower back. NotHeldError (a RuntimeError) if it has none."""
        mine = self._lent.get(borrower)
        if mine is None or mine[0] is None or self._lent.pop(borrower, None) is not mine:
            raise NotHeldError("this borrower has no token of this limiter")
        self._semaphore.release()

    def _begin(self, borrower: object, own: bool) -> list[Any]:
        mine = [None, own, _here.me]
        if self._lent.setdefault(borrower, mine) is not mine:  # one step, if two come at once
            raise AlreadyHeldError("this borrower has a token of this limiter, or waits for one")
        return mine

    def _wait(self, blocking: bool, timeout: float | None) -> bool:
        if blocking and timeout != 0:
            self._look_at_borrowers()
        return self._semaphore.acquire(blocking, timeout)

    def _look_at_borrowers(self) -> None:
        """Called before a wait: of the oldest loans, whether a borrower is left to give them back."""
        for borrower, loan in list(self._lent.items())[:_LOOKED_AT]:
            by, own, _ = loan
            if not own or by is None or not (by.ended() or (borrower is not by and task_ended(borrower))):
                continue
            if self._lent.get(borrower) is loan:  # or it was given back, before the end that was seen
                warnings.warn(
                    f"{self!r} has lent to a thread or task that has ended, and is waited for; its token "
                    "comes back only if another one releases it on behalf of that borrower",
                    OwnerDeathWarning,
                    stacklevel=3,
                )
                return

    def _end(self, borrower: object, mine: list[Any], taken: bool) -> None:
        if taken:
            mine[0] = _here.me
        else:
            self._lent.pop(borrower, None)

    def _all_are_ours(self) -> bool:
        loans = list(self._lent.values())
        by = [by for by, _, _ in loans if by is not None]
        granted = self.borrowed_tokens - len(by)  # to waiters that have not resumed: which, is not known
        if granted > 0 and all(asked_by is _here.me for _, _, asked_by in loans):
            by += [_here.me] * granted
        return len(by) >= max(self._total, 1) and all(one is _here.me for one in by) and not others_run()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    async def __aenter__(self) -> None:
        await self.acquire_async()

    async def __aexit__(self, *_: object) -> None:
        self.release()

    def statistics(self) -> CapacityLimiterStatistics:
        """A record of the moment."""
        _, waiting, fair = self._semaphore.statistics()
        return CapacityLimiterStatistics(self.borrowed_tokens, self._total, waiting, fair)

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("cannot pickle 'fairlead.sync.CapacityLimiter' object")

    def __repr__(self) -> str:
        borrowed, total, waiting, _ = self.statistics()
        return f"<fairlead.sync.CapacityLimiter {borrowed} of {total} borrowed, {waiting} waiting>"


def _caller() -> object:
    return current_task() or _here.me


def _checked(total: float) -> float:
    if total != math.inf and not isinstance(total, int):
        raise TypeError("total_tokens must be a whole number, or math.inf")
    if total < 0 or (total > _MOST and total != math.inf):
        raise ValueError(f"total_tokens must be 0 or more, and at most {_MOST} or math.inf")
    return total


def _permits(total: float) -> int:
    return _MOST if total == math.inf else int(total)
