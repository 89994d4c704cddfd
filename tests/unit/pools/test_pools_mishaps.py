"""What goes wrong in a task, or around it, costs that task at most, in every kind of pool."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import threading
import time
from itertools import repeat
from pathlib import Path
from typing import Any

import poolmishaps
import pytest
from poolkinds import CONCURRENT, KINDS, Make
from pooltasks import Odd, negative_raises, raise_group, spin, square, wait_for
from waiting import Thread, until

from fairlead import errors
from fairlead.pools import AsyncPool, AutoPool, InterpreterPool, ProcessPool, SequentialPool, ThreadPool
from fairlead.pools.multiprocessing import Pool

pytestmark = pytest.mark.ends_and_free

# exceptions that are odd themselves


def outcome(future: Any) -> BaseException | None:
    error: BaseException | None = future.exception(40)
    return error


def test_exceptions_that_refuse_text_pickling_or_attributes_are_the_tasks(make: Make) -> None:
    pool = make()
    assert type(outcome(pool.submit(poolmishaps.fail_unspeakably))) is poolmishaps.Unspeakable
    with pytest.raises(poolmishaps.Unspeakable):
        list(pool.map(lambda _: poolmishaps.fail_unspeakably(), range(3)))
    assert pool.submit(square, 3).result() == 9
    assert pool.statistics().restarts == 0
    pool = make()
    error = outcome(pool.submit(poolmishaps.fail_unpicklably))
    assert type(error) is poolmishaps.Unpicklable
    assert error.args == (5,)
    if pool.statistics().kind in {"processes", "interpreters"}:
        assert any("not to be sent" in note for note in error.__notes__)
    assert pool.submit(square, 3).result() == 9
    assert pool.statistics().restarts == 0
    pool = make()
    error = outcome(pool.submit(poolmishaps.fail_frozen))
    assert error == poolmishaps.Frozen(5)


def test_group_with_a_member_that_cannot_be_sent_comes_with_that_ones_stand_in(make: Make) -> None:
    found = make().submit(raise_group).exception()
    assert isinstance(found, ExceptionGroup)
    assert str(found).startswith("three")
    odd, inner, right = found.exceptions
    assert isinstance(odd, Odd)
    assert (odd.code, odd.hint) == (7, "as it was")
    assert isinstance(inner, ExceptionGroup)
    assert "Locked" in repr(inner.exceptions[0])
    assert repr(right) == "ValueError(3)"


def test_result_whose_pickling_exits_costs_its_task_only(several: Make) -> None:
    pool = several()
    if pool.statistics().kind not in {"processes", "interpreters"}:
        assert type(pool.submit(poolmishaps.make_exits).result()) is poolmishaps.Exits
        return
    assert isinstance(outcome(pool.submit(poolmishaps.make_exits)), errors.SerializationError | SystemExit)
    results = pool.map(lambda n: poolmishaps.make_exits() if n == 1 else n, range(3), chunksize=3)
    assert next(results) == 0
    with pytest.raises((errors.SerializationError, SystemExit)):
        next(results)
    assert next(results) == 2
    assert pool.statistics().restarts == 0


def test_argument_whose_pickling_exits_costs_its_task_only(several: Make) -> None:
    pool = several()
    sent = pool.statistics().kind in {"processes", "interpreters"}
    refused = errors.SerializationError if sent else type(None)
    for _ in range(3):  # to a worker that starts, to one that is idle, and again
        error = outcome(pool.submit(poolmishaps.identity_of, poolmishaps.Exits()))
        assert type(error) is refused
        assert error is None or "argument 1 of identity_of() cannot be sent to a worker: Sys" in str(error)
        assert type(outcome(pool.submit(poolmishaps.ExitsWhenSent()))) is refused
        assert pool.submit(square, 3).result(40) == 9

    async def main() -> list[Any]:
        bad = asyncio.wait_for(pool.run(poolmishaps.identity_of, poolmishaps.Exits()), 40)
        return [type(error) for error in await asyncio.gather(bad, return_exceptions=True)]

    assert (errors.SerializationError in asyncio.run(main())) == sent
    assert asyncio.run(asyncio.wait_for(pool.run(square, 3), 40)) == 9
    results = pool.map(poolmishaps.identity_of, [1, poolmishaps.Exits(), 2], chunksize=1)
    assert isinstance(next(results), int)
    if sent:
        with pytest.raises(errors.SerializationError):
            next(results)
    assert pool.statistics().restarts == 0


def test_exit_in_a_mapped_function_is_its_items_outcome(make: Make) -> None:
    pool = make()
    for results in (
        pool.map(poolmishaps.exit_at_two, range(4), chunksize=4),
        pool.map(poolmishaps.exit_at_two, range(4), chunksize=1),
        pool.stream(poolmishaps.exit_at_two, range(4)),
    ):
        assert [next(results), next(results)] == [0, 1]
        with pytest.raises(SystemExit, match="at two"):
            next(results)
        assert next(results) == 3
        with pytest.raises(StopIteration):
            next(results)
    found = []
    unordered = pool.stream(poolmishaps.exit_at_two, range(4), ordered=False)
    while True:
        try:
            found.append(next(unordered))
        except SystemExit:
            found.append(2)
        except StopIteration:
            break
    assert sorted(found) == [0, 1, 2, 3]
    assert pool.submit(square, 3).result() == 9


def test_ctrl_c_in_a_sequential_map_is_not_an_items_outcome() -> None:
    def interrupted(n: int) -> int:
        if n == 1:
            raise KeyboardInterrupt
        return n

    with pytest.raises(KeyboardInterrupt):
        SequentialPool().map(interrupted, range(3), chunksize=3)


# done-callbacks


def test_callback_that_raises_anything_harms_no_task(several: Make, tmp_path: Path) -> None:
    pool = several(max_workers=1)
    first = pool.submit(wait_for, str(tmp_path / "go"))
    futures = [pool.submit(square, n) for n in range(4)] + [pool.submit(poolmishaps.exit_now)]
    called: list[Any] = []
    for future in futures:
        future.add_done_callback(lambda _: called.append("first"))
        future.add_done_callback(lambda done: sys.exit(done.result()))
        future.add_done_callback(lambda _: called.append("last"))
    (tmp_path / "go").touch()
    done, left = concurrent.futures.wait([first, *futures], timeout=40)
    assert (len(done), len(left)) == (6, 0)
    until(lambda: len(called) == 10)
    assert pool.submit(square, 3).result(40) == 9
    pool.shutdown()


def test_callback_that_blocks_delays_no_timeout(several: Make) -> None:
    pool = several(max_workers=2)
    gate = threading.Event()
    try:
        blocked = pool.with_options(timeout=0.05).submit(spin)
        blocked.add_done_callback(lambda _: gate.wait(60))
        with pytest.raises(errors.TaskTimeoutError):
            blocked.result(40)
        if pool.statistics().kind != "async":  # whose callbacks of ended tasks have the loop
            other = pool.submit(square, 1)
            other.add_done_callback(lambda _: gate.wait(60))
            concurrent.futures.wait([other], 40)
        with pytest.raises(errors.TaskTimeoutError):
            pool.with_options(timeout=0.05).submit(spin).result(40)
    finally:
        gate.set()


@pytest.mark.parametrize("kind", [kind for kind in CONCURRENT if kind != "async"])
def test_callback_that_waits_for_its_pool_does_not_stop_it(kind: str, tmp_path: Path) -> None:
    pool = KINDS[kind](max_workers=1)
    found: list[int] = []
    first = pool.submit(wait_for, str(tmp_path / "go"))
    first.add_done_callback(lambda _: found.append(pool.submit(square, 3).result(40)))
    (tmp_path / "go").touch()
    until(lambda: found == [9])
    assert pool.submit(square, 2).result(40) == 4
    pool.shutdown()


# tasks that wait for their own pool


def waits(pool: ThreadPool) -> dict[str, Any]:
    def completed() -> list[int]:
        return sorted(
            one.result() for one in concurrent.futures.as_completed([pool.submit(square, n) for n in (1, 2)])
        )

    def waited() -> int:
        done, _ = concurrent.futures.wait([pool.submit(square, 2)])
        return done.pop().result()

    async def awaited() -> int:
        return await pool.run(square, 2)

    async def streamed() -> list[int]:
        return [one async for one in pool.stream(square, range(3))]

    return {
        "result": lambda: pool.submit(square, 2).result(),
        "timed result": lambda: pool.submit(square, 2).result(40),
        "exception": lambda: pool.submit(square, 2).exception(),
        "with a time-out": lambda: pool.with_options(timeout=40).submit(square, 2).result(),
        "starmap": lambda: Pool(over=pool).starmap(pow, [(2, 3)]),
        "apply_async": lambda: Pool(over=pool).apply_async(pow, (2, 3)).get(40),
        "map": lambda: list(pool.map(square, range(3))),
        "timed map": lambda: list(pool.map(square, range(3), timeout=40)),
        "stream": lambda: list(pool.stream(square, range(3))),
        "unordered stream": lambda: sorted(pool.stream(square, range(3), ordered=False)),
        "imap": lambda: Pool(over=pool).imap(square, range(3)).next(40),
        "wait": waited,
        "as_completed": completed,
        "run": lambda: asyncio.run(awaited()),
        "async for": lambda: asyncio.run(streamed()),
    }


@pytest.mark.parametrize("way", waits(ThreadPool(1)))
def test_task_that_waits_for_its_own_pool_goes_on(way: str) -> None:
    with ThreadPool(1) as pool:
        wait = waits(pool)[way]
        expected = wait()
        assert pool.submit(wait).result(40) == expected
        assert pool.submit(lambda: pool.submit(wait).result()).result(40) == expected


def test_pool_has_no_more_workers_than_it_may_once_its_tasks_have_waited() -> None:
    most = now = 0
    lock = threading.Lock()

    def count() -> None:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.001)
        with lock:
            now -= 1

    with ThreadPool(1) as pool:
        for _ in range(5):
            pool.submit(lambda: Pool(over=pool).starmap(pow, [(2, 3)])).result(40)
        until(lambda: pool.statistics().started <= 1)
        for future in [pool.submit(count) for _ in range(50)]:
            future.result(40)
    assert most == 1


@pytest.mark.parametrize("way", ["stream", "unordered stream", "starmap", "wait", "map"])
def test_coroutine_pool_refuses_a_wait_that_would_stop_its_loop(way: str) -> None:
    with AsyncPool(2) as pool:
        wait = waits(pool)[way]  # type: ignore[arg-type]
        future = pool.submit(wait)
        assert isinstance(future.exception(40), errors.DeadlockError | None)
        assert pool.submit(square, 3).result(40) == 9


def test_coroutine_streams_from_its_own_pool() -> None:
    with AsyncPool(1) as pool:

        async def squared(n: int) -> int:
            await asyncio.sleep(0)
            return n * n

        async def streamed() -> list[int]:
            return [one async for one in pool.stream(squared, range(3))]

        assert pool.submit(streamed).result(40) == [0, 1, 4]


# what is left


def test_with_block_left_after_a_maps_first_error_cancels_what_has_not_begun_and_first_what_would_be_next(
    several: Make, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    cancelled: list[object] = []
    with several(max_workers=1) as pool:
        results = pool.map(poolmishaps.fail_or_wait, [-1, *range(50)], repeat(str(gate)), chunksize=1)
        chunks = list(results._chunks)
        for chunk in chunks:
            chunk.future.add_done_callback(lambda future: future.cancelled() and cancelled.append(future))
        chunks[-1].future.add_done_callback(lambda _: gate.touch())
        with pytest.raises(ValueError, match="-1"):
            next(results)
    assert pool.statistics().done <= 2
    assert cancelled == [chunk.future for chunk in chunks if chunk.future.cancelled()]


def test_map_whose_error_was_gone_past_is_done_as_a_whole(make: Make) -> None:
    with make() as pool:
        results = pool.map(negative_raises, [-1, *range(50)], chunksize=1)
        with pytest.raises(ValueError, match="-1"):
            next(results)
        assert next(results) == 0
    assert list(results) == list(range(1, 50))


class Bar:
    closed = 0

    def update(self, n: int) -> None:
        pass

    def close(self) -> None:
        self.closed += 1


def test_bar_is_closed_when_its_map_is_left_by_an_error(make: Make) -> None:
    bar = Bar()
    with pytest.raises(ValueError, match="-1"), make() as pool:
        list(pool.map(negative_raises, [-1, 2], progress=bar))
    assert bar.closed == 1


def test_live_bar_does_not_outlive_an_error_and_goes_on_behind_it(
    make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    threads = threading.active_count()
    pool = make()
    results = pool.map(negative_raises, [-1, *range(9)], chunksize=1, progress=True)
    with pytest.raises(ValueError, match="-1"):
        next(results)
    pool.shutdown()
    until(lambda: threading.active_count() <= threads)  # rich's own has ended
    assert list(results) == list(range(9))
    assert "10/10" in capsys.readouterr().out


def test_options_add_up(make: Make) -> None:
    pool = make().with_options(timeout=3).with_options(retries=2).with_options(context=True)
    assert (pool._options.timeout, pool._options.retries, pool._options.context) == (3, 2, True)
    assert pool.with_options(timeout=None)._options.retries == 2


def test_timeout_error_of_the_call_is_no_result_not_yet(several: Make) -> None:
    def fail(_: int) -> None:
        raise TimeoutError("the call's own")

    with pytest.raises(TimeoutError, match="the call's own") as caught:
        Pool(over=several()).imap(fail, [1]).next(timeout=40)
    assert type(caught.value) is TimeoutError


def test_maps_are_made_while_the_pool_is_shut_down() -> None:
    for _ in range(8):
        pool = ThreadPool(2)
        results = [pool.map(square, range(3)) for _ in range(50)]

        def map_on(pool: ThreadPool = pool, results: list[Any] = results) -> None:
            while True:
                try:
                    results.append(pool.map(square, range(3)))
                except errors.PoolClosedError:
                    return

        thread = Thread(map_on)
        pool.shutdown()
        thread.result()


# where there is nothing left


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="has interpreters with a pool")
def test_interpreters_on_an_older_version_are_refused_with_what_there_is() -> None:
    with pytest.raises(
        errors.UnsupportedInterpreterError, match=rf"3\.{sys.version_info[1]}\.\d+; ThreadPool"
    ):
        InterpreterPool(1)


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Switches off, and on again, that threads can be started."""
    start = threading.Thread.start

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def switch(*, on: bool) -> None:
        monkeypatch.setattr(threading.Thread, "start", start if on else refuse)

    return switch


def test_no_thread_for_a_first_worker_fails_the_task_and_not_the_pool(several: Make, no_threads: Any) -> None:
    pool = several()
    no_threads(on=False)
    try:
        with pytest.raises(errors.BrokenPoolError, match="no thread can be started"):
            pool.submit(square, 3).result(40)
    finally:
        no_threads(on=True)
    assert pool.submit(square, 3).result(40) == 9


def test_no_thread_to_choose_a_kind_takes_no_task(no_threads: Any) -> None:
    with AutoPool(2) as pool:
        no_threads(on=False)
        try:
            with pytest.raises(errors.BrokenPoolError, match="no thread can be started to choose a kind"):
                pool.submit(square, 3)
        finally:
            no_threads(on=True)
        assert pool.submit(square, 3).result(40) == 9
        assert pool.statistics().done == 1


def test_no_thread_to_replace_a_worker_fails_what_is_queued(no_threads: Any) -> None:
    with ThreadPool(1, max_tasks_per_child=1) as pool:
        first = pool.submit(lambda: no_threads(on=False))
        second = pool.submit(square, 2)
        try:
            first.result(40)
            with pytest.raises(errors.BrokenPoolError, match="no thread can be started"):
                second.result(40)
        finally:
            no_threads(on=True)
        assert pool.submit(square, 3).result(40) == 9


def test_loop_that_cannot_be_made_breaks_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(asyncio, "new_event_loop", refuse)
    with AsyncPool(1) as pool, pytest.raises(errors.BrokenPoolError, match="Too many open files"):
        pool.submit(square, 3).result(40)


# processes


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_pool_within_a_worker_of_a_forked_pool_works() -> None:
    def inner() -> int:
        with ProcessPool(1, mp_context="fork") as pool:
            return pool.submit(square, 3).result(30)

    with ProcessPool(1, mp_context="fork") as pool:
        assert pool.submit(inner).result(40) == 9
