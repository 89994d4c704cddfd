"""PriorityQueue: heapq's order, and comparisons in Python that raise, switch threads, and use the queue."""

from __future__ import annotations

import heapq
import random
import threading
from typing import Any

import pytest
from waiting import Thread

from fairlead.sync import PriorityQueue

pytestmark = pytest.mark.ends_and_free


class Ranked:
    """Compares by rank alone; `before` runs in each comparison."""

    before: Any = None

    def __init__(self, rank: int, name: object = None) -> None:
        self.rank, self.name = rank, name

    def __lt__(self, other: Ranked) -> bool:
        if self.before is not None:
            self.before()
        return self.rank < other.rank


@pytest.mark.parametrize("seed", range(5))
def test_equal_objects_come_out_in_the_order_of_heapq(seed: int) -> None:
    dice = random.Random(seed)
    line: PriorityQueue[Ranked] = PriorityQueue()
    heap: list[Ranked] = []
    for number in range(400):
        if heap and dice.random() < 0.4:
            assert line.get_nowait() is heapq.heappop(heap)
        else:
            one = Ranked(dice.randrange(6), number)
            line.put(one)
            heapq.heappush(heap, one)
    while heap:
        assert line.peek() is heap[0]
        assert line.get_nowait() is heapq.heappop(heap)


def test_comparison_that_raises_puts_nothing_and_gets_nothing() -> None:
    line: PriorityQueue[Any] = PriorityQueue(4)
    for rank in (3, 1, 2):
        line.put(Ranked(rank))
    with pytest.raises(TypeError, match="not supported"):
        line.put("a word")
    assert line.statistics()[:6] == (3, 4, 0, 0, 0, 3)

    def fail() -> None:
        raise KeyError("comparing")

    Ranked.before = staticmethod(fail)
    try:
        with pytest.raises(KeyError):
            line.get_nowait()
    finally:
        Ranked.before = None
    line.put_nowait(Ranked(0))
    assert line.full()
    assert [line.get_nowait().rank for _ in range(4)] == [0, 1, 2, 3]


def test_comparison_may_put_and_get() -> None:
    line: PriorityQueue[Ranked] = PriorityQueue()
    extra = list(range(10, 20))

    def meddle() -> None:
        if extra:
            line.put_nowait(Ranked(extra.pop()))
        elif line.qsize() > 25:
            extra.clear()
            taken.append(line.get_nowait().rank)

    taken: list[int] = []
    for rank in range(20, 40):
        line.put(Ranked(rank))
    Ranked.before = staticmethod(meddle)
    try:
        for rank in range(10):
            line.put(Ranked(rank))
    finally:
        Ranked.before = None
    got = [line.get_nowait().rank for _ in range(line.qsize())]
    assert got == sorted(got)
    assert sorted(got + taken) == list(range(40))


def test_threads_that_switch_within_comparisons_lose_nothing() -> None:
    """Whoever finds the heap changed after a comparison looks again."""
    line: PriorityQueue[Ranked] = PriorityQueue()
    turn = threading.Barrier(2)
    first = [True, True]

    def meet() -> None:
        me = names.get(threading.get_ident())
        if me is not None and first[me]:
            first[me] = False
            turn.wait(30)  # both are within a comparison now, with the heap as it was

    names: dict[int, int] = {}
    for rank in (5, 6, 7, 8):
        line.put(Ranked(rank))

    def put(me: int) -> None:
        names[threading.get_ident()] = me
        line.put(Ranked(me))

    Ranked.before = staticmethod(meet)
    try:
        for one in [Thread(put, 0), Thread(put, 1)]:
            one.result()
    finally:
        Ranked.before = None
    assert first == [False, False]
    assert [line.get_nowait().rank for _ in range(6)] == [0, 1, 5, 6, 7, 8]
