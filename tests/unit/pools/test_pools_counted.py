"""What counts the calls of a chunk for another process."""

from __future__ import annotations

import gc
import mmap
import weakref
from typing import Any

import pytest

from fairlead._native import Counted


def test_the_number_of_an_item_is_in_the_memory_before_it_is_given() -> None:
    memory = mmap.mmap(-1, 16)
    numbers = memoryview(memory).cast("Q")
    numbers[1] = 7
    assert [(item, numbers[0]) for item in Counted("abc", memory)] == [("a", 1), ("b", 2), ("c", 3)]
    assert numbers[1] == 7


def test_it_pauses_and_goes_on() -> None:
    memory = bytearray(8)
    counted = Counted(range(5), memory)
    assert counted.stop == 5
    counted.stop = 2
    assert list(counted) == [0, 1]
    counted.stop = 100
    assert (next(counted), counted.number) == (2, 3)
    assert list(counted) == [3, 4]
    assert list(counted) == []
    assert int.from_bytes(memory, "little") == 5


@pytest.mark.parametrize(
    ("items", "memory", "error"),
    [
        (3, bytearray(8), TypeError),
        ([1], bytes(8), BufferError),
        ([1], bytearray(7), ValueError),
        ([1], memoryview(bytearray(16))[1:9], ValueError),
    ],
)
def test_what_it_cannot_count_is_refused(items: Any, memory: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Counted(items, memory)


def test_its_memory_is_free_once_it_is_gone_and_a_cycle_is_collected() -> None:
    class Item:
        counted: Counted[Item]

    memory = bytearray(8)
    item = Item()
    gone = weakref.ref(item)
    item.counted = Counted([item], memory)
    with pytest.raises(BufferError):
        memory.clear()
    del item
    gc.collect()
    assert gone() is None
    memory.clear()
