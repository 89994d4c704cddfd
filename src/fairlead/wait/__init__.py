"""How a task waits: the mailbox of each event loop.

A task that waits for something of ``fairlead.sync`` is woken through its loop's :class:`Mailbox`. This module
finds the library whose loop runs here, without importing one that the program has not imported, and its
adapter makes the mailbox. An adapter is a function that returns the Mailbox of the loop that runs in this
thread, and makes it the first time.
"""

from __future__ import annotations

import sys

from fairlead._native import Mailbox, Operation, current_task, use_mailboxes

TYPE_CHECKING = False  # not typing's, which is slow to import: every program that waits imports this
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any

__all__ = [
    "Mailbox",
    "Operation",
    "add_loop",
    "current_mailbox",
    "current_task",
    "postponed",
    "task_behind",
]

_others: list[Callable[[], Mailbox | None]] = []


def add_loop(finder: Callable[[], Mailbox | None]) -> None:
    """Makes another library's event loop known.

    The finder returns the mailbox of the loop that runs in this thread, always the same one, or None where
    none does. It is asked where a task has to wait and no loop that fairlead knows runs.
    """
    _others.append(finder)


_imported: dict[str, ModuleType] = {}
"""Adapters that are whole; in sys.modules there may be one that another thread is about to import."""


def _adapters() -> Iterator[ModuleType]:
    for library in ("trio", "asyncio"):  # trio first: in guest mode an asyncio loop runs underneath
        if library in sys.modules:
            # not `import`, which costs more than all the rest: this is asked at every wait of a task
            if library not in _imported:
                from importlib import import_module

                _imported[library] = import_module(f"fairlead.wait._{library}")
            yield _imported[library]


def current_mailbox() -> Mailbox:
    """The mailbox of the event loop that runs in this thread; RuntimeError where none does."""
    for adapter in _adapters():
        if (mailbox := adapter.mailbox()) is not None:
            return mailbox  # type: ignore[no-any-return]
    if "gevent.hub" in sys.modules:
        from fairlead.wait import _gevent

        if (mailbox := _gevent.mailbox()) is not None:
            return mailbox
    for finder in _others:
        if (mailbox := finder()) is not None:
            return mailbox
    raise RuntimeError(
        "no event loop that fairlead knows (asyncio, uvloop, trio) runs in this thread; "
        "threads use the call without _async"
    )


def postponed(error: BaseException) -> bool:
    """Asked in a task whose wait an exception ends after what it waited for was done, and cannot be undone.

    Whether the exception may be dropped now, because it is a cancellation and comes again at the task's next
    wait, or a time-out that was too late.
    """
    for adapter in _adapters():
        if adapter.task() is not None:
            return adapter.postponed(error)  # type: ignore[no-any-return]
    if "gevent.hub" in sys.modules:
        from fairlead.wait import _gevent

        return _gevent.postponed(error)
    return False


def task_behind(future: Any) -> object | None:
    """The task that awaits this future of a mailbox; None where its library does not tell."""
    for adapter in _imported.values():
        if (task := adapter.task_behind(future)) is not None:
            return task  # type: ignore[no-any-return]
    gevent = sys.modules.get("fairlead.wait._gevent")
    return None if gevent is None else gevent.task_behind(future)


use_mailboxes(current_mailbox)
