"""trio: a system task polls the mailbox, and closes it when the run ends."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextvars import copy_context
from typing import Any

import outcome
import trio
from trio.lowlevel import Abort, RunVar

from fairlead._native import Mailbox
from fairlead.wait._mailboxes import enlisted

_mailbox: RunVar[Mailbox | None] = RunVar("fairlead.wait mailbox", None)


class _Future:
    """One wait of the task that makes it; trio reschedules a task exactly once."""

    _callbacks = None  # as of asyncio's: none

    def __init__(self) -> None:
        self._task = trio.lowlevel.current_task()
        self._done = self._shielded = False

    def done(self) -> bool:
        return self._done

    def set_result(self, value: None) -> None:
        self._done = True
        trio.lowlevel.reschedule(self._task, outcome.Value(value))

    def shield(self) -> None:
        self._shielded = True

    def _abort(self, _raise_cancel: Callable[[], Any]) -> Abort:
        if self._shielded:  # the cancellation comes through at the next checkpoint
            return Abort.FAILED
        self._done = True
        return Abort.SUCCEEDED

    def __await__(self) -> Generator[Any, Any, Any]:
        # a generator, for a waiter that finds in the last moment that there is nothing to wait for
        return (yield from trio.lowlevel.wait_task_rescheduled(self._abort).__await__())


async def _serve(mailbox: Mailbox) -> None:
    try:
        while True:
            await trio.lowlevel.wait_readable(mailbox.fileno())
            mailbox()
    finally:
        mailbox.close()


def _call_later(seconds: float, function: Callable[[], None]) -> trio.CancelScope:
    scope = trio.CancelScope()

    async def call() -> None:
        with scope:
            await trio.sleep(seconds)
            function()

    trio.lowlevel.spawn_system_task(call, name="fairlead.wait timer", context=copy_context())
    return scope


def task() -> trio.lowlevel.Task | None:
    """The task that runs in this thread, or None."""
    return trio.lowlevel.current_task() if trio.lowlevel.in_trio_task() else None


run_context = trio.lowlevel.in_trio_task.__globals__.get("GLOBAL_RUN_CONTEXT", task)
"""What in_trio_task() looks at, which native code asks at every acquire and release of an RLock: it has an
attribute ``task`` while one runs in this thread. A function, should a release of trio keep that elsewhere."""


def mailbox() -> Mailbox | None:
    """The mailbox of the run that this task is part of, or None."""
    if not trio.lowlevel.in_trio_task():
        return None
    found = _mailbox.get()
    if found is None:
        found = enlisted(Mailbox(_Future, None, _call_later, _Future.shield))
        _mailbox.set(found)
        trio.lowlevel.spawn_system_task(_serve, found, name="fairlead.wait", context=copy_context())
    return found


def postponed(error: BaseException) -> bool:
    """See fairlead.wait. A scope that is cancelled cancels the next checkpoint, too."""
    return isinstance(error, trio.Cancelled)


def task_behind(future: object) -> trio.lowlevel.Task | None:
    """The task that awaits this future, if it is one of this library."""
    return future._task if isinstance(future, _Future) else None
