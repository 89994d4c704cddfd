"""Threads and tasks that are inside of an RWLock, or wait for it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from waiting import Thread, until, until_async

from fairlead.sync import RWLock, RWLockView


class Inside:
    """A thread that comes in, says so, and goes out when it is told."""

    def __init__(self, face: RWLockView, log: list[str] | None = None, name: str = "") -> None:
        self.entered, self._go = threading.Event(), threading.Event()

        def body() -> None:
            with face:
                if log is not None:
                    log.append(name)
                self.entered.set()
                assert self._go.wait(40)

        self._thread = Thread(body)

    def wait(self) -> Inside:
        assert self.entered.wait(40)
        return self

    def go(self) -> None:
        self._go.set()
        self._thread.result()


def waits(lock: RWLock, count: int) -> None:
    until(lambda: lock.statistics().waiting == count)


async def queued(lock: RWLock, face: RWLockView, log: list[str], name: str) -> asyncio.Task[Any]:
    """A task that waits for this face, and stays inside until it is cancelled."""

    async def body() -> None:
        async with face:
            log.append(name)
            await asyncio.get_running_loop().create_future()

    waiting = lock.statistics().waiting
    task = asyncio.ensure_future(body())
    await until_async(lambda: lock.statistics().waiting == waiting + 1)
    return task


async def end(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
        await asyncio.wait([task])
