"""The interpreter's own tests of asyncio's locks and queues over fairlead.sync's, whose methods are coroutine
functions here, as asyncio's are."""

from __future__ import annotations

import asyncio
import unittest
from types import ModuleType
from typing import Any

from fairlead import errors, sync


class Face:
    kind: Any

    def __init__(self, *given: Any, **words: Any) -> None:
        self.inner = self.kind(*given, **words)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # it was refused
            raise AttributeError(name)
        return getattr(self.inner, name)


class Taken(Face):
    async def acquire(self) -> Any:
        return await self.inner.acquire_async()

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *_: object) -> None:
        self.inner.release()


class Lock(Taken):
    kind = sync.Lock


class Semaphore(Taken):
    kind = sync.Semaphore


class BoundedSemaphore(Taken):
    kind = sync.BoundedSemaphore


class Event(Face):
    kind = sync.Event

    async def wait(self) -> Any:
        return await self.inner.wait_async()


class Condition(Taken):
    def __init__(self, lock: Any = None) -> None:
        self.lock = lock or Lock()
        self.inner = sync.Condition(self.lock.inner)

    async def wait(self) -> Any:
        return await self.inner.wait_async()

    async def wait_for(self, predicate: Any) -> Any:
        return await self.inner.wait_for_async(predicate)


class Barrier(Face):
    kind = sync.Barrier

    async def wait(self) -> Any:
        try:
            return await self.inner.wait_async()
        except errors.BrokenBarrierError as error:
            raise asyncio.BrokenBarrierError from error

    async def reset(self) -> None:
        self.inner.reset()

    async def abort(self) -> None:
        self.inner.abort()

    async def __aenter__(self) -> Any:
        return await self.wait()

    async def __aexit__(self, *_: object) -> None: ...


class Queue(Face):
    kind = sync.Queue
    __class_getitem__ = sync.Queue.__class_getitem__

    def __init__(self, maxsize: int = 0) -> None:
        super().__init__(maxsize)

    async def put(self, item: Any) -> Any:
        return await self.inner.put_async(item)

    async def get(self) -> Any:
        return await self.inner.get_async()

    async def join(self) -> Any:
        return await self.inner.join_async()


class LifoQueue(Queue):
    kind = sync.LifoQueue  # type: ignore[assignment]


class PriorityQueue(Queue):
    kind = sync.PriorityQueue  # type: ignore[assignment]


for face in (
    Lock, Semaphore, BoundedSemaphore, Event, Condition, Barrier, Queue, LifoQueue, PriorityQueue,
):  # fmt: skip
    setattr(asyncio, face.__name__, face)

import test.test_asyncio.test_locks  # noqa: E402
import test.test_asyncio.test_queues  # noqa: E402


def _cases(module: ModuleType) -> dict[str, Any]:
    return {
        name: it
        for name, it in vars(module).items()
        if isinstance(it, type) and issubclass(it, unittest.TestCase)
    }


globals().update(_cases(test.test_asyncio.test_locks) | _cases(test.test_asyncio.test_queues))
