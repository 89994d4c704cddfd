"""gevent: a greenlet that waits switches to its thread's hub, and the hub polls the mailbox.

The hub watches the mailbox's descriptor only while a greenlet waits, because a watcher keeps it running.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any
from weakref import WeakKeyDictionary

import gevent
from gevent._hub_local import get_hub_if_exists
from gevent.hub import Waiter

from fairlead._native import Mailbox, Operation
from fairlead.wait._mailboxes import enlisted

_mailboxes: WeakKeyDictionary[Any, Mailbox] = WeakKeyDictionary()


class _Future:
    """One wait of one greenlet."""

    _callbacks = None  # as of asyncio's: none

    def __init__(self) -> None:
        self._hub = gevent.get_hub()
        self._waiter = Waiter(self._hub)
        self._done = False

    def done(self) -> bool:
        return self._done

    def set_result(self, value: None) -> None:
        # a Waiter remembers it where the greenlet has gone on meanwhile, and switches nowhere
        self._hub.loop.run_callback(self._waiter.switch, value)
        self._done = True  # last: a signal handler may raise, and then this is called again

    def __await__(self) -> Generator[Any, Any, None]:
        found = _mailboxes[self._hub]
        watcher = self._hub.loop.io(found.fileno(), 1)
        watcher.start(found)
        try:
            self._waiter.get()
        finally:
            watcher.stop()
            watcher.close()
        return
        yield  # it is a generator that never yields: the greenlet itself stands still


class _Timer:
    """A call in the hub, after some seconds."""

    def __init__(self, seconds: float, function: Callable[[], None]) -> None:
        self._timer = gevent.get_hub().loop.timer(seconds)
        self._timer.start(function)

    def cancel(self) -> None:
        self._timer.stop()
        self._timer.close()


def in_greenlet() -> bool:
    """Whether this thread has a hub that can run others while the one that asks waits."""
    hub = get_hub_if_exists()
    return hub is not None and gevent.getcurrent() is not hub


def mailbox() -> Mailbox | None:
    """The mailbox of this thread's hub, or None where there is none, or where it is the hub that asks."""
    if not in_greenlet():
        return None
    hub = gevent.get_hub()
    found = _mailboxes.get(hub)
    if found is None:
        found = _mailboxes[hub] = enlisted(Mailbox(_Future, None, _Timer))
    return found


def task() -> Any:
    """The greenlet that runs in this thread, if it has a hub; None for its first one, which is the thread."""
    if get_hub_if_exists() is None:
        return None
    greenlet = gevent.getcurrent()
    return None if greenlet.parent is None else greenlet


def postponed(error: BaseException) -> bool:
    """See fairlead.wait. A time-out was too late; a killed greenlet ends where it next switches."""
    if isinstance(error, gevent.GreenletExit):
        gevent.get_hub().loop.run_callback(gevent.getcurrent().throw, error)
        return True
    return isinstance(error, gevent.Timeout)


def task_behind(future: object) -> Any:
    """The greenlet that waits for this future, if it is one of a hub."""
    return future._waiter.greenlet if isinstance(future, _Future) else None


def wait(operation: Operation[Any], seconds: float | None) -> Any:
    """What the operation ends with; None: the time was over first."""
    with gevent.Timeout(seconds, False):
        try:
            operation.send(None)
        except StopIteration as end:
            return end.value
    operation.close()
    return None
