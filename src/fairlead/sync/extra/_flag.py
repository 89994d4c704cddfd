"""Flag: exact when several set it at once."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar, overload

from fairlead.sync.extra._common import refuse_pickling

T = TypeVar("T")


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

    __reduce__ = refuse_pickling

    def __repr__(self) -> str:
        return f"<fairlead.sync.extra.Flag {'set' if self else 'unset'}>"
