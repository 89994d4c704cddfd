"""What ``map`` returns: an executor's iterator that is also multiprocessing's list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar, overload

from fairlead.pools.stream import Stream

T = TypeVar("T")


class Results(Generic[T]):
    """The results of ``map``, in the order of the items.

    Taken one by one, each is forgotten here, so that a long map needs no room for all. Whoever asks for more
    than that (``len``, an index, ``==``) gets what had not been taken yet as a list, and waits for all of it;
    the first call that raised raises then.
    """

    def __init__(self, stream: Stream[T]) -> None:
        self._stream = stream
        self._all: list[T] | None = None
        self._taken = 0

    def __iter__(self) -> Iterator[T]:
        return self if self._all is None else iter(self._all)

    def __next__(self) -> T:
        if self._all is None:
            return next(self._stream)
        if self._taken == len(self._all):  # list(results) asks for the length when it has begun
            raise StopIteration
        self._taken += 1
        return self._all[self._taken - 1]

    def get(self) -> list[T]:
        """All results, as a list."""
        if self._all is None:
            self._all = list(self._stream)
        return self._all

    def close(self) -> None:
        """Cancels what is under way."""
        self._stream.close()

    def __len__(self) -> int:
        return len(self.get())

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        return self.get()[index]

    def __eq__(self, other: Any) -> bool:
        return self.get() == (other.get() if isinstance(other, Results) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Results {self._all!r}>" if self._all is not None else "<Results, not all taken>"
