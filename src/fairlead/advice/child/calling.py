"""Functions around the one that is measured.

Workers of a pool import this module inside the measured time: it imports nothing that takes long.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any


class Raised(str):
    """In place of a call's result: what it raised."""

    __slots__ = ()


class Awaited:
    """A coroutine function as a plain one: each call runs on an event loop of its own."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, item: Any) -> Any:
        import asyncio

        return asyncio.run(self.function(item))


class Caught:
    """A function of which a call that raises does not end the others."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, item: Any) -> Any:
        try:
            return self.function(item)
        except Exception as error:  # noqa: BLE001 - whatever the function raises
            return Raised(said(error))


class Timed:
    """A function that returns the seconds of its call, too."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, item: Any) -> tuple[Any, float]:
        begin = time.perf_counter()
        value = self.function(item)
        return value, time.perf_counter() - begin


class Reached:
    """Says in which worker it was called, after the time in which the others take a call, too."""

    def __call__(self, seconds: float) -> tuple[int, int]:
        time.sleep(seconds)
        return os.getpid(), threading.get_native_id()


def caught(function: Callable[..., Any], *, coroutine: bool) -> Callable[..., Any]:
    """The same function, with ``Raised`` in place of an exception; of a coroutine function one."""
    if not coroutine:
        return Caught(function)

    async def awaited(item: Any) -> Any:
        try:
            return await function(item)
        except Exception as error:  # noqa: BLE001
            return Raised(said(error))

    return awaited


def timed(function: Callable[..., Any], *, coroutine: bool) -> Callable[..., Any]:
    """The same function, timed; of a coroutine function a coroutine function."""
    if not coroutine:
        return Timed(function)

    async def awaited(item: Any) -> tuple[Any, float]:
        begin = time.perf_counter()
        value = await function(item)
        return value, time.perf_counter() - begin

    return awaited


def said(error: BaseException) -> str:
    """ "KeyError: 7", in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200].rstrip(": ")
