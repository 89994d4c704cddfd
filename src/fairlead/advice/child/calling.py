"""Functions around the one that is measured."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

Timing = tuple[float, float | None]
"""Seconds of a call, and of its thread's processor time: None of a coroutine: its thread runs others."""


class Awaited:
    """A coroutine function as a plain one: each call runs on an event loop of its own."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, item: Any) -> Any:
        return asyncio.run(self.function(item))


class Timed:
    """A function that returns what its call took, too."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, item: Any) -> tuple[Any, Timing]:
        begin, used = time.perf_counter(), time.thread_time()
        value = self.function(item)
        return value, (time.perf_counter() - begin, time.thread_time() - used)


def timed(function: Callable[..., Any], *, coroutine: bool) -> Callable[..., Any]:
    """The same function, timed; of a coroutine function a coroutine function."""
    if not coroutine:
        return Timed(function)

    async def awaited(item: Any) -> tuple[Any, Timing]:
        begin = time.perf_counter()
        value = await function(item)
        return value, (time.perf_counter() - begin, None)

    return awaited
