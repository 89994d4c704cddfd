"""SimpleQueue between threads and tasks: nothing is lost, doubled or put out of order."""

from __future__ import annotations

import queue
import struct
import sys
from typing import Any

import pytest
from waiting import run

from fairlead import errors
from fairlead.sync import Queue, SimpleQueue

pytestmark = [pytest.mark.ends_and_free, pytest.mark.pypy]


def test_objects_come_out_as_they_went_in() -> None:
    line = SimpleQueue()
    for number in range(100):
        line.put(number)
        line.put_nowait(-number)
    assert line.qsize() == 200
    assert [line.get() for _ in range(4)] == [0, 0, 1, -1]
    line.put("a", False)
    line.put(item="b", block=True, timeout=3)
    assert [line.get_nowait() for _ in range(198)][-2:] == ["a", "b"]
    assert line.empty()
    assert line.statistics() == (0, 0)


@pytest.mark.parametrize("block", [{"block": False}, {"block": False, "timeout": 1}, {"timeout": 0.001}])
def test_nothing_to_get_is_the_error_of_queue(block: Any) -> None:
    with pytest.raises(errors.QueueEmpty):
        SimpleQueue().get(**block)
    with pytest.raises(queue.Empty):
        SimpleQueue().get_nowait()


def test_put_async_is_done_at_once() -> None:
    async def main() -> None:
        line = SimpleQueue()
        assert await line.put_async("thing") is None
        assert await line.get_async() == "thing"

    run(main())


@pytest.mark.skipif(sys.implementation.name == "pypy", reason="PyPy's sys.getsizeof knows no sizes")
def test_size_counts_the_memory_of_the_queue() -> None:
    line = SimpleQueue()
    empty = sys.getsizeof(line)
    for number in range(1000):
        line.put(number)
    assert empty < sys.getsizeof(Queue()) < 450
    assert sys.getsizeof(line) - empty >= 1000 * struct.calcsize("P")
