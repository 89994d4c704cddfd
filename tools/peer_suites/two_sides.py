"""fairlead.sync's queues with a side for threads and one for tasks, as janus and culsans have them."""

from __future__ import annotations

import queue
import sys
from contextlib import suppress
from typing import Any

from fairlead import errors, sync


def _forwarded(name: str) -> property:
    return property(lambda self: getattr(self.inner, name))


class Both:
    """What a queue and each of its sides have."""

    __slots__ = ("inner", "wrapped")
    inner: Any

    def __init__(self, wrapped: Any, inner: Any) -> None:
        self.wrapped, self.inner = wrapped, inner

    maxsize = property(lambda self: self.inner.maxsize, lambda self, value: self.inner.resize(value))
    unfinished_tasks = _forwarded("unfinished_tasks")
    is_shutdown = closed = _forwarded("is_shutdown")
    putting = property(lambda self: self.inner.statistics().putting)
    getting = property(lambda self: self.inner.statistics().getting)

    def peekable(self) -> bool:
        return True

    def clear(self) -> None:
        with suppress(queue.Empty):
            while True:
                self.inner.get_nowait()
                self.inner.task_done()


for _name in (
    "put_nowait", "get_nowait", "peek_nowait", "task_done", "qsize", "empty", "full", "shutdown",
):  # fmt: skip
    setattr(Both, _name, _forwarded(_name))


class ForThreads(Both):
    __slots__ = ()
    put, get, peek, join = (_forwarded(name) for name in ("put", "get", "peek", "join"))


class ForTasks(Both):
    __slots__ = ()

    async def put(self, item: Any) -> None:
        await self.inner.put_async(item)

    async def get(self) -> Any:
        return await self.inner.get_async()

    async def peek(self) -> Any:
        return await self.inner.peek_async()

    async def join(self) -> None:
        await self.inner.join_async()


class Queue(Both):
    __slots__ = ("async_side", "sync_side")
    kind: Any = sync.Queue
    sync_q = property(lambda self: self.sync_side)
    async_q = property(lambda self: self.async_side)

    def __init__(self, maxsize: int = 0) -> None:
        super().__init__(None, self.kind(maxsize))
        self.sync_side, self.async_side = ForThreads(self, self.inner), ForTasks(self, self.inner)

    def _qsize(self) -> int:
        return self.inner.qsize()  # type: ignore[no-any-return]

    def close(self) -> None:
        self.inner.shutdown(immediate=True)

    async def wait_closed(self) -> None:
        if not self.inner.is_shutdown:
            raise RuntimeError("Waiting for non-closed queue")

    async def aclose(self) -> None:
        self.close()
        await self.wait_closed()


class LifoQueue(Queue):
    __slots__ = ()
    kind = sync.LifoQueue


class PriorityQueue(Queue):
    __slots__ = ()
    kind = sync.PriorityQueue


def put_into(library: Any) -> None:
    """Its queues are these from now on, and its errors those that these raise."""
    for kind in (Queue, LifoQueue, PriorityQueue):
        setattr(library, kind.__name__, kind)
    if sys.version_info < (3, 13):  # later there are the standard library's, which ours are
        library.SyncQueueShutDown = library.AsyncQueueShutDown = errors.QueueShutDown
