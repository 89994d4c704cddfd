"""Queues and what waits at them, for tests of one loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from waiting import until_async


async def start(awaitable: Awaitable[Any], waiting: Callable[[], int]) -> asyncio.Task[Any]:
    """A task that awaits it, and waits."""

    async def body() -> Any:
        return await awaitable

    before = waiting()
    task = asyncio.ensure_future(body())
    await until_async(lambda: waiting() == before + 1)
    return task


def getting(line: Any) -> Callable[[], int]:
    return lambda: line.statistics().getting


def putting(line: Any) -> Callable[[], int]:
    return lambda: line.statistics().putting


def drained(line: Any) -> list[Any]:
    return [line.get_nowait() for _ in range(line.qsize())]
