"""Waiting for a state, in a thread and in a task, threads that hand over what went wrong in them, and threads
that stay inside of something until they are told."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from fairlead.sync import Deadlock, blocking_in_tasks, detect_deadlocks

PATIENCE_S = 40
let_others_run: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))
"""Windows has no sched_yield(); elsewhere sleep(0) would not do, as a scheduled GIL treats it as a yield."""


def until(state: Callable[[], object]) -> None:
    """Returns when it is true; a test that waits in vain fails."""
    deadline = time.monotonic() + PATIENCE_S
    while not state():
        assert time.monotonic() < deadline, "the state never came"
        let_others_run()


def deadlocks() -> tuple[Deadlock, ...]:
    """The circles of this moment."""
    with detect_deadlocks(interval=threading.TIMEOUT_MAX) as detector:
        return detector.now()


async def until_async(state: Callable[[], object]) -> None:
    """As until(), while the other tasks of this loop run."""
    deadline = time.monotonic() + PATIENCE_S
    while not state():
        assert time.monotonic() < deadline, "the state never came"
        await asyncio.sleep(0)


def run(coroutine: Awaitable[Any]) -> Any:
    """In a loop of its own; fails if it takes too long."""
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE_S))


def main_thread_sleeps(pid: int | None = None) -> bool:
    """By the kernel's word; of this process, or of another. A thread that waits, as its primitive says, may
    not have fallen asleep yet, and then a signal may not wake it: without a GIL, CPython 3.13 can lose a
    Ctrl-C that comes while its main thread is about to wait."""
    pid = os.getpid() if pid is None else pid
    stat = Path(f"/proc/{pid}/task/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "S"


_WAITING = ("waiting", "getting", "putting", "joining", "sending", "receiving")


def waiters(primitive: Any) -> int:
    """How many wait for it, in whichever of its calls."""
    found = primitive.statistics()
    return sum(getattr(found, queue, 0) for queue in _WAITING)


def waiting_thread(primitive: Any, function: Callable[..., Any], *args: Any, **how: Any) -> Thread:
    """A thread in this call, of which one more waits for the primitive now."""
    before = waiters(primitive)
    thread = Thread(function, *args, **how)
    until(lambda: waiters(primitive) == before + 1)
    return thread


async def waiting_task(primitive: Any, awaitable: Awaitable[Any]) -> asyncio.Task[Any]:
    """A task that awaits this, by which one more waits for the primitive now."""

    async def body() -> Any:
        return await awaitable

    before = waiters(primitive)
    task = asyncio.ensure_future(body())
    await until_async(lambda: waiters(primitive) == before + 1)
    return task


class Thread(threading.Thread):
    """Starts at once; result() is what the function returned, or raises what it raised."""

    def __init__(self, function: Callable[..., Any], *args: Any, **how: Any) -> None:
        super().__init__(daemon=True)
        self._call = (function, args, how)
        self._outcome: tuple[Any, BaseException | None] = (None, None)
        self.start()

    def run(self) -> None:
        function, args, how = self._call
        try:
            self._outcome = (function(*args, **how), None)
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
            self._outcome = (None, error)

    def result(self) -> Any:
        self.join(PATIENCE_S)
        assert not self.is_alive(), "the thread never ended"
        value, error = self._outcome
        if error is not None:
            raise error
        return value


class Inside:
    """A thread that is inside of a block until it is told to go; it notes its name when it comes in."""

    def __init__(
        self, block: AbstractContextManager[Any], log: list[str] | None = None, name: str = ""
    ) -> None:
        self.entered, self._go = threading.Event(), threading.Event()

        def body() -> None:
            with block:
                if log is not None:
                    log.append(name)
                self.entered.set()
                assert self._go.wait(PATIENCE_S)

        self.thread = Thread(body)

    def wait(self) -> Inside:
        assert self.entered.wait(PATIENCE_S)
        return self

    def go(self) -> None:
        self._go.set()
        self.thread.result()


@contextmanager
def blocking_tasks() -> Iterator[None]:
    """In this block a call of a thread's form may block in a task."""
    before = blocking_in_tasks(True)
    try:
        yield
    finally:
        blocking_in_tasks(before)
