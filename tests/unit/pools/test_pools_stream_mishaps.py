"""Streams that are interrupted, cancelled or slow lose no result, in every kind of pool."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from poolkinds import Make
from pooltasks import square, wait_for
from waiting import run, until

from fairlead.errors import UsageError
from fairlead.pools import ThreadPool
from fairlead.pools.executor.stream import Stream

pytestmark = pytest.mark.ends_and_free


class Enough(Exception):
    pass


@pytest.fixture
def alarm() -> Iterator[Any]:
    """Has this thread raise Enough once, while it waits for the next result."""

    def enough(_: int, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code is not Stream._wait.__code__:
            frame = frame.f_back
        if frame is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Enough

    before = signal.signal(signal.SIGALRM, enough)
    # again and again: the first may find it still at starting workers, and a signal that comes as a thread is
    # about to sleep does not wake it
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="only the main thread sees to signals"
)
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("timeout", [None, 40])
def test_interrupted_next_loses_no_result(
    several: Make, alarm: Any, tmp_path: Path, timeout: float | None, *, ordered: bool
) -> None:
    gates = [str(tmp_path / str(n)) for n in range(3)]
    stream = several(max_workers=3).stream(wait_for, gates, ordered=ordered, chunksize=1)
    alarm()
    with pytest.raises(Enough):
        stream.next(timeout)
    for gate in gates:
        Path(gate).touch()
    assert sorted(stream) == gates


@pytest.mark.parametrize("chunksize", [1, 3])
def test_slow_asynchronous_source_delays_no_ready_result_and_loses_no_item(
    several: Make, chunksize: int
) -> None:
    pool = several()

    async def main() -> list[int]:
        go = asyncio.Event()

        async def source() -> AsyncIterator[int]:
            yield 1
            yield 2
            await go.wait()
            yield 3

        stream = pool.stream(square, source(), window=10, chunksize=chunksize)
        found = [await anext(stream), await anext(stream)] if chunksize == 1 else []
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(stream), 0.02)
        go.set()
        return found + [one async for one in stream]

    assert run(main()) == [1, 4, 9]


def test_ready_result_waits_for_one_item_of_a_slow_source_at_most(several: Make) -> None:
    pool = several()
    asked: list[int] = []

    def source() -> Iterator[int]:
        for n in range(20):
            asked.append(n)
            if n > 0:
                until(lambda: stream._ready() or not stream._under_way)
            time.sleep(0.001)  # slow, for a source
            yield n

    stream = pool.stream(square, source(), window=10, chunksize=1)
    for n in range(10):
        assert next(stream) == n * n
        assert len(asked) <= n + 2
    stream.close()


@pytest.mark.parametrize("wrong", [{"iterable": 5}, {"iterable": [1], "progress": 5}])
def test_stream_that_is_refused_leaves_nothing_behind(wrong: dict[str, Any]) -> None:
    unraisable: list[str] = []
    with pytest.MonkeyPatch.context() as patch, ThreadPool(1) as pool:
        patch.setattr(sys, "unraisablehook", lambda told: unraisable.append(repr(told.exc_value)))
        with pytest.raises((TypeError, UsageError)):
            pool.stream(abs, **wrong)
        gc.collect()
    assert not unraisable
