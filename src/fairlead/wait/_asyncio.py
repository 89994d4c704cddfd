"""asyncio, and whatever has its loop's interface, as uvloop.

The loop polls the mailbox's descriptor, and only its table of readers holds the mailbox. A loop has no hook
for its end, but closing it, or collecting it, lets the table go; so the mailbox dies with it, and closes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, ref

from fairlead._native import Mailbox
from fairlead.wait._mailboxes import enlisted

_mailboxes: WeakKeyDictionary[asyncio.AbstractEventLoop, ref[Mailbox]] = WeakKeyDictionary()


_running_loop = asyncio._get_running_loop
_task_of = asyncio.current_task
"""Both are asked at wake-ups of a task by its own loop."""


def _running(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether a task of this loop runs in this thread. A signal handler may run while the loop sleeps."""
    return _running_loop() is loop and _task_of(loop) is not None


def task() -> asyncio.Task[Any] | None:
    """The task that runs in this thread, or None."""
    loop = _running_loop()
    return _task_of(loop) if loop is not None else None


def _future_maker(loop: asyncio.AbstractEventLoop) -> Callable[[], asyncio.Future[Any]]:
    """The loop's create_future, or, where that is asyncio's own, what it calls."""
    if type(loop).create_future is asyncio.BaseEventLoop.create_future:
        return partial(asyncio.Future, loop=loop)
    return loop.create_future


def mailbox() -> Mailbox | None:
    """The mailbox of the loop that runs in this thread, or None."""
    loop = _running_loop()
    if loop is None:
        return None
    known = _mailboxes.get(loop)
    found = known() if known is not None else None
    if found is None:
        found = enlisted(Mailbox(_future_maker(loop), partial(_running, loop), loop.call_later))
        loop.add_reader(found.fileno(), found)
        _mailboxes[loop] = ref(found)
    return found


def postponed(error: BaseException) -> bool:
    """See fairlead.wait. A time-out that has been left by then has taken its cancellation back."""
    here = task()
    if here is None or not isinstance(error, asyncio.CancelledError):
        return False
    asked, arguments = here.cancelling(), error.args

    def again() -> None:
        if not here.done() and here.cancelling() >= asked:
            here.uncancel()
            here.cancel(*arguments)

    here.get_loop().call_soon(again)
    return True


def reschedule(future: Any, callbacks: tuple[tuple[Any, Any], ...]) -> None:
    """Schedules those of a done future's callbacks that its loop has not got, because a signal handler raised
    in the loop's call_soon. uvloop's is not Python, and has got them."""
    loop = future.get_loop()
    if (ready := getattr(loop, "_ready", None)) is not None:
        for callback, context in callbacks:
            if all(handle._callback is not callback for handle in ready):
                loop.call_soon(callback, future, context=context)


def task_behind(future: object) -> asyncio.Task[Any] | None:
    """The task that awaits this future, which is what it calls when it is done."""
    for callback, _context in getattr(future, "_callbacks", None) or ():
        if isinstance(task := getattr(callback, "__self__", None), asyncio.Task):
            return task
    return None
