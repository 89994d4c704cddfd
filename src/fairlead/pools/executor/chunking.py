"""The chunks of a stream: what each is, how large they are, and how many items are read ahead."""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from fairlead.pools.engine.future import Future
from fairlead.pools.serialization.chunks import ChunkCalls
from fairlead.pools.serialization.failure import Failure

if TYPE_CHECKING:
    from fairlead.pools.executor.base import Pool

WORTH = 10
"""A chunk should last so many times what a task costs."""
FOR_EACH_WORKER = 4
"""So many chunks are read ahead."""
MOST_READ = 1000
"""Items in a chunk of what is read as it is needed."""
CHUNK_BYTES = 1 << 20
"""A chunk that is larger gains nothing: to send it takes longer than what a task costs."""
AHEAD_BYTES = 16 << 20
"""Of the items that are read ahead, or of their results; but two items for each worker in any case."""


class StreamChunk:
    """A task: its calls, its future, and, once that has ended and was looked at, what has not been taken of
    its outcomes."""

    __slots__ = ("calls", "future", "length", "outcomes")

    def __init__(self, items: list[Any]) -> None:
        self.future: Future[Any] = Future()
        self.calls = ChunkCalls(items)
        self.length = len(items)
        self.outcomes: deque[Any] | None = None

    def load(self) -> deque[Any]:
        """A task that did not come to its end is the outcome of all calls that were left of it."""
        if self.outcomes is not None:
            return self.outcomes
        error = CancelledError() if self.future.cancelled() else self.future.exception()
        found = [Failure(error)] * len(self.calls.left[1]) if error else self.future.result()[0]
        self.outcomes = deque(self.calls.merged(found))
        self.calls.ended.clear()
        self.calls.forget()
        found.clear()  # the future holds on to no result that the consumer lets go of
        return self.outcomes


class ChunkSizes:
    """How many items go into a chunk, and how many are read ahead.

    An item's size is what it was when it was sent, or what it says itself; nothing is searched for what it
    refers to.

    Args:
        fixed: items in a chunk, if they are not to be chosen.
        window: items that are read ahead, if they are not to be chosen.
        total: items that there are, if all are submitted at once.
    """

    def __init__(
        self,
        pool: Pool,
        function: Callable[..., Any],
        *,
        fixed: int | None,
        window: int | None,
        total: int | None,
    ) -> None:
        self._function = function
        self.fixed = fixed
        self.now = fixed or 1
        """Items in the next chunk."""
        self._pool = pool
        self._window = window
        self._total = total
        self._known: dict[str, int] = {}
        """Bytes of an item and of a result of late, by how they were found out."""
        self._bytes = 0
        """The most of these."""
        self._pace_s = None if fixed else pool._paces.of(function)
        """What a call took in an earlier mapping, until the size of an item is known, too."""

    def room(self, ahead: int) -> int:
        """Items for the next chunk, with so many ahead of what was taken; 0: none yet."""
        if self._window is None and not ahead:
            return self.now
        return min(self.now, max(self._most_ahead() - ahead, 0))

    def _most_ahead(self) -> int:
        if self._window is not None:
            return self._window
        workers = self._pool.workers
        most = FOR_EACH_WORKER * workers * self.now
        if self._bytes:
            most = min(most, max(AHEAD_BYTES // self._bytes, 2 * workers * (self.fixed or 1)))
        return most

    def sent(self, item: Any, *, star: bool) -> None:
        """The last item of a chunk that is about to be sent."""
        with contextlib.suppress(Exception):  # it is the item's own code that says it
            self._note("item", sum(map(sys.getsizeof, item)) if star else sys.getsizeof(item))
        pace_s, self._pace_s = self._pace_s, None
        if pace_s is not None:
            self.now = self._worth(pace_s)

    def landed(self, chunk: StreamChunk) -> None:
        """A chunk that has ended."""
        calls, length = chunk.calls, chunk.length
        if self._pool._engine.sends:
            self._note("out", calls.bytes_out // length)
            self._note("in", calls.bytes_in // length)
        if chunk.future.cancelled() or chunk.future.exception() is not None:
            return
        outcomes, spent_ns = chunk.future.result()
        with contextlib.suppress(Exception):  # they have been taken already
            self._note("result", sys.getsizeof(outcomes[-1]))
        if self.fixed is None:
            self._choose(length, spent_ns)

    def _note(self, what: str, size: int) -> None:
        self._known[what] = max(size, self._known.get(what, 0) // 2)
        self._bytes = max(self._known.values())

    def _choose(self, length: int, spent_ns: int) -> None:
        """From what one has taken; at most four times as many at a time."""
        each_s = max(spent_ns / length, 50) / 1e9
        self._pool._paces.note(self._function, each_s)
        self.now = min(self._worth(each_s), 4 * self.now)

    def _worth(self, each_s: float) -> int:
        """So many calls should be in a chunk."""
        wanted = int(WORTH * self._pool._engine.call_cost_s / each_s) + 1
        if self._total is None:
            wanted = min(wanted, MOST_READ)
        else:
            wanted = min(wanted, -(-self._total // self._pool.workers))
        if self._bytes:
            wanted = min(wanted, CHUNK_BYTES // self._bytes)
        return max(1, wanted)


class Paces:
    """What calls of functions took of late: seconds each, for the first chunks of later mappings."""

    def __init__(self) -> None:
        self._each_s: WeakKeyDictionary[Callable[..., Any], float] = WeakKeyDictionary()

    def of(self, function: Callable[..., Any]) -> float | None:
        with contextlib.suppress(TypeError):  # it cannot be a key
            return self._each_s.get(function)
        return None

    def note(self, function: Callable[..., Any], each_s: float) -> None:
        with contextlib.suppress(TypeError):
            self._each_s[function] = each_s
