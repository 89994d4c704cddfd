"""What a pool has accepted and its engine has not got yet: calls of event loops, and the rest of mappings."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead.errors import PoolClosedError
from fairlead.pools.engine import shutdown
from fairlead.pools.engine.aside import Aside
from fairlead.pools.engine.lock import EngineLock

if TYPE_CHECKING:
    from fairlead.pools.executor.stream import Stream


class Intake:
    """Of a pool and its views. What is in it counts as submitted: a pool that ends takes it first."""

    def __init__(self) -> None:
        self.open = True
        self._streams: weakref.WeakSet[Stream[Any]] = weakref.WeakSet()
        self._waiting: deque[Callable[[], None]] = deque()
        self._lock = EngineLock()
        self._turn = EngineLock()
        """Held while a call is submitted, so that they are in the order of their acceptance."""
        self._courier = Aside("fairlead-courier")
        shutdown.accepts(self)

    def forget_after_fork(self) -> None:
        self._lock, self._turn = EngineLock(), EngineLock()
        self._waiting.clear()

    def add(self, stream: Stream[Any]) -> None:
        with self._lock:
            self._streams.add(stream)

    def streams(self) -> list[Stream[Any]]:
        with self._lock:
            return list(self._streams)

    def accept(self, submit: Callable[[], None]) -> None:
        """Has another thread call it, soon; PoolClosedError once the pool ends."""
        with self._lock:
            if not self.open:
                raise PoolClosedError(shutdown.CLOSED)
            self._waiting.append(submit)
        self._courier.call(self._submit_next)

    def _submit_next(self) -> None:
        with self._turn:
            if self._waiting:
                self._waiting.popleft()()

    def close(self) -> None:
        """Accepts no more."""
        with self._lock:
            self.open = False

    def within_submission(self) -> bool:
        """Whether the calling thread is submitting a call at this moment, as in a callback of it."""
        owned: bool = self._turn._is_owned()
        return owned

    def finish(self) -> None:
        """Accepts no more, and submits what there is."""
        self.close()
        with self._turn:
            while self._waiting:
                self._waiting.popleft()()
        for stream in self.streams():
            stream.submit_rest()
