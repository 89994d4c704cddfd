"""How far a worker is in its chunk: for its parent to see, whatever becomes of the worker."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Iterator
from multiprocessing import reduction
from typing import Any

SIZE = 8
PART_NS = 50_000_000
"""After so long the outcomes that there are go to the parent."""


class SharedWord:
    """A number in memory that a worker shares with its parent. It goes to the worker as an argument of its
    process."""

    def __init__(self, fd: int | None = None) -> None:
        self._fd = os.memfd_create("fairlead-progress", os.MFD_CLOEXEC) if fd is None else fd
        try:
            if fd is None:
                os.ftruncate(self._fd, SIZE)
            self._memory = mmap.mmap(self._fd, SIZE)
        except BaseException:
            self.sent()
            raise
        self.numbers = memoryview(self._memory).cast("Q")

    def sent(self) -> None:
        """It has gone to the worker: its descriptor is not needed any more."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def close(self) -> None:
        """Before Python 3.13 the memory keeps a descriptor."""
        self.sent()
        self.numbers.release()
        self._memory.close()

    def __reduce__(self) -> Any:
        return _arrived, (reduction.DupFd(self._fd),)


def _arrived(descriptor: Any) -> SharedWord:
    word = SharedWord(descriptor.detach())
    word.sent()
    return word


class ChunkProgress:
    """Of one chunk in a worker process: says which call begins, and sends the outcomes that there are after a
    while, and before calls that have ended a worker already.

    Iterating gives the items, each when its call is about to begin.

    Args:
        items, suspects: how many of them, the last, have ended a worker.
        send: takes a list of outcomes, which is emptied then.
    """

    def __init__(
        self, word: SharedWord, items: Any, suspects: int, send: Callable[[list[Any]], None]
    ) -> None:
        self.outcomes: list[Any] = []
        """For call_chunk to put them into."""
        self._word = word.numbers
        self._items = items
        self._send = send
        self._safe = len(items) - suspects
        self._begin_ns = self._at = time.monotonic_ns()
        self._next = 2
        """The call before which it is looked what to send."""

    def __iter__(self) -> Iterator[Any]:
        word = self._word
        number = 0
        for number, item in enumerate(self._items, 1):
            word[0] = number
            if number == self._next:
                self._look(number)
            yield item
        word[0] = number + 1

    def _look(self, number: int) -> None:
        now = time.monotonic_ns()
        if self.outcomes and (number > self._safe or now - self._at >= PART_NS):
            self._send(self.outcomes)
            self.outcomes.clear()
            self._at = now
        each_ns = max((now - self._begin_ns) // number, 1)
        step = max(1, min(number, PART_NS // (4 * each_ns)))
        self._next = number + 1 if number > self._safe else min(number + step, self._safe + 1)
