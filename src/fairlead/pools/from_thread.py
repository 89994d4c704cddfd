"""From a call of ``await pool.run(...)`` back to the loop of the task that awaits it, as anyio has it.

For pools that make their calls in threads of this interpreter: ThreadPool, and AsyncPool's plain functions
excepted, whose thread has a loop of its own.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fairlead.errors import UsageError

T = TypeVar("T")

_caller: contextvars.ContextVar[Any] = contextvars.ContextVar("fairlead_caller")


class Caller:
    """While it is entered, tasks that are submitted know the running loop as their caller's."""

    def __enter__(self) -> None:
        self._token = _caller.set(_running())

    def __exit__(self, *_: object) -> None:
        _caller.reset(self._token)


def _running() -> Any:
    """Asyncio's loop, or trio's token."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and (loop := asyncio._get_running_loop()) is not None:
        return loop
    if "trio" in sys.modules:
        with contextlib.suppress(RuntimeError):  # some other library's
            return sys.modules["trio"].lowlevel.current_trio_token()
    return None


def run(fn: Callable[..., Awaitable[T]], /, *args: Any) -> T:
    """Calls a coroutine function in the caller's loop, and waits for its result."""
    loop = _loop()
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and isinstance(loop, asyncio.AbstractEventLoop):

        async def called() -> T:
            return await fn(*args)

        coroutine = called()
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError:  # the loop is closed
            coroutine.close()
            raise
        result: T = future.result()
    else:
        result = sys.modules["trio"].from_thread.run(fn, *args, trio_token=loop)
    return result


def run_sync(fn: Callable[..., T], /, *args: Any) -> T:
    """Calls a function in the thread of the caller's loop, and waits for its result."""

    async def called() -> T:
        return fn(*args)

    return run(called)


def _loop() -> Any:
    loop = _caller.get(None)
    if loop is None:
        raise UsageError("there is no event loop to return to: this is not a call of `await pool.run(...)`")
    return loop
