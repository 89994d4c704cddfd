"""Calls of coroutine functions where there is no event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class Awaited:
    """A coroutine function as a plain one: each call runs on an event loop of its own."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, item: Any) -> Any:
        return asyncio.run(self.function(item))
