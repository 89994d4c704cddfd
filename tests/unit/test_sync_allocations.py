"""What a block `async with` allocates while there is nothing to wait for, seen by tracemalloc."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fairlead.sync import BoundedSemaphore, Lock, Semaphore


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


async def least(measure: Callable[[Any], Awaitable[int]], one: Any) -> int:
    """Of several: the first fill caches, and other threads may allocate meanwhile."""
    return min([await measure(one) for _ in range(20)])


@pytest.mark.parametrize(
    "make",
    [Lock, lambda: Lock(fair=True), lambda: Semaphore(1), lambda: BoundedSemaphore(1)],
    ids=["Lock", "fair Lock", "Semaphore", "BoundedSemaphore"],
)
def test_async_with_of_what_is_free_allocates_nothing(make: Callable[[], Any]) -> None:
    async def main() -> None:
        one = make()
        assert await least(_block, one) <= await least(_methods, one)

    gc.disable()
    tracemalloc.start()
    try:
        asyncio.run(main())
    finally:
        tracemalloc.stop()
        gc.enable()
