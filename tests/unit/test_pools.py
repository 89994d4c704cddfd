"""What every kind of pool promises."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import copy
import gc
import itertools
import multiprocessing
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pooltasks import (
    Odd,
    add,
    announce_and_spin,
    fail_with,
    identity,
    negative_raises,
    raise_odd,
    refuse,
    remember,
    remembered,
    spin,
    spin_below,
    square,
    wait_for,
)
from waiting import until

from fairlead import errors
from fairlead.pools import Pool, ProcessPool, SequentialPool, ThreadPool
from fairlead.pools.stream import Stream

KINDS: dict[str, Callable[..., Pool]] = {
    "sequential": SequentialPool,
    "threads": lambda **given: ThreadPool(given.pop("workers", 2), **given),
    "processes": lambda **given: ProcessPool(given.pop("workers", 2), **given),
}
CONCURRENT = [kind for kind in KINDS if kind != "sequential"]

Make = Callable[..., Pool]


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    yield from making(KINDS[request.param])


@pytest.fixture(params=CONCURRENT)
def several(request: pytest.FixtureRequest) -> Iterator[Make]:
    yield from making(KINDS[request.param])


def making(kind: Make) -> Iterator[Make]:
    """Makes pools, and ends them."""
    threads = threading.active_count()
    made: list[Pool] = []

    def make(**given: Any) -> Pool:
        made.append(kind(**given))
        return made[-1]

    yield make
    for pool in made:
        pool.terminate()
        pool.join()
    until(lambda: threading.active_count() <= threads)


# as an executor


def test_submit_gives_the_future_of_a_result(make: Make) -> None:
    pool = make()
    assert pool.submit(add, 2, b=3).result() == 5
    assert isinstance(pool, concurrent.futures.Executor)


def test_submit_gives_the_exception_that_the_function_raised(make: Make) -> None:
    future = make().submit(raise_odd, 7)
    with pytest.raises(Odd, match="odd 7") as caught:
        future.result()
    assert (caught.value.code, caught.value.hint) == (7, "as it was")


@pytest.mark.parametrize(
    "error",
    [
        OSError(2, "none", "file"),
        KeyError("k"),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"),
        SystemExit(3),
        KeyboardInterrupt(),
        ExceptionGroup("two", [ValueError(1), OSError(2, "b")]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_exceptions_of_the_standard_library_come_as_they_were(several: Make, error: BaseException) -> None:
    found = several().submit(fail_with, error).exception()
    assert (type(found), str(found), repr(found)) == (type(error), str(error), repr(error))


def test_wait_and_as_completed_know_its_futures(make: Make) -> None:
    pool = make()
    futures = [pool.submit(square, n) for n in range(20)]
    done, left = concurrent.futures.wait(futures)
    assert (len(done), len(left)) == (20, 0)
    assert {future.result() for future in concurrent.futures.as_completed(futures)} == {
        n * n for n in range(20)
    }


def test_submit_after_shutdown_is_refused(make: Make) -> None:
    pool = make()
    pool.shutdown()
    with pytest.raises(errors.PoolClosed, match="takes no more tasks"):
        pool.submit(add, 1)
    with pytest.raises(errors.PoolClosed), pool:
        pass


def test_shutdown_finishes_what_was_taken(make: Make) -> None:
    pool = make()
    futures = [pool.submit(square, n) for n in range(50)]
    pool.shutdown()
    assert [future.result(0) for future in futures] == [n * n for n in range(50)]


def test_shutdown_can_cancel_what_has_not_begun(several: Make, tmp_path: Path) -> None:
    pool = several(workers=1)
    first = pool.submit(wait_for, str(tmp_path / "go"))
    until(first.running)
    others = [pool.submit(square, n) for n in range(10)]
    pool.shutdown(wait=False, cancel_futures=True)
    assert all(future.cancelled() for future in others)
    (tmp_path / "go").touch()
    assert first.result() == str(tmp_path / "go")


def test_pool_that_nobody_can_reach_finishes_its_tasks_and_ends() -> None:
    threads = threading.active_count()
    pool = ThreadPool(2)
    future = pool.submit(square, 3)
    del pool
    gc.collect()
    assert future.result() == 9
    until(lambda: threading.active_count() <= threads)


def test_ended_future_holds_neither_function_nor_arguments() -> None:
    class Argument:
        pass

    pool = ThreadPool(1)
    argument = Argument()
    gone = weakref.ref(argument)
    future = pool.submit(lambda _: None, argument)
    future.result()
    del argument
    until(lambda: gone() is None)
    pool.shutdown()


def test_with_block_left_by_ctrl_c_cancels_and_stops(several: Make, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    with pytest.raises(KeyboardInterrupt), several(workers=1) as pool:  # noqa: PT012
        endless = pool.submit(announce_and_spin, str(begun))
        queued = pool.submit(square, 2)
        until(begun.exists)
        raise KeyboardInterrupt
    assert endless.cancelled()
    assert queued.cancelled()


# map and streams


@pytest.mark.parametrize("chunksize", [None, 1, 7, 1000])
def test_map_keeps_the_order_whatever_the_chunks(make: Make, chunksize: int | None) -> None:
    assert list(make().map(square, range(300), chunksize=chunksize)) == [n * n for n in range(300)]


def test_map_takes_several_iterables_and_ends_with_the_shortest(make: Make) -> None:
    assert list(make().map(add, [1, 2, 3], [10, 20])) == [11, 22]


def test_map_is_also_multiprocessings(make: Make) -> None:
    results = make().map(square, [1, 2, 3], 2)
    assert results == [1, 4, 9]
    assert len(results) == 3
    assert results[-1] == 9
    assert list(results) == list(results) == [1, 4, 9]


def test_map_raises_in_the_place_of_the_item_and_goes_on(make: Make) -> None:
    results = make().map(negative_raises, [1, -2, 3], chunksize=3)
    assert next(results) == 1
    with pytest.raises(ValueError, match="-2"):
        next(results)
    assert next(results) == 3
    with pytest.raises(StopIteration):
        next(results)


def test_map_is_done_whether_its_results_are_taken_or_not(make: Make) -> None:
    pool = make()
    pool.map(square, range(500))
    pool.shutdown()
    assert pool.statistics().queued == 0


def test_map_with_an_iterable_that_raises_raises_at_once(make: Make) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise LookupError("source")

    pool = make()
    with pytest.raises(LookupError, match="source"):
        pool.map(square, broken())
    assert pool.submit(square, 2).result() == 4


def test_map_ends_with_its_time(several: Make, tmp_path: Path) -> None:
    results = several(workers=1).map(wait_for, [str(tmp_path / "never")], timeout=0.01)
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


def test_stream_let_go_of_cancels_what_is_under_way(several: Make, tmp_path: Path) -> None:
    pool = several(workers=1)
    stream = pool.stream(announce_and_spin, itertools.repeat(str(tmp_path / "begun")), chunksize=1)
    wait_in_vain(stream)
    until((tmp_path / "begun").exists)
    del stream
    gc.collect()
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


def test_progress_is_told_of_every_item_and_closed(make: Make) -> None:
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


def test_progress_by_rich_goes_to_its_end(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(make().map(identity, range(50), progress=True)) == 50
    assert "50/50" in capsys.readouterr().out


# as multiprocessing's pool


def test_apply_and_its_kin_do_as_multiprocessings(make: Make) -> None:
    pool = make()
    assert pool.apply(add, (1,), {"b": 2}) == 3
    assert pool.apply_async(add, (1, 2)).get(30) == 3
    assert pool.map_async(square, range(10)).get() == [n * n for n in range(10)]
    assert pool.map_async(square, []).get() == []
    assert pool.starmap(add, [(1, 2), (3, 4)]) == [3, 7]
    assert pool.starmap_async(add, [(1, 2)], chunksize=1).get() == [3]
    assert list(pool.imap(square, range(5))) == [0, 1, 4, 9, 16]
    assert sorted(pool.imap_unordered(square, range(5), chunksize=2)) == [0, 1, 4, 9, 16]


def test_async_results_say_how_they_are(several: Make, tmp_path: Path) -> None:
    pool = several()
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
    pool = make()
    told: list[Any] = []
    pool.apply_async(square, (3,), callback=told.append).wait()
    pool.apply_async(negative_raises, (-1,), error_callback=told.append).wait()
    pool.map_async(square, [1, 2], callback=told.append).wait()
    until(lambda: len(told) == 3)
    assert told[0] == 9
    assert isinstance(told[1], ValueError)
    assert told[2] == [1, 4]


def test_imap_raises_in_place_and_waits_no_longer_than_told(several: Make, tmp_path: Path) -> None:
    pool = several()
    found = pool.imap(negative_raises, [1, -1, 2])
    assert found.next() == 1
    with pytest.raises(ValueError, match="-1"):
        found.next()
    assert found.next(timeout=30) == 2
    with pytest.raises(StopIteration):
        found.next()
    with pytest.raises(multiprocessing.TimeoutError):
        pool.imap(wait_for, [str(tmp_path / "never")]).next(timeout=0.01)


def test_join_wants_a_closed_pool(make: Make) -> None:
    pool = make()
    with pytest.raises(ValueError, match="close"):
        pool.join()
    pool.close()
    pool.join()


# tasks of event loops


def test_run_gives_the_result_to_a_task(make: Make) -> None:
    pool = make()

    async def main() -> list[int]:
        return await asyncio.gather(*(pool.run(square, n) for n in range(20)))

    assert asyncio.run(main()) == [n * n for n in range(20)]


def test_run_cancelled_stops_the_call(several: Make, tmp_path: Path) -> None:
    pool = several(workers=1)
    begun = tmp_path / "begun"

    async def main() -> None:
        task = asyncio.create_task(pool.run(announce_and_spin, str(begun)))
        while not begun.exists():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert pool.submit(square, 3).result() == 9


# time-outs, cancelling, retries


def test_task_longer_than_its_timeout_is_stopped_and_the_pool_lives(several: Make) -> None:
    pool = several(workers=1)
    future = pool.with_options(timeout=0.05).submit(spin)
    with pytest.raises(errors.TaskTimeout, match=r"longer than 0\.05 s"):
        future.result()
    assert pool.submit(square, 3).result() == 9
    numbers = pool.statistics()
    assert (numbers.timed_out, numbers.restarts, numbers.done) == (1, 1, 1)


def test_retries_run_a_task_again_whose_time_was_up(several: Make, tmp_path: Path) -> None:
    pool = several(workers=1)
    attempts = tmp_path / "attempts"
    assert pool.with_options(timeout=0.3, retries=2).submit(spin_below, str(attempts), 3).result() == 3
    assert attempts.read_bytes() == b"..."
    assert pool.statistics().retried == 2


def test_cancel_stops_a_task_that_runs(several: Make, tmp_path: Path) -> None:
    pool = several(workers=1)
    future = pool.submit(announce_and_spin, str(tmp_path / "begun"))
    until((tmp_path / "begun").exists)
    assert future.cancel()
    assert future.cancelled()
    assert future.cancel()
    with pytest.raises(concurrent.futures.CancelledError):
        future.result()
    assert pool.submit(square, 3).result() == 9


def test_cancel_of_a_queued_task_keeps_it_from_beginning(several: Make, tmp_path: Path) -> None:
    pool = several(workers=1)
    first = pool.submit(wait_for, str(tmp_path / "go"))
    queued = pool.submit(square, 3)
    assert queued.cancel()
    (tmp_path / "go").touch()
    first.result()
    done, _ = concurrent.futures.wait([queued], timeout=30)
    assert done == {queued}


def test_cancel_of_an_ended_task_says_no(make: Make) -> None:
    future = make().submit(square, 3)
    future.result()
    assert not future.cancel()


def test_terminate_ends_everything(several: Make, tmp_path: Path) -> None:
    pool = several(workers=1)
    running = pool.submit(announce_and_spin, str(tmp_path / "begun"))
    queued = [pool.submit(square, n) for n in range(5)]
    until((tmp_path / "begun").exists)
    pool.terminate()
    pool.join()
    assert running.cancelled()
    assert all(future.cancelled() for future in queued)


# workers


def test_initializer_is_called_once_for_each_worker(make: Make) -> None:
    pool = make(initializer=remember, initargs=(411,))
    assert 411 in pool.submit(remembered).result()


def test_initializer_that_raises_breaks_the_pool_and_is_shown(make: Make) -> None:
    pool = make(initializer=refuse)
    with pytest.raises(concurrent.futures.BrokenExecutor, match="the initializer refuses") as caught:
        pool.submit(square, 2).result()
    assert isinstance(caught.value, errors.BrokenPool)
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(errors.BrokenPool, match="the initializer refuses"):
        pool.submit(square, 2)


def test_workers_are_replaced_after_so_many_tasks(several: Make) -> None:
    pool = several(workers=1, max_tasks_per_worker=3)
    assert [pool.submit(square, n).result() for n in range(9)] == [n * n for n in range(9)]
    assert pool.statistics().restarts in (2, 3)


def test_workers_are_made_as_they_are_needed(several: Make) -> None:
    pool = several(workers=4)
    for n in range(5):
        assert pool.submit(square, n).result() == n * n
    assert pool.statistics().started == 1


@pytest.mark.parametrize("workers", [0, -1])
def test_number_of_workers_must_be_positive(several: Make, workers: int) -> None:
    with pytest.raises(errors.UsageError, match="workers must be at least 1"):
        several(workers=workers)


@pytest.mark.parametrize(
    "options", [{"timeout": 0}, {"timeout": float("nan")}, {"retries": -1}], ids=lambda given: str(given)
)
def test_options_out_of_range_are_refused(make: Make, options: dict[str, Any]) -> None:
    with pytest.raises(errors.UsageError):
        make().with_options(**options)


def test_statistics_count_what_was_done(make: Make) -> None:
    pool = make()
    for n in range(10):
        pool.submit(square, n).result()
    numbers = pool.statistics()
    assert (numbers.done, numbers.queued, numbers.running) == (10, 0, 0)
    assert numbers.run_time_s > 0
    with pytest.raises(AttributeError):
        numbers.done = 3  # type: ignore[misc]


# in threads


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="default")
OTHER: contextvars.ContextVar[str] = contextvars.ContextVar("OTHER", default="default")


def test_context_is_seen_as_it_was_at_submission_if_asked_for() -> None:
    def both() -> tuple[str, str]:
        return VARIABLE.get(), OTHER.get()

    VARIABLE.set("set")
    OTHER.set("set")
    with ThreadPool(1) as pool:
        assert pool.submit(both).result() == ("default", "default")
        assert pool.with_options(context=True).submit(both).result() == ("set", "set")
        assert pool.with_options(context=[VARIABLE]).submit(both).result() == ("set", "default")


def test_task_that_waits_for_tasks_of_its_own_pool_does_not_deadlock_it() -> None:
    with ThreadPool(1) as pool:

        def sum_to(n: int) -> int:
            return n + pool.submit(sum_to, n - 1).result() if n else 0

        assert pool.submit(sum_to, 20).result() == 210


def test_thread_inside_a_call_into_c_is_replaced_and_ends_when_it_comes_back() -> None:
    threads = threading.active_count()
    gate = threading.Lock()
    gate.acquire()
    pool = ThreadPool(1)
    with pytest.raises(errors.TaskTimeout):
        pool.with_options(timeout=0.05).submit(gate.acquire).result()
    assert pool.submit(square, 3).result() == 9
    pool.shutdown()
    gate.release()
    until(lambda: threading.active_count() <= threads)


def test_pool_cannot_be_sent() -> None:
    with ThreadPool(1) as pool, pytest.raises(TypeError, match="make one there"):
        copy.copy(pool)
