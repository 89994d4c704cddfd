"""CapacityLimiter: tokens that are lent to borrowers, one to each."""

from __future__ import annotations

import math
import threading
from collections.abc import Coroutine
from typing import Any, NamedTuple

from fairlead._native import RLock, Semaphore
from fairlead.errors import AlreadyHeld, NotHeld, WouldDeadlock
from fairlead.wait import current_task, others_run

_MOST = 0x7FFFFFFF


class _Here(threading.local):
    """An object for each thread, which is never mistaken for that of an earlier one."""

    def __init__(self) -> None:
        self.me = object()


_here = _Here()


class CapacityLimiterStatistics(NamedTuple):
    """A limiter at one moment.

    Attributes:
        borrowed: tokens that are lent.
        total: tokens that there are; ``math.inf`` for no limit.
        waiting: threads and tasks that wait.
        fair: whether everyone is served in order.
    """

    borrowed: int
    total: float
    waiting: int
    fair: bool


class CapacityLimiter:
    """So many at a time: as anyio's and trio's, for threads and tasks alike.

    A token belongs to its borrower: the task that runs, or the thread, or any hashable object by the methods
    with ``on_behalf_of``. Each has at most one: a second, and a release by who has none, are refused. Order,
    fairness, cancellation and time-outs are those of a Semaphore. ``total_tokens`` may be changed at any
    time: what is taken away is missing at once, and where all are lent as they come back.
    """

    __slots__ = ("__weakref__", "_lent", "_resizing", "_semaphore", "_total")

    def __init__(self, total_tokens: float, *, fair: bool = False) -> None:
        self._total = _checked(total_tokens)
        self._semaphore = Semaphore(_permits(self._total), fair=fair)
        self._resizing = RLock()
        self._lent: dict[object, list[object]] = {}  # by borrower: in which thread; None: it waits

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
        """How many are lent."""
        return sum(by is not None for [by] in list(self._lent.values()))

    @property
    def available_tokens(self) -> float:
        """How many are not; below nothing while more are lent than there are now."""
        return self._total - self.borrowed_tokens

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Borrows a token; says whether it did. As ``Lock.acquire``; AlreadyHeld if the caller has one.

        WouldDeadlock when it would wait for ever for tokens that this thread and its own tasks have.
        """
        borrower = _caller()
        mine = self._begin(borrower)
        taken = False
        try:
            taken = self._semaphore.acquire(False)
            if not taken and blocking and timeout is None and self._all_are_ours():
                raise WouldDeadlock(
                    "this thread and its tasks have every token, and cannot give one back while it waits; "
                    "use `async with`, or a timeout"
                )
            if not taken:
                taken = self._semaphore.acquire(blocking, timeout)
        finally:
            self._end(borrower, mine, taken)
        return taken

    def acquire_on_behalf_of(
        self, borrower: object, blocking: bool = True, timeout: float | None = None
    ) -> bool:
        """Borrows a token for an object, which anyone may give back."""
        mine = self._begin(borrower)
        taken = False
        try:
            taken = self._semaphore.acquire(blocking, timeout)
        finally:
            self._end(borrower, mine, taken)
        return taken

    def acquire_async(self) -> Coroutine[Any, Any, bool]:
        """As ``acquire``, for tasks: for the one that calls."""
        return self.acquire_on_behalf_of_async(_caller())

    async def acquire_on_behalf_of_async(self, borrower: object) -> bool:
        """As ``acquire_on_behalf_of``, for tasks."""
        mine = self._begin(borrower)
        taken = False
        try:
            taken = await self._semaphore.acquire_async()
        finally:
            self._end(borrower, mine, taken)
        return taken

    def release(self) -> None:
        """Gives the caller's token back. NotHeld (a RuntimeError) if it has none."""
        self.release_on_behalf_of(_caller())

    def release_on_behalf_of(self, borrower: object) -> None:
        """Gives the token of this borrower back. NotHeld (a RuntimeError) if it has none."""
        mine = self._lent.get(borrower, [None])
        if mine == [None] or self._lent.pop(borrower, None) is not mine:
            raise NotHeld("this borrower has no token of this limiter")
        self._semaphore.release()

    def _begin(self, borrower: object) -> list[object]:
        mine: list[object] = [None]
        if self._lent.setdefault(borrower, mine) is not mine:  # one step, if two come at once
            raise AlreadyHeld("this borrower has a token of this limiter, or waits for one")
        return mine

    def _end(self, borrower: object, mine: list[object], taken: bool) -> None:
        if taken:
            mine[0] = _here.me
        else:
            self._lent.pop(borrower, None)

    def _all_are_ours(self) -> bool:
        by = [by for [by] in list(self._lent.values()) if by is not None]
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
