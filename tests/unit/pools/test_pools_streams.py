"""What every kind of pool promises: many calls, for threads and for tasks, as multiprocessing does them."""

from __future__ import annotations

import asyncio
import gc
import itertools
import multiprocessing
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from poolkinds import Make
from pooltasks import add, announce_and_spin, identity, negative_raises, square, wait_for
from waiting import until

from fairlead.errors import UsageError
from fairlead.pools import ThreadPool
from fairlead.pools.executor.stream import Stream
from fairlead.pools.multiprocessing import Pool

pytestmark = pytest.mark.ends_and_free

# map and streams


@pytest.mark.parametrize("chunksize", [None, 1, 7, 1000])
def test_map_keeps_the_order_whatever_the_chunks(make: Make, chunksize: int | None) -> None:
    assert list(make().map(square, range(300), chunksize=chunksize)) == [n * n for n in range(300)]


def test_map_keeps_the_order_takes_several_iterables_and_is_an_iterator(make: Make, tmp_path: Path) -> None:
    assert list(make().map(add, [1, 2, 3], [10, 20])) == [11, 22]
    pool = make()
    results = pool.map(square, [1, 2, 3], chunksize=2)
    assert next(results) == 1
    assert results.results() == [4, 9]
    waits = pool.stream(wait_for, [str(tmp_path / "never")])
    assert bool(waits)
    assert not hasattr(waits, "__len__")  # which tqdm and rich would wait for
    waits.close()


def test_map_raises_in_the_place_of_the_item_and_goes_on(make: Make) -> None:
    results = make().map(negative_raises, [1, -2, 3], chunksize=3)
    assert next(results) == 1
    with pytest.raises(ValueError, match="-2"):
        next(results)
    assert list(results) == [3]


def test_map_is_done_whether_its_results_are_taken_or_not(make: Make) -> None:
    pool = make()
    pool.map(square, range(500))
    pool.shutdown()
    assert pool.statistics().queued == 0


def test_map_ends_with_its_time(several: Make, tmp_path: Path) -> None:
    results = several(max_workers=1).map(wait_for, [str(tmp_path / "never")], timeout=0.01)
    with pytest.raises(TimeoutError):
        next(results)


@pytest.mark.parametrize("ordered", [True, False])
def test_stream_takes_endless_input_no_further_than_its_window(make: Make, *, ordered: bool) -> None:
    last = -1

    def source() -> Iterator[int]:
        nonlocal last
        while True:
            last += 1
            yield last

    stream = make().stream(square, source(), ordered=ordered, window=10)
    found = []
    for number, result in enumerate(itertools.islice(stream, 200)):
        assert last <= number + 10
        found.append(result)
    if ordered:
        assert found == [n * n for n in range(200)]
    else:
        assert len(set(found)) == 200
    stream.close()


def test_stream_reads_on_up_to_its_window_as_results_are_taken() -> None:
    read, go_on = [], threading.Event()

    def source() -> Iterator[int]:
        for number in itertools.count():
            read.append(number)
            yield number

    def waits_from_five_on(number: int) -> int:
        assert number < 5 or go_on.wait(60)
        return number

    with ThreadPool(1) as pool:
        stream = pool.stream(waits_from_five_on, source(), window=10, chunksize=1)
        assert [next(stream) for _ in range(5)] == list(range(5))
        with pytest.raises(TimeoutError):
            stream.next(0)
        assert read == list(range(5 + 10))
        go_on.set()
        stream.close()


def test_stream_raises_what_its_input_raised_behind_the_results_before(make: Make) -> None:
    def broken() -> Iterator[int]:
        yield from (1, 2)
        raise LookupError("source")

    stream = make().stream(square, broken())
    assert [next(stream), next(stream)] == [1, 4]
    with pytest.raises(LookupError, match="source"):
        next(stream)
    with pytest.raises(StopIteration):
        next(stream)


def wait_in_vain(stream: Stream[Any]) -> None:
    """In a frame of its own, which holds the stream no longer than that."""
    with pytest.raises(TimeoutError):
        stream.next(0.01)


def test_stream_let_go_of_cancels_what_is_under_way_and_first_what_a_worker_would_begin_next(
    several: Make, tmp_path: Path
) -> None:
    pool = several(max_workers=1)
    stream = pool.stream(announce_and_spin, itertools.repeat(str(tmp_path / "begun")), chunksize=1)
    wait_in_vain(stream)
    until((tmp_path / "begun").exists)
    running, *queued = [chunk.future for chunk in stream._chunks]
    cancelled: list[Any] = []
    for future in (running, *queued):
        future.add_done_callback(cancelled.append)
    del stream
    gc.collect()
    assert cancelled == [*queued, running]
    assert pool.submit(square, 3).result() == 9


def test_stream_serves_tasks_and_takes_asynchronous_input(make: Make) -> None:
    async def numbers() -> AsyncIterator[int]:
        for number in range(100):
            yield number

    async def main() -> tuple[list[int], list[int], list[int]]:
        pool = make()
        ordered = [result async for result in pool.stream(square, range(100))]
        unordered = [result async for result in pool.stream(square, range(100), ordered=False)]
        asynchronous = [result async for result in pool.stream(square, numbers())]
        return ordered, unordered, asynchronous

    ordered, unordered, asynchronous = asyncio.run(main())
    assert ordered == asynchronous == sorted(unordered) == [n * n for n in range(100)]


def test_progress_counts_every_item_to_its_end(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    class Bar:
        done = 0
        closed = False

        def update(self, n: int) -> None:
            self.done += n

        def close(self) -> None:
            self.closed = True

    bar = Bar()
    assert sum(make().map(identity, range(50), progress=bar)) == 1225
    assert (bar.done, bar.closed) == (50, True)
    assert len(make().map(identity, range(50), progress=True).results()) == 50
    assert "50/50" in capsys.readouterr().out
    made: list[tuple[Any, Any]] = []

    class Made(Bar):
        def __init__(self, *, total: int | None) -> None:
            made.append((self, total))

    assert len(make().map(identity, range(50), progress=Made).results()) == 50
    assert len(list(make().stream(identity, iter(range(50)), progress=partial(Made)))) == 50
    assert [(bar.done, bar.closed, total) for bar, total in made] == [(50, True, 50), (50, True, None)]
    with pytest.raises(UsageError, match="progress must be True, a bar"):
        make().map(identity, [], progress=lambda total: total)


# as multiprocessing's pool


def test_apply_and_its_kin_do_as_multiprocessings(make: Make) -> None:
    pool = Pool(over=make())
    assert pool.apply(add, (1,), {"b": 2}) == 3
    assert pool.apply_async(add, (1, 2)).get(30) == 3
    assert pool.map_async(square, range(10)).get() == [n * n for n in range(10)]
    assert pool.map_async(square, []).get() == []
    assert pool.starmap(add, [(1, 2), (3, 4)]) == [3, 7]
    assert pool.starmap_async(add, [(1, 2)], chunksize=1).get() == [3]
    assert list(pool.imap(square, range(5))) == [0, 1, 4, 9, 16]
    assert sorted(pool.imap_unordered(square, range(5), chunksize=2)) == [0, 1, 4, 9, 16]
    pool = Pool(over=make())
    with pytest.raises(ValueError, match="close"):
        pool.join()
    pool.close()
    pool.join()


def test_async_results_say_how_they_are(several: Make, tmp_path: Path) -> None:
    pool = Pool(over=several())
    result = pool.apply_async(wait_for, (str(tmp_path / "go"),))
    assert not result.ready()
    with pytest.raises(ValueError, match="not ready"):
        result.successful()
    with pytest.raises(multiprocessing.TimeoutError):
        result.get(0.01)
    (tmp_path / "go").touch()
    result.wait()
    assert result.ready()
    assert result.successful()
    failed = pool.apply_async(negative_raises, (-1,))
    failed.wait()
    assert not failed.successful()


def test_callbacks_are_called_with_the_result_or_the_error(make: Make) -> None:
    pool = Pool(over=make())
    told: list[Any] = []
    pool.apply_async(square, (3,), callback=told.append).wait()
    pool.apply_async(negative_raises, (-1,), error_callback=told.append).wait()
    pool.map_async(square, [1, 2], callback=told.append).wait()
    until(lambda: len(told) == 3)
    assert told[0] == 9
    assert isinstance(told[1], ValueError)
    assert told[2] == [1, 4]


def test_imap_raises_in_place_and_waits_no_longer_than_its_timeout(several: Make, tmp_path: Path) -> None:
    pool = Pool(over=several())
    found = pool.imap(negative_raises, [1, -1, 2])
    assert found.next() == 1
    with pytest.raises(ValueError, match="-1"):
        found.next()
    assert found.next(timeout=30) == 2
    with pytest.raises(StopIteration):
        found.next()
    with pytest.raises(multiprocessing.TimeoutError):
        pool.imap(wait_for, [str(tmp_path / "never")]).next(timeout=0.01)
