"""Waiting for a state, in a thread and in a task, and threads that hand over what went wrong in them."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 40


def until(state: Callable[[], object]) -> None:
    """Returns when it is true; a test that waits in vain fails."""
    deadline = time.monotonic() + PATIENCE_S
    while not state():
        assert time.monotonic() < deadline, "the state never came"
        os.sched_yield()


async def until_async(state: Callable[[], object]) -> None:
    """As until(), while the other tasks of this loop run."""
    deadline = time.monotonic() + PATIENCE_S
    while not state():
        assert time.monotonic() < deadline, "the state never came"
        await asyncio.sleep(0)


class Thread(threading.Thread):
    """Starts at once; result() is what the function returned, or raises what it raised."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        super().__init__(daemon=True)
        self._call = (function, args)
        self._outcome: tuple[Any, BaseException | None] = (None, None)
        self.start()

    def run(self) -> None:
        function, args = self._call
        try:
            self._outcome = (function(*args), None)
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
            self._outcome = (None, error)

    def result(self) -> Any:
        self.join(PATIENCE_S)
        assert not self.is_alive(), "the thread never ended"
        value, error = self._outcome
        if error is not None:
            raise error
        return value
