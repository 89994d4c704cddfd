"""Functions around the one that is measured."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any


class Awaited:
    """A coroutine function as a plain one: each call runs on an event loop of its own."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, item: Any) -> Any:
        return asyncio.run(self.function(item))


class Timed:
    """A function that returns the seconds of its call in place of the result."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, item: Any) -> float:
        begin = time.perf_counter()
        self.function(item)
        return time.perf_counter() - begin


def timed(function: Callable[..., Any], *, coroutine: bool) -> Callable[..., Any]:
    """The same function, timed; of a coroutine function a coroutine function."""
    if not coroutine:
        return Timed(function)

    async def awaited(item: Any) -> float:
        begin = time.perf_counter()
        await function(item)
        return time.perf_counter() - begin

    return awaited
