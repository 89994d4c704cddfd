"""The kinds of pools, and what makes them for a test and ends them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from waiting import PATIENCE_S

from fairlead.pools import AsyncPool, InterpreterPool, Pool, ProcessPool, SequentialPool, ThreadPool

Make = Callable[..., Pool]

KINDS: dict[str, Callable[..., Pool]] = {
    "sequential": SequentialPool,
    "threads": lambda **given: ThreadPool(given.pop("max_workers", 2), interrupt=True, **given),
    "async": lambda **given: AsyncPool(given.pop("max_workers", 2), **given),
}
# most tests send functions that only cloudpickle can, which does not load on PyPy (8.0.1)
if sys.implementation.name != "pypy":
    KINDS["processes"] = lambda **given: ProcessPool(given.pop("max_workers", 2), **given)
if sys.version_info >= (3, 13):
    KINDS["interpreters"] = lambda **given: InterpreterPool(given.pop("max_workers", 2), **given)
CONCURRENT = [kind for kind in KINDS if kind != "sequential"]
KEEPING = [kind for kind in CONCURRENT if kind != "async"]
"""Those that have several workers, and keep them."""
SENDING = [kind for kind in KEEPING if kind != "threads"]
"""Those whose workers do not share this interpreter."""


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    yield from making(KINDS[request.param])


@pytest.fixture(params=CONCURRENT)
def several(request: pytest.FixtureRequest) -> Iterator[Make]:
    yield from making(KINDS[request.param])


@pytest.fixture(params=KEEPING)
def keeping(request: pytest.FixtureRequest) -> Iterator[Make]:
    yield from making(KINDS[request.param])


@pytest.fixture(params=SENDING)
def sending(request: pytest.FixtureRequest) -> Iterator[Make]:
    yield from making(KINDS[request.param])


def making(kind: Make) -> Iterator[Make]:
    """Makes pools, and ends them."""
    before = set(threading.enumerate())
    made: list[Pool] = []

    def make(**given: Any) -> Pool:
        made.append(kind(**given))
        return made[-1]

    yield make
    for pool in made:
        pool.terminate()
        pool.shutdown()
    join_all_but(before)


def join_all_but(before: set[threading.Thread]) -> None:
    """Waits for the threads that were started since then, and for those that they start."""
    while started := set(threading.enumerate()) - before:
        for thread in started:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), f"{thread} never ended"


def pass_time(pool: Pool) -> None:
    """As if the time were up of each of its tasks that run and have a time-out."""
    engine: Any = pool._engine
    for task in list(engine._timed):
        task.deadline = 0.0
    engine._expire()
