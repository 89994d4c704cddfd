"""once, Flag and ResourceGuard: small things that must be exact when two come at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, NamedTuple, TypeVar, overload

from fairlead._native import Lock, RLock
from fairlead.errors import DeadlockError, ResourceBusyError

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


class FlagStatistics(NamedTuple):
    """A flag at one moment: whether it is set."""

    is_set: bool


class Flag(Generic[T]):
    """Is set by one: of all that call ``set`` at once, exactly one gets True, and its value stays."""

    __slots__ = ("__weakref__", "_values")

    def __init__(self) -> None:
        self._values: dict[None, list[Any]] = {}

    def set(self, value: T | None = None) -> bool:
        """Sets the flag with a value; True: this call did it. Never waits, and is allowed anywhere."""
        mine = [value]
        return self._values.setdefault(None, mine) is mine

    def is_set(self) -> bool:
        """Whether it is set."""
        return bool(self._values)

    @overload
    def get(self, default: None = None) -> T | None: ...
    @overload
    def get(self, default: T) -> T: ...
    def get(self, default: T | None = None) -> T | None:
        """The value with which it was set, or the default."""
        return self._values.get(None, [default])[0]  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Makes it as new."""
        self._values.pop(None, None)

    def statistics(self) -> FlagStatistics:
        """A record of the moment."""
        return FlagStatistics(self.is_set())

    __bool__ = is_set

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("cannot pickle 'fairlead.sync.Flag' object: its value belongs to one interpreter")

    def __repr__(self) -> str:
        return f"<fairlead.sync.Flag {'set' if self else 'unset'}>"


class ResourceGuardStatistics(NamedTuple):
    """A guard at one moment: whether it is held."""

    busy: bool


class ResourceGuard:
    """`with guard:` around what one thread or task may do at a time; a second one gets ResourceBusyError,
    at once.

    As anyio's, for threads too. The same one may not come twice either.

    Args:
        action: what the message says that another thread or task is already doing.
    """

    __slots__ = ("__weakref__", "_action", "_lock")

    def __init__(self, action: str = "using") -> None:
        self._action = action
        self._lock = Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(False):
            raise ResourceBusyError(f"another thread or task is already {self._action} this resource")

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def statistics(self) -> ResourceGuardStatistics:
        """A record of the moment."""
        return ResourceGuardStatistics(self._lock.locked())

    def __reduce__(self) -> tuple[Any, ...]:
        return _elsewhere, (self._action, self._lock)

    def __repr__(self) -> str:
        return f"<fairlead.sync.ResourceGuard {'busy' if self._lock.locked() else 'free'}>"


def _elsewhere(action: str, lock: Lock) -> ResourceGuard:
    """The same guard in the interpreter that these have come to."""
    guard = ResourceGuard(action)
    guard._lock = lock
    return guard
