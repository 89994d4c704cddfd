"""One thread that ends tasks whose time is up."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from fairlead.pools.engine import shutdown
from fairlead.pools.engine.aside import Aside
from fairlead.pools.engine.lock import EngineLock


class DeadlineTimer:
    """Calls ``look`` when a deadline has come; ``look`` ends what is due and returns the next deadline.

    A caller with a deadline makes it visible to ``look`` first and calls ``expect`` then. While that runs,
    the time it is expected at counts as infinite, so that a deadline that it may have missed wakes the thread
    again.
    """

    def __init__(self, look: Callable[[], float], name: str) -> None:
        self._look = look
        self._condition = threading.Condition(EngineLock())
        self._next = math.inf
        self._look_again = False
        self._ended = False
        self._aside = Aside(f"{name}-callbacks")
        self.thread = shutdown.thread(self._run, None, name)
        self.thread.start()

    def expect(self, deadline: float) -> None:
        if deadline < self._next:
            with self._condition:
                self._look_again = True
                self._condition.notify()

    def end(self) -> None:
        with self._condition:
            self._ended = True
            self._condition.notify()

    def join(self) -> None:
        if self.thread is not threading.current_thread():
            self.thread.join()

    def _run(self, _: object) -> None:
        with self._aside:
            while not self._ended:
                self._next = math.inf
                self._look_again = False
                deadline = self._look()
                with self._condition:
                    self._next = deadline
                    left = deadline - time.monotonic()
                    if left > 0 and not (self._ended or self._look_again):
                        self._condition.wait(min(left, threading.TIMEOUT_MAX))
