"""How far a worker is in its chunk: for its parent to see, whatever becomes of the worker."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable
from multiprocessing import reduction
from typing import Any

from fairlead.pools.serialization.chunks import NoProgress

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


class ChunkProgress(NoProgress):
    """Of one chunk in a worker process: sends what there is after a while, and before calls that have ended a
    worker already."""

    __slots__ = ("_at", "_begin_ns", "_safe", "_send")

    def __init__(
        self, word: SharedWord, calls: int, suspects: int, send: Callable[[list[Any]], None]
    ) -> None:
        super().__init__(word.numbers)
        self._send = send
        self._safe = calls - suspects
        self._begin_ns = self._at = time.monotonic_ns()
        self.next = 2

    def look(self, number: int, outcomes: list[Any]) -> None:
        now = time.monotonic_ns()
        if outcomes and (number > self._safe or now - self._at >= PART_NS):
            self._send(outcomes)
            outcomes.clear()
            self._at = now
        each_ns = max((now - self._begin_ns) // number, 1)
        step = max(1, min(number, PART_NS // (4 * each_ns)))
        self.next = number + 1 if number > self._safe else min(number + step, self._safe + 1)
