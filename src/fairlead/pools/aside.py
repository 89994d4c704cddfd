"""Calls for threads that must not be kept waiting, which another thread makes while there are any.

Those that watch time-outs or read replies have the done-callbacks of the futures that they end called so: a
callback is a user's, and may block for as long as it likes. And event loops have calls pickled and sent so.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from fairlead.pools import ending

_threads: dict[int, Aside] = {}


def of_this_thread() -> Aside | None:
    return _threads.get(threading.get_ident())


class Aside:
    """Makes one call after another.

    Args:
        name: of its thread.
        linger_s: how long that waits for further calls.
    """

    def __init__(self, name: str, linger_s: float = 0.0) -> None:
        self._name = name
        self._linger_s = linger_s
        self._changed = threading.Condition(threading.Lock())
        self._calls: deque[Callable[[], object]] = deque()
        self._running = False

    def __enter__(self) -> None:
        """From now on it serves the calling thread."""
        _threads[threading.get_ident()] = self

    def __exit__(self, *_: object) -> None:
        del _threads[threading.get_ident()]

    def call(self, function: Callable[[], object]) -> None:
        with self._changed:
            self._calls.append(function)
            self._changed.notify()
            if self._running:
                return
            self._running = True
        try:
            ending.thread(self._run, None, self._name).start()
        except RuntimeError:  # no thread is left: better late than never
            self._linger_s = 0.0
            self._run(None)

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
