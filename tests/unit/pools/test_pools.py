"""What every kind of pool promises: an executor, and its workers."""

from __future__ import annotations

import asyncio
import concurrent.futures
import copy
import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import pooltasks
import pytest
from endings import collect
from poolkinds import KINDS, Make
from pooltasks import (
    Odd,
    add,
    announce_and_spin,
    fail_with,
    raise_odd,
    refuse,
    remember,
    remembered,
    square,
    wait_for,
)
from waiting import until

from fairlead import errors
from fairlead.pools import ThreadPool
from fairlead.pools import pool as make_pool

pytestmark = pytest.mark.pypy

# as an executor


def test_submit_returns_a_future_of_the_result_or_of_what_was_raised(make: Make) -> None:
    pool = make()
    assert pool.submit(add, 2, b=3).result() == 5
    assert isinstance(pool, concurrent.futures.Executor)
    future = make().submit(raise_odd, 7)
    with pytest.raises(Odd, match="odd 7") as caught:
        future.result()
    assert (caught.value.code, caught.value.hint) == (7, "as it was")


async def fail_in_a_coroutine(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


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
    pool = several()
    functions = {"async": (fail_with, fail_in_a_coroutine)}
    for function in functions.get(pool.statistics().kind, (fail_with,)):
        found = pool.submit(function, error).exception()
        assert (type(found), str(found), repr(found)) == (type(error), str(error), repr(error))
    assert pool.submit(square, 3).result() == 9


def test_wait_and_as_completed_take_its_futures_and_those_of_others(several: Make, tmp_path: Path) -> None:
    with concurrent.futures.ThreadPoolExecutor(2) as theirs:
        ours = several()
        futures = [pool.submit(square, n) for n in range(5) for pool in (ours, theirs)]
        found = sorted(future.result() for future in concurrent.futures.as_completed(futures, timeout=40))
        assert found == sorted(2 * [0, 1, 4, 9, 16])
        late = [pool.submit(wait_for, str(tmp_path / "go")) for pool in (ours, theirs)]
        done, left = concurrent.futures.wait([*futures, *late], 40, concurrent.futures.FIRST_COMPLETED)
        assert set(futures) <= done
        assert left == set(late)
        (tmp_path / "go").touch()
        assert concurrent.futures.wait(late, 40).not_done == set()


def test_shutdown_finishes_what_was_taken_and_takes_no_more(make: Make) -> None:
    pool = make()
    futures = [pool.submit(square, n) for n in range(50)]
    pool.shutdown()
    assert [future.result(0) for future in futures] == [n * n for n in range(50)]
    pool = make()
    pool.shutdown()
    with pytest.raises(errors.PoolClosedError, match="takes no more tasks"):
        pool.submit(add, 1)
    with pytest.raises(errors.PoolClosedError), pool:
        pass


def test_shutdown_can_cancel_what_has_not_begun(several: Make, tmp_path: Path) -> None:
    pool = several(max_workers=1)
    first = pool.submit(wait_for, str(tmp_path / "go"))
    until(first.running)
    others = [pool.submit(square, n) for n in range(10)]
    pool.shutdown(wait=False, cancel_futures=True)
    assert all(future.cancelled() for future in others)
    (tmp_path / "go").touch()
    assert first.result() == str(tmp_path / "go")


def test_unreachable_pool_and_ended_futures_hold_nothing() -> None:
    threads = threading.active_count()
    pool = ThreadPool(2)
    future = pool.submit(square, 3)
    del pool
    gc.collect()
    assert future.result() == 9
    until(lambda: threading.active_count() <= threads)

    class Argument:
        pass

    pool = ThreadPool(1)
    argument = Argument()
    gone = weakref.ref(argument)
    future = pool.submit(lambda _: None, argument)
    future.result()
    del argument
    until(lambda: collect() or gone() is None)
    pool.shutdown()


def test_with_block_left_by_ctrl_c_cancels_and_stops(several: Make, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    with pytest.raises(KeyboardInterrupt), several(max_workers=1) as pool:  # noqa: PT012
        endless = pool.submit(announce_and_spin, str(begun))
        queued = pool.submit(square, 2)
        until(begun.exists)
        raise KeyboardInterrupt
    assert endless.cancelled()
    assert queued.cancelled()


# workers


def test_initializer_is_called_once_for_each_worker(make: Make) -> None:
    pool = make(initializer=remember, initargs=(411,))
    assert 411 in pool.submit(remembered).result()


def test_initializer_that_raises_breaks_the_pool_and_is_shown(make: Make) -> None:
    pool = make(initializer=refuse)
    with pytest.raises(concurrent.futures.BrokenExecutor, match="the initializer refuses") as caught:
        pool.submit(square, 2).result()
    assert isinstance(caught.value, errors.BrokenPoolError)
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(errors.BrokenPoolError, match="the initializer refuses"):
        pool.submit(square, 2)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in {"threads", "processes"}])
def test_workers_are_replaced_after_so_many_tasks(kind: str) -> None:
    pool = KINDS[kind](max_workers=1, max_tasks_per_child=3)
    assert [pool.submit(square, n).result() for n in range(9)] == [n * n for n in range(9)]
    assert pool.statistics().restarts in (2, 3)
    pool.shutdown()


def test_workers_are_made_as_they_are_needed(several: Make) -> None:
    pool = several(max_workers=4)
    for n in range(5):
        assert pool.submit(square, n).result() == n * n
    assert pool.statistics().started == 1


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"max_workers": 0}, errors.UsageError, "max_workers must be at least 1"),
        ({"max_workers": -1}, errors.UsageError, "max_workers must be at least 1"),
        ({"initializer": "set up"}, TypeError, "initializer must be callable"),
        ({"finalizer": "clean up"}, TypeError, "finalizer must be callable"),
    ],
)
def test_pool_of_what_cannot_be_is_refused(
    make: Make, given: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        make(**given)


@pytest.mark.parametrize("kind", KINDS)
def test_pool_of_any_kind_is_made_by_its_name_and_a_number(kind: str) -> None:
    with make_pool(kind, 2) as pool:
        assert pool.submit(square, 3).result() == 9
        assert pool.workers == (1 if kind == "sequential" else 2)


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


# context


async def variable_of_a_coroutine(_: None = None) -> str:
    return pooltasks.VARIABLE.get()


def test_context_is_seen_as_it_was_at_submission_if_asked_for(several: Make) -> None:
    pool = several()
    one, other = pooltasks.VARIABLE.set("set"), pooltasks.OTHER.set("set")
    functions = {"async": (pooltasks.variable, variable_of_a_coroutine)}
    try:
        for function in functions.get(pool.statistics().kind, (pooltasks.variable,)):
            assert pool.submit(function).result() == "default"
            assert pool.with_options(context=True).submit(function).result() == "set"
            assert pool.with_options(context=[pooltasks.VARIABLE]).submit(function).result() == "set"
            assert pool.with_options(context=[pooltasks.OTHER]).submit(function).result() == "default"
            seen = pool.with_options(context=True).map(pooltasks.variable, [None] * 500)
            assert set(seen) == {"set"}  # most of them are submitted as others end
    finally:
        pooltasks.VARIABLE.reset(one)
        pooltasks.OTHER.reset(other)


# in threads


def test_task_waits_for_tasks_of_its_own_pool_which_cannot_be_sent() -> None:
    with ThreadPool(1) as pool:

        def sum_to(n: int) -> int:
            return n + pool.submit(sum_to, n - 1).result() if n else 0

        assert pool.submit(sum_to, 20).result() == 210
    with ThreadPool(1) as pool, pytest.raises(TypeError, match="make one there"):
        copy.copy(pool)


def test_thread_inside_a_call_into_c_is_replaced_and_ends_when_it_comes_back() -> None:
    threads = threading.active_count()
    gate = threading.Lock()
    gate.acquire()
    pool = ThreadPool(1)
    with pytest.raises(errors.TaskTimeoutError):
        pool.with_options(timeout=0.05).submit(gate.acquire).result()
    assert pool.submit(square, 3).result() == 9
    pool.shutdown()
    gate.release()
    until(lambda: threading.active_count() <= threads)
