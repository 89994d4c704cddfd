"""From a call of ``await pool.run(...)`` back to the loop of the task that awaits it, as anyio has it.

For pools that make their calls in threads of this interpreter.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import inspect
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fairlead.errors import DeadlockError, LoopClosedError, UsageError, WaitTimeoutError
from fairlead.pools.engine.contract import CALLER
from fairlead.pools.engine.worker_slots import BlockedWorker

T = TypeVar("T")

CHECK_S = 0.25
"""How often a thread that waits checks whether the loop is still there."""
STOPPED_S = 5.0
"""How long a loop may stand still that has been stopped and not closed: it may be started again."""


class Caller:
    """While it is entered, tasks that are submitted know the running loop as their caller's."""

    def __enter__(self) -> None:
        self._token = CALLER.set((_running(), CALLER.get((None, ()))[1]))

    def __exit__(self, *_: object) -> None:
        CALLER.reset(self._token)


def _running() -> Any:
    """Trio's token, or asyncio's loop, which in trio's guest mode runs underneath."""
    trio, asyncio = sys.modules.get("trio.lowlevel"), sys.modules.get("asyncio.events")
    # another thread may be importing them
    in_trio = getattr(trio, "in_trio_task", None)
    if trio is not None and in_trio is not None and in_trio():
        return trio.current_trio_token()
    running = getattr(asyncio, "_get_running_loop", None)
    return None if running is None else running()


def run(fn: Callable[..., Awaitable[T]], /, *args: Any) -> T:
    """Calls a coroutine function in the caller's loop, and waits for its result.

    Raises:
        LoopClosedError: the loop is closed, or was closed before the call had ended.
        DeadlockError: the loop runs in this very thread, as with SequentialPool.
        WaitTimeoutError: the loop was stopped, and has stood still for 5 s; the call is cancelled.
        UsageError: no task of asyncio or trio awaits this call.
    """
    loop, _ = CALLER.get((None, ()))
    if loop is None:
        raise UsageError(
            "there is no event loop to return to: from_thread works in calls of `await pool.run(...)`, in "
            "asyncio and trio, that are made in a thread of the loop's interpreter"
        )
    if loop is _running():
        raise DeadlockError(
            "from_thread would wait for the event loop of its own thread: call the function itself"
        )
    asyncio = sys.modules.get("asyncio")
    with BlockedWorker():
        if asyncio is not None and isinstance(loop, asyncio.AbstractEventLoop):
            return _run_in_asyncio(asyncio, loop, fn, args)
        trio = sys.modules["trio"]
        try:
            result: T = trio.from_thread.run(fn, *args, trio_token=loop)
        except trio.RunFinishedError:
            raise _closed() from None
        return result


def run_sync(fn: Callable[..., T], /, *args: Any) -> T:
    """Calls a function in the thread of the caller's loop, and waits for its result. Raises as ``run``."""

    async def called() -> T:
        return fn(*args)

    return run(called)


def _closed() -> LoopClosedError:
    return LoopClosedError("the event loop of the task that awaits this call has been closed")


def _run_in_asyncio(asyncio: Any, loop: Any, fn: Callable[..., Awaitable[T]], args: tuple[Any, ...]) -> T:
    waits = True
    begun: list[Any] = []

    async def called() -> T:
        begun.append(asyncio.current_task())
        if not waits:
            raise asyncio.CancelledError
        return await fn(*args)

    coroutine = called()
    future: concurrent.futures.Future[T] | None = None
    try:
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, loop)
            _wait(loop, future)
            return future.result()
        finally:  # also where the thread is stopped before it has got the future
            waits = False
            if begun and (future is None or not future.done()):
                with contextlib.suppress(RuntimeError):  # it is closed
                    loop.call_soon_threadsafe(begun[0].cancel)
    except RuntimeError:
        if loop.is_closed() and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
            coroutine.close()  # Python warns of a coroutine that never begins
            raise _closed() from None
        raise


def _wait(loop: Any, future: concurrent.futures.Future[Any]) -> None:
    """Until it has ended. A loop that is run for moments only, as beside a GUI's, does not stand still."""
    turned = threading.Event()
    stopped_at = time.monotonic()
    while True:
        try:
            future.exception(CHECK_S)
        except TimeoutError:
            if loop.is_closed():
                raise _closed() from None
            if loop.is_running() or turned.is_set():
                turned.clear()
                stopped_at = time.monotonic()
            elif time.monotonic() - stopped_at >= STOPPED_S:
                raise WaitTimeoutError(
                    "the event loop of the task that awaits this call was stopped, and not started again "
                    f"within {STOPPED_S:g} s; the call is cancelled"
                ) from None
            else:
                with contextlib.suppress(RuntimeError):  # closed meanwhile
                    loop.call_soon_threadsafe(turned.set)
        else:
            return
