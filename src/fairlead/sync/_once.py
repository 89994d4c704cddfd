"""once: a function that is called once, however many callers there are."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, NamedTuple, TypeVar

from fairlead._native import RLock
from fairlead.errors import DeadlockError

T = TypeVar("T")


class OnceStatistics(NamedTuple):
    """A function of ``once`` at one moment: whether it has run, whether it runs, how many wait for that."""

    done: bool
    running: bool
    waiting: int


class once(Generic[T]):  # noqa: N801 - a decorator
    """Calls a function once, in its first caller; all callers get what it returned.

    The function takes no arguments. Threads call it, tasks ``await f.call_async()``; a coroutine function is
    awaited either way. While it runs the others wait. When it raises, or is cancelled, its caller gets that,
    and the next one calls it again. A function that calls itself gets DeadlockError, as does a thread that
    would wait for a task of its own loop.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        from inspect import iscoroutinefunction  # here: it is a quarter of the import of fairlead.sync

        self._awaits = iscoroutinefunction(function)
        self._lock = RLock()
        self._done = False
        self._value: Any = None
        update_wrapper(self, function)

    def __call__(self) -> T:
        if self._awaits:
            return self.call_async()  # type: ignore[return-value] # a coroutine, as of the function itself
        if not self._done:
            with self._lock:
                self._may_begin()
                if not self._done:
                    self._value = self._function()
                    self._done = True
        return self._value  # type: ignore[no-any-return]

    async def call_async(self) -> Any:
        """The same for tasks. The function itself runs in the loop's thread."""
        if not self._done:
            async with self._lock:
                self._may_begin()
                if not self._done:
                    value: Any = self._function()
                    self._value = await value if self._awaits else value
                    self._done = True
        return self._value

    def _may_begin(self) -> None:
        if self._lock._recursion_count() > 1:
            raise DeadlockError("a function of once calls itself, and cannot wait for its own end")

    def statistics(self) -> OnceStatistics:
        """A record of the moment."""
        locked, _, waiting, _ = self._lock.statistics()
        return OnceStatistics(self._done, locked and not self._done, waiting)
