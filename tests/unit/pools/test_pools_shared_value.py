"""SharedValue: read where it is by workers, unchangeable, in memory once, and freed."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from poolkinds import Make, make
from pooltasks import sum_of_value

from fairlead.errors import HandleGoneError
from fairlead.pools import ProcessPool, SharedValue

__all__ = ["make"]  # a fixture

pytestmark = [
    pytest.mark.ends_and_free,
    pytest.mark.skipif(sys.platform != "linux", reason="SharedValue is for Linux"),
]
LENGTH = 4_000_000


def parts_of(shared: SharedValue[Any], at: int) -> tuple[float, float, bool]:
    return float(shared.value[at]), float(shared.value[-1]), shared.value.flags.writeable


def test_tasks_of_processes_read_an_array_that_goes_with_every_call() -> None:
    data = np.arange(LENGTH, dtype="f8")
    with SharedValue(data) as shared, ProcessPool(2) as pool:
        found = list(pool.map(parts_of, [shared] * 20, range(20), chunksize=1))
        assert found == [(float(n), LENGTH - 1.0, False) for n in range(20)]
        assert pool.statistics().bytes_out < 20_000
        assert np.array_equal(shared.value, data)


def test_bytes_reach_tasks_of_every_kind(make: Make) -> None:
    shared = SharedValue(bytes(range(256)) * 1000)
    assert make().submit(sum_of_value, shared).result() == 255 * 128 * 1000


@pytest.mark.parametrize(
    "value", [3, [np.arange(5), {"a": np.ones((3, 4))}], np.asfortranarray(np.ones((300, 200))), b"", "text"]
)
def test_values_of_any_shape_are_as_they_were(value: Any) -> None:
    with SharedValue(value) as shared, ProcessPool(1) as pool:
        np.testing.assert_equal(pool.submit(getattr, shared, "value").result(), value)


def within(shared: SharedValue[Any]) -> float:
    with ProcessPool(1) as pool:
        return pool.submit(parts_of, shared, 3).result()[0]


def test_value_reaches_workers_of_workers() -> None:
    with SharedValue(np.arange(LENGTH)) as shared, ProcessPool(1) as pool:
        assert pool.submit(within, shared).result() == 3.0


def test_memory_cannot_be_changed_by_any_process() -> None:
    with SharedValue(np.arange(10)) as shared:
        with pytest.raises(ValueError, match="read-only"):
            shared.value[0] = 1
        with pytest.raises(PermissionError):
            os.pwrite(shared._fd, b"x", 0)


def mapped() -> int:
    """Bytes of memory files of SharedValues that this process has mapped: its part of what is in memory."""
    found, counts = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0] and not line.split()[0].endswith(":"):
            counts = "memfd:fairlead-shared" in line
        elif counts and line.startswith("Pss:"):
            found += int(line.split()[1]) * 1024
    return found


_read: list[Any] = []


def read_all(shared: SharedValue[Any]) -> float:
    _read.append(shared)
    return float(shared.value.sum())


def forget() -> int:
    _read.clear()
    gc.collect()
    return mapped()


def test_memory_is_there_once_and_freed_with_the_value() -> None:
    data = np.ones(LENGTH, dtype="f8")
    pools = [ProcessPool(1) for _ in range(4)]
    with contextlib.ExitStack() as stack:
        for pool in pools:
            stack.enter_context(pool)
        shared = SharedValue(data)
        for pool in pools:
            assert pool.submit(read_all, shared).result() == LENGTH
        whole = sum(pool.submit(mapped).result() for pool in pools)
        assert 0.95 * data.nbytes < whole < 1.05 * data.nbytes
        assert [pool.submit(forget).result() for pool in pools] == [0] * 4
        assert shared._inode in memory_files()
        shared.close()
        assert shared._inode not in memory_files()


def memory_files() -> list[int]:
    found = []
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if "fairlead-shared" in str(path.readlink()):
                found.append(path.stat().st_ino)
    return found


def test_value_that_is_gone_says_so() -> None:
    shared = SharedValue(np.arange(10))
    with ProcessPool(1) as pool:
        assert pool.submit(parts_of, shared, 2).result() == (2.0, 9.0, False)
        shared.close()
        with pytest.raises(HandleGoneError, match="keep the SharedValue open"):
            pool.submit(parts_of, shared, 2).result()
        with pytest.raises(HandleGoneError):
            assert shared.value is None
        other = SharedValue(np.arange(20))  # it may have the number of the file that was closed
        with pytest.raises(HandleGoneError):
            pool.submit(parts_of, shared, 2).result()
        assert pool.submit(parts_of, other, 2).result() == (2.0, 19.0, False)
