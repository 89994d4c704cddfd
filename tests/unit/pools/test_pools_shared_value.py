"""SharedValue: large values that workers read in place."""

from __future__ import annotations

import itertools
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
from poolkinds import KINDS, Make
from poolkinds import make as make  # a fixture

from fairlead.errors import HandleGoneError, SerializationError
from fairlead.pools import ProcessPool, SharedValue

pytestmark = [
    pytest.mark.ends_and_free,
    pytest.mark.skipif(sys.platform != "linux", reason="memory files are Linux's"),
]


def value_of(shared: SharedValue[Any]) -> Any:
    return shared.value


def row_sum(table: SharedValue[Any], row: int) -> tuple[float, bool]:
    return float(table.value[row].sum()), table.value.flags.writeable


def mapped(inode: int) -> int:
    """How many mappings this process has of that file."""
    return sum(line.split()[4] == str(inode) for line in Path("/proc/self/maps").read_text().splitlines())


def mapped_with(shared: SharedValue[Any], inode: int) -> tuple[int, int]:
    """With the value, and once more of another object with the same memory."""
    again = pickle.loads(pickle.dumps(shared))
    return mapped(inode), len(again.value)


def inode_of(shared: SharedValue[Any]) -> int:
    return os.fstat(shared._fd).st_ino


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "interpreters"])
def test_an_array_is_there_in_every_call_and_cannot_be_written(kind: str) -> None:
    numpy = pytest.importorskip("numpy")  # which refuses to be imported in an interpreter
    table = SharedValue(numpy.arange(40_000.0).reshape(4, 10_000))
    with KINDS[kind]() as pool:
        found = list(pool.map(row_sum, itertools.repeat(table), range(4)))
    assert [row[0] for row in found] == [float(sum(range(n, n + 10_000))) for n in range(0, 40_000, 10_000)]
    with pytest.raises(ValueError, match="read-only"):
        table.value[0, 0] = 1


@pytest.mark.parametrize("given", [b"ab" * 50_000, bytearray(b"ab" * 50_000), memoryview(b"ab" * 50_000)])
def test_bytes_are_a_view_that_cannot_be_written(make: Make, given: Any) -> None:
    shared = SharedValue(given)
    with make() as pool:
        assert pool.submit(lambda shared: bytes(shared.value) == b"ab" * 50_000, shared).result()
    assert shared.value.readonly


@pytest.mark.parametrize("value", [None, {"a": [1, 2]}, "text", b"", [b"x" * 100_000, bytearray(70_000)]])
def test_any_value_that_can_be_pickled_comes_back_equal(value: Any) -> None:
    assert pickle.loads(pickle.dumps(SharedValue(value))).value == value


def test_workers_map_the_memory_of_the_one_that_wrote_it_and_let_go_of_it() -> None:
    shared = SharedValue(bytes(200_000))
    inode = inode_of(shared)
    with ProcessPool(1) as pool:
        assert pool.submit(mapped_with, shared, inode).result() == (2, 200_000)
        assert pool.submit(mapped, inode).result() == 0
    assert mapped(inode) == 1
    fd = shared._fd
    del shared
    assert mapped(inode) == 0
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(fd)


def mapped_within(shared: SharedValue[Any], inode: int) -> tuple[int, int]:
    with ProcessPool(1) as pool:
        return pool.submit(mapped_with, shared, inode).result()


def test_workers_of_workers_map_it_too() -> None:
    shared = SharedValue(bytes(200_000))
    with ProcessPool(1) as pool:
        assert pool.submit(mapped_within, shared, inode_of(shared)).result() == (2, 200_000)
        assert pool.statistics().bytes_out < 20_000


def test_no_process_can_change_the_memory() -> None:
    shared = SharedValue(bytes(100))
    with pytest.raises(PermissionError):
        os.pwrite(shared._fd, b"x", 0)


def test_a_reference_to_what_is_gone_says_what_to_keep() -> None:
    shared = SharedValue(bytes(100_000))
    reference = pickle.dumps(shared)
    del shared
    with pytest.raises(HandleGoneError, match="keep the object"):
        pickle.loads(reference)


def test_a_reference_does_not_lead_to_what_has_its_place() -> None:
    first = SharedValue(bytes(100_000))
    reference = pickle.dumps(first)
    fd = first._fd
    del first
    others = [SharedValue(bytes(size)) for size in (100_000, 200_000)]
    assert fd in [other._fd for other in others]
    with pytest.raises(HandleGoneError, match="keep the object"):
        pickle.loads(reference)


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_forked_child_passes_it_on() -> None:
    shared = SharedValue({"a": bytes(100_000)})
    pid = os.fork()
    if not pid:
        os._exit(pickle.loads(pickle.dumps(shared)).value != {"a": bytes(100_000)})
    assert os.waitpid(pid, 0)[1] == 0


def test_what_cannot_be_pickled_is_refused_by_its_type() -> None:
    with pytest.raises(SerializationError, match="a generator cannot be shared with workers"):
        SharedValue(iter(n for n in range(3)))
