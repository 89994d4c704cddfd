"""Calls for threads that must not be kept waiting, or must not be interrupted, which another thread makes.

Those that watch time-outs or read replies have the done-callbacks of the futures that they end called so: a
callback is a user's, and may block for as long as it likes. And event loops have calls pickled and sent so.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from fairlead.pools.engine import shutdown
from fairlead.pools.engine.lock import EngineLock

T = TypeVar("T")

LINGER_S = 1.0
"""How long the thread waits for further calls: to start one takes far longer than most calls do."""


class _Served(threading.local):
    """Not a dictionary by thread: in a forked child, another thread may get the number of one that ended with
    the fork."""

    by: Aside | _Kept | None = None


_served = _Served()


def of_this_thread() -> Aside | _Kept | None:
    return _served.by


class _Kept:
    """Done-callbacks that a thread leaves to the one that waits for it, unless that has gone on."""

    def __init__(self) -> None:
        self._calls: deque[Callable[[], object]] = deque()
        self._left = False

    def call(self, function: Callable[[], object]) -> None:
        self._calls.append(function)

    def end(self, *, waits: bool) -> None:
        """By each of the two threads, when it has come to its end."""
        self._left = self._left or waits
        while self._left and self._calls:
            with contextlib.suppress(IndexError):  # the other thread was quicker
                self._calls.popleft()()


def uninterrupted(call: Callable[[], T]) -> T:
    """Has another thread call it, which neither Ctrl-C nor a task's interrupt can reach, and waits for that:
    an interrupt ends the wait only. The done-callbacks of futures that it ends are called here."""
    kept = _Kept()
    outcome: Future[T] = Future()

    def run(_: object) -> None:
        _served.by = kept
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001 - the waiter's
            outcome.set_exception(error)
        kept.end(waits=False)

    thread = shutdown.thread(run, None, "fairlead-uninterrupted")
    try:
        try:
            thread.start()
        except RuntimeError:  # no thread is left
            return call()
        thread.join()
    finally:
        kept.end(waits=True)
    return outcome.result()


class Aside:
    """Makes one call after another, in a thread that it starts with the first and ends some time after the
    last; soon after it, once the block of the thread that it serves is left.

    Args:
        name: of its thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition(EngineLock())
        self._calls: deque[Callable[[], object]] = deque()
        self._running = False
        self._linger_s = LINGER_S

    def __enter__(self) -> None:
        """From now on it serves the calling thread."""
        _served.by = self

    def __exit__(self, *_: object) -> None:
        _served.by = None
        self._linger_no_longer()

    def call(self, function: Callable[[], object]) -> None:
        with self._changed:
            self._calls.append(function)
            self._changed.notify()
            if self._running:
                return
            with contextlib.suppress(RuntimeError):  # no thread is left
                shutdown.thread(self._run, None, self._name).start()
                self._running = True  # after it: an interrupt in between costs a thread too many, and no call
                return
        self._linger_no_longer()
        self._run(None)  # better late than never

    def _linger_no_longer(self) -> None:
        with self._changed:
            self._linger_s = 0.0
            self._changed.notify()

    def _run(self, _: object) -> None:
        while True:
            with self._changed:
                if not self._calls and self._linger_s:
                    self._changed.wait(self._linger_s)
                if not self._calls:
                    self._running = False
                    return
                function = self._calls.popleft()
            function()
            del function
