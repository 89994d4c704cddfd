"""What a block `async with` allocates while there is nothing to wait for, seen by tracemalloc."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fairlead.sync import BoundedSemaphore, Condition, Lock, RLock, RWLock, Semaphore

trio = pytest.importorskip("trio")

_KINDS: dict[str, Callable[[], Any]] = {
    "Lock": Lock,
    "fair Lock": lambda: Lock(fair=True),
    "Semaphore": lambda: Semaphore(1),
    "BoundedSemaphore": lambda: BoundedSemaphore(1),
    "RLock": RLock,
    "RWLock.reading": lambda: RWLock().reading,
    "RWLock.upgradable": lambda: RWLock().upgradable,
    "RWLock.writing": lambda: RWLock().writing,
    "Condition": Condition,
    "Condition over a Lock": lambda: Condition(Lock()),
}


async def _methods(one: Any) -> int:
    """What the interpreter itself makes, up to 3.13, for the two methods that it calls."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()
    _ = one.__aenter__, one.__aexit__
    return tracemalloc.get_traced_memory()[1] - before[0]


async def _block(one: Any) -> int:
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()
    async with one:
        pass
    return tracemalloc.get_traced_memory()[1] - before[0]


async def _again(one: Any) -> int:
    """A block within another of the same task."""
    async with one:
        return await _block(one)


async def least(measure: Callable[[Any], Awaitable[int]], one: Any) -> int:
    """Of several: the first fill caches, and other threads may allocate meanwhile."""
    return min([await measure(one) for _ in range(20)])


@pytest.mark.parametrize("run", [asyncio.run, lambda main: trio.run(lambda: main)], ids=["asyncio", "trio"])
@pytest.mark.parametrize("kind", _KINDS)
def test_async_with_of_what_is_free_allocates_nothing(kind: str, run: Callable[[Any], None]) -> None:
    async def main() -> None:
        one = _KINDS[kind]()
        assert await least(_block, one) <= await least(_methods, one)
        if isinstance(one, RLock):
            assert await least(_again, one) <= await least(_methods, one)

    gc.disable()
    tracemalloc.start()
    try:
        run(main())
    finally:
        tracemalloc.stop()
        gc.enable()
