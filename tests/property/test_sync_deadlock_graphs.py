"""Detector.now() in random graphs of waits: every circle is found, once, and nothing else."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import PATIENCE_S, Thread, deadlocks, until

from fairlead.errors import NotHeldError
from fairlead.sync import Lock, RLock

pytestmark = pytest.mark.once

THREADS, TASKS = 4, 3
PARTIES = THREADS + TASKS


def circles_of(wants: list[int | None]) -> set[frozenset[str]]:
    """Everyone waits for one other at most: follow each until somebody comes again."""
    found = set()
    for start in range(PARTIES):
        path: list[int] = []
        at: int | None = start
        while at is not None and at not in path:
            path.append(at)
            at = wants[at]
        if at is not None:
            found.add(frozenset(map(str, path[path.index(at) :])))
    return found


class Graph:
    """Threads with a Lock each and tasks of a loop with an RLock each: all take theirs, then what they want,
    and who wants nothing keeps its own."""

    def __init__(self, wants: list[int | None], hasty: set[int]) -> None:
        self.wants, self.hasty = wants, hasty
        self.locks: list[Any] = [Lock() for _ in range(THREADS)] + [RLock() for _ in range(TASKS)]
        self.all_hold, self.over = threading.Barrier(THREADS + 1), threading.Event()
        self.go, self.never = asyncio.Event(), asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []
        self.loop = asyncio.new_event_loop()
        self.of_loop = Thread(self.loop.run_until_complete, self.all_tasks())
        until(lambda: len(self.tasks) == TASKS and all(lock.locked() for lock in self.locks[THREADS:]))
        self.threads = [Thread(self.thread, number) for number in range(THREADS)]
        self.all_hold.wait(PATIENCE_S)
        self.loop.call_soon_threadsafe(self.go.set)
        until(lambda: self.waiting() == sum(want is not None for want in wants))

    def thread(self, number: int) -> None:
        threading.current_thread().name = str(number)
        self.locks[number].acquire()
        self.all_hold.wait(PATIENCE_S)
        wanted = self.wants[number]
        if wanted is None:
            self.over.wait(PATIENCE_S)
        else:
            if number in self.hasty:
                assert self.locks[wanted].acquire(timeout=1000)
            else:
                self.locks[wanted].acquire()
            with suppress(NotHeldError):
                self.locks[wanted].release()
        with suppress(NotHeldError):
            self.locks[number].release()

    async def task(self, number: int) -> None:
        async with self.locks[number]:
            await self.go.wait()
            wanted = self.wants[number]
            if wanted is None:
                await self.never.wait()
            else:
                await self.locks[wanted].acquire_async()
                self.locks[wanted].release()

    async def all_tasks(self) -> None:
        numbers = range(THREADS, PARTIES)
        self.tasks += [asyncio.create_task(self.task(number), name=str(number)) for number in numbers]
        await asyncio.wait(self.tasks)

    def waiting(self) -> int:
        return sum(lock.statistics().waiting for lock in self.locks)

    def found(self) -> set[frozenset[str]]:
        """Asked in the loop's thread: without a GIL its tasks are known there alone."""

        async def ask() -> list[frozenset[str]]:
            return [
                frozenset(wait.waiter.task or wait.waiter.thread_name for wait in deadlock.waits)
                for deadlock in deadlocks()
            ]

        found = asyncio.run_coroutine_threadsafe(ask(), self.loop).result(PATIENCE_S)
        assert len(found) == len(set(found))
        return set(found)

    def close(self) -> None:
        """Tasks are cancelled, threads are let go from outside."""
        for task in self.tasks:
            self.loop.call_soon_threadsafe(task.cancel)
        self.of_loop.result()
        self.loop.close()
        self.over.set()
        while any(thread.is_alive() for thread in self.threads):
            for lock in self.locks[:THREADS]:
                with suppress(NotHeldError):
                    lock.release()
        for thread in self.threads:
            thread.result()


def of_one(at: int, want: int | None) -> int | None:
    """A task takes its own RLock again, and would not wait."""
    return None if want == at >= THREADS else want


WANTS = st.lists(st.none() | st.integers(0, PARTIES - 1), min_size=PARTIES, max_size=PARTIES).map(
    lambda wants: [of_one(at, want) for at, want in enumerate(wants)]
)


@settings(max_examples=25, deadline=None)
@given(wants=WANTS, hasty=st.sets(st.integers(0, THREADS - 1), max_size=1))
def test_every_circle_is_found_once_and_nothing_else(wants: list[int | None], hasty: set[int]) -> None:
    """Who gives up in time, if it is in a circle, breaks it."""
    expected = circles_of([None if at in hasty else want for at, want in enumerate(wants)])
    graph = Graph(wants, hasty)
    try:
        until(lambda: graph.found() == expected)
        assert graph.found() == expected
    finally:
        graph.close()
    assert deadlocks() == ()
