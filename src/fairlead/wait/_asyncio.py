"""asyncio, and whatever has its loop's interface, as uvloop.

The loop polls the port's descriptor, and its table of readers is the only thing that holds the port. A loop
has no hook for its end, but closing it, or collecting it, lets the table go; so the port dies with it, and
closes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, ref

from fairlead._native import Port
from fairlead.wait._ports import enlisted

_ports: WeakKeyDictionary[asyncio.AbstractEventLoop, ref[Port]] = WeakKeyDictionary()


def _running(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether a task of this loop runs in this thread. A signal handler may run while the loop sleeps."""
    return asyncio._get_running_loop() is loop and asyncio.current_task(loop) is not None


def task() -> asyncio.Task[Any] | None:
    """The task that runs in this thread, or None."""
    loop = asyncio._get_running_loop()
    return asyncio.current_task(loop) if loop is not None else None


def port() -> Port | None:
    """The port of the loop that runs in this thread, or None."""
    loop = asyncio._get_running_loop()
    if loop is None:
        return None
    known = _ports.get(loop)
    found = known() if known is not None else None
    if found is None:
        found = enlisted(Port(loop.create_future, partial(_running, loop)))
        loop.add_reader(found.fileno(), found)
        _ports[loop] = ref(found)
    return found


async def uncancelled(call: Callable[[], Awaitable[Any]]) -> None:
    """See fairlead.wait. Every cancellation ends one future, so that the next is waited for."""
    cancelled = None
    while True:
        try:
            await call()
            break
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        try:
            raise cancelled
        finally:
            del cancelled  # no cycle through this frame
