"""Pools of processes where descriptors run out: nothing is lost, and results that live take none."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pooltasks import square
from waiting import until

from fairlead.pools import ProcessPool
from fairlead.pools.process import channel

pytestmark = pytest.mark.ends_and_free
LENGTH = 12_500


def array(n: int) -> Any:
    return np.full(LENGTH, n, dtype="f8")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@contextlib.contextmanager
def at_most(more: int) -> Iterator[None]:
    """No more descriptors than there are now, and so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def none_left() -> Iterator[None]:
    """Not even one: every number is taken."""
    taken = []
    with at_most(0):
        try:
            with contextlib.suppress(OSError):
                while True:
                    taken.append(os.dup(0))
            yield
        finally:
            for fd in taken:
                os.close(fd)


def test_results_that_are_kept_take_no_descriptors() -> None:
    """100 kB each: of 32 workers, 1,024 of them live in shared memory."""
    with ProcessPool(4) as pool:
        list(pool.map(square, range(8), chunksize=1))
        before = descriptors()
        with at_most(4 * channel.MOST_LENT // 2):
            kept = list(pool.map(array, range(400), chunksize=1))
            assert [(a[0], a[-1], len(a)) for a in kept] == [(n, n, LENGTH) for n in range(400)]
            assert descriptors() <= before + 4 * channel.KEEP
        assert pool.statistics().lost == 0


def answer_later(path: str, n: int) -> Any:
    while not os.path.exists(path):  # noqa: PTH110
        os.sched_yield()
    return array(n)


def test_result_that_comes_while_no_descriptor_is_left_is_not_lost(tmp_path: Path) -> None:
    with ProcessPool(1) as pool:
        pid = pool.submit(os.getpid).result()
        for n in range(3):
            go = str(tmp_path / str(n))
            future = pool.submit(answer_later, go, n)
            until(future.running)
            with none_left():
                os.mknod(go)
                assert np.array_equal(future.result(40), array(n))
        assert pool.submit(os.getpid).result() == pid
        assert pool.statistics().lost == 0


_taken: list[int] = []


def take_all() -> int:
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (descriptors() + 8, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )
    with contextlib.suppress(OSError):
        while True:
            _taken.append(os.dup(0))
    return len(_taken)


def total(values: Any) -> float:
    return float(values.sum())


def test_call_that_comes_to_a_worker_without_descriptors_is_not_lost() -> None:
    with ProcessPool(1) as pool:
        pid = pool.submit(os.getpid).result()
        assert pool.submit(take_all).result() > 0
        for n in range(1, 4):
            assert pool.submit(total, array(n)).result(40) == n * LENGTH
            back = pool.submit(np.negative, [array(n)] * 2).result(40)
            assert np.array_equal(back, [-array(n)] * 2)
        assert pool.submit(os.getpid).result() == pid
        assert pool.statistics().lost == 0


def test_calls_sent_take_no_more_than_half_of_the_descriptors() -> None:
    with ProcessPool(4) as pool, at_most(60):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        done = list(pool.map(keep, [array(n) for n in range(200)], chunksize=1))
        assert done == [n * LENGTH for n in range(200)]
        assert len(channel._open) <= limit // 2


_held: list[Any] = []


def keep(values: Any) -> float:
    _held.append(values)
    return total(values)
