"""How far a stream reads ahead: by items, and by what they weigh."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from poolkinds import Make
from pooltasks import square, wait_for
from waiting import until

from fairlead.pools.executor import chunking
from fairlead.pools.executor.chunking import ChunkSizes, Paces, StreamChunk
from fairlead.pools.executor.stream import Stream

pytestmark = pytest.mark.ends_and_free

LARGE = 1 << 20


class Source:
    """Counts what was read of it and what was taken of the results."""

    def __init__(self, items: Iterator[Any]) -> None:
        self.items = items
        self.read = self.taken = self.most = 0

    def __iter__(self) -> Iterator[Any]:
        for item in self.items:
            self.read += 1
            self.most = max(self.most, self.read - self.taken)
            yield item

    def take(self, stream: Stream[Any]) -> None:
        for _ in stream:
            self.taken += 1


def test_large_items_are_read_ahead_by_their_bytes(make: Make) -> None:
    source = Source(bytes(LARGE) for _ in range(100))
    pool = make()
    source.take(pool.stream(len, source))
    assert source.taken == 100
    assert source.most <= chunking.AHEAD_BYTES // LARGE + chunking.FOR_EACH_WORKER * pool.workers


def test_large_results_wait_by_their_bytes(several: Make) -> None:
    pool = several(max_workers=2)
    source = Source(iter([LARGE] * 100))
    stream = pool.stream(bytes, source)
    for taken in range(1, 101):
        assert len(next(stream)) == LARGE
        until(lambda: pool.statistics().running + pool.statistics().queued == 0)
        source.taken = taken
    assert source.most <= chunking.AHEAD_BYTES // LARGE + chunking.FOR_EACH_WORKER * pool.workers


def test_many_small_items_behind_a_slow_one_are_read_ahead_a_little(keeping: Make, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    pool = keeping(max_workers=2)

    def items() -> Iterator[str]:
        yield str(gate)
        gate_too = str(tmp_path)  # which is there
        for _ in range(1_000_000):
            yield gate_too

    source = Source(items())
    stream = pool.stream(wait_for, source)
    stream._fill()
    for _ in range(50):
        until(lambda: len(stream._under_way) <= 1)
        stream._fill()
    assert source.read <= chunking.FOR_EACH_WORKER * 2 * chunking.MOST_READ
    gate.touch()
    assert next(stream) == str(gate)
    stream.close()


def sizes(**given: Any) -> ChunkSizes:
    engine = SimpleNamespace(call_cost_s=100e-6, sends=True)
    pool: Any = SimpleNamespace(workers=2, _engine=engine, _paces=given.pop("paces", Paces()))
    return ChunkSizes(pool, square, **{"fixed": None, "window": None, "total": None, **given})


def landed(chosen: ChunkSizes, length: int, *, out: int = 0, back: int = 0, ns: int = 50) -> None:
    chunk = StreamChunk([0] * length)
    chunk.calls.bytes_out, chunk.calls.bytes_in = out * length, back * length
    chunk.future.set_result(([0] * length, ns * length))
    chosen.landed(chunk)


def test_sizes_follow_time_bytes_and_what_was_asked_for() -> None:
    chosen = sizes()
    for _ in range(10):
        landed(chosen, chosen.now)
    assert chosen.now == chunking.MOST_READ
    assert chosen.room(0) == chosen.room(7 * chunking.MOST_READ) == chunking.MOST_READ
    assert chosen.room(8 * chunking.MOST_READ) == 0
    landed(chosen, chosen.now, back=1 << 16)
    assert chosen.now == chunking.CHUNK_BYTES >> 16
    assert chosen.room(8 * chosen.now - 5) == 5
    landed(chosen, chosen.now, out=1 << 30)
    assert (chosen.now, chosen.room(3), chosen.room(4)) == (1, 1, 0)  # two for each worker in any case
    for _ in range(40):
        landed(chosen, chosen.now)
    assert chosen.now == chunking.MOST_READ
    every = sizes(total=8_000_000)
    for _ in range(20):
        landed(every, every.now)
    assert every.now == 20_001  # ten times what a task costs
    assert sizes(total=80).now == 1


def test_given_sizes_are_kept_whatever_items_weigh() -> None:
    chosen = sizes(fixed=10)
    landed(chosen, 10, out=1 << 30)
    assert (chosen.now, chosen.room(30), chosen.room(40)) == (10, 10, 0)
    chosen = sizes(window=3)
    landed(chosen, 1, out=1 << 30)
    assert [chosen.room(ahead) for ahead in (0, 2, 3)] == [1, 1, 0]


def test_chunks_are_as_large_at_once_as_earlier_calls_of_the_function_were_quick() -> None:
    paces = Paces()
    paces.note(square, 1e-6)
    for total, item, expected in (
        (1501, 1, 751),  # one for each worker
        (100_000, 1, 1001),  # ten times what a task costs
        (None, 1, chunking.MOST_READ),
        (4000, bytes(chunking.CHUNK_BYTES // 3), 2),
    ):
        chosen = sizes(paces=paces, total=total)
        assert chosen.now == 1  # until it is known how large an item is
        chosen.sent(item, star=False)
        assert chosen.now == expected
    for unknown in (sizes(), sizes(paces=paces, fixed=1)):
        unknown.sent(1, star=False)
        assert unknown.now == 1


def test_pace_of_a_function_that_cannot_be_a_key_is_not_known() -> None:
    class Odd:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self) -> None: ...

    paces = Paces()
    paces.note(Odd(), 1.0)
    assert paces.of(Odd()) is None


def test_item_without_a_size_is_sent(make: Make) -> None:
    assert list(make().stream(type, [Sizeless()])) == [Sizeless]


class Sizeless:
    def __sizeof__(self) -> int:
        raise ValueError("none")
