"""What every kind of pool promises: time-outs, cancelling, retries."""

from __future__ import annotations

import concurrent.futures
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from cancelling import Cancelling
from poolkinds import Make, pass_time
from pooltasks import announce_and_spin, spin, spin_below, spin_in_deallocators, square, wait_for
from waiting import until

from fairlead import errors
from fairlead.pools import ThreadPool
from fairlead.pools.engine.contract import Options, Task
from fairlead.pools.engine.future import Future
from fairlead.pools.engine.worker_manager import WorkerManager
from fairlead.pools.engine.worker_slots import WorkerSlot

pytestmark = pytest.mark.pypy

# time-outs, cancelling, retries


def test_task_longer_than_its_timeout_is_stopped_and_the_pool_lives(several: Make) -> None:
    pool = several(max_workers=1)
    future = pool.with_options(timeout=0.05).submit(spin)
    with pytest.raises(errors.TaskTimeoutError, match=r"longer than 0\.05 s"):
        future.result()
    assert pool.submit(square, 3).result() == 9
    numbers = pool.statistics()
    assert (numbers.timed_out, numbers.restarts, numbers.done) == (1, numbers.kind != "async", 1)


def test_stop_that_a_deallocator_drops_comes_again(several: Make) -> None:
    """The fixture waits for the end of the thread."""
    pool = several(max_workers=1)
    future = pool.submit(spin_in_deallocators)
    until(future.running)
    assert future.cancel()
    assert pool.submit(square, 3).result(60) == 9


@pytest.mark.parametrize("when", ["open", "closed", "workers gone", "cancelled meanwhile"])
def test_retries_run_a_task_again_whose_time_was_up(
    several: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, when: str
) -> None:
    pool = several(max_workers=1)
    engine: Any = pool._engine
    put_again = engine._put_again

    def put_late(task: Task) -> None:
        if engine.kind == "interpreters":
            until(lambda: not engine._places)
        elif engine.kind == "async":
            until(lambda: not engine._alive and not engine._called)
        else:
            until(lambda: not engine._all_slots())
        assert when != "cancelled meanwhile" or task.future.cancel()
        put_again(task)

    attempts = tmp_path / "attempts"
    future = pool.with_options(timeout=3600, retries=1).submit(spin_below, str(attempts), 2)
    until(lambda: attempts.exists() and attempts.stat().st_size and engine._timed)
    if when != "open":
        pool.shutdown(wait=False)
    if when in ("workers gone", "cancelled meanwhile"):
        monkeypatch.setattr(engine, "_put_again", put_late)
    pass_time(pool)
    if when == "cancelled meanwhile":
        assert future.cancelled()
    else:
        assert future.result(40) == 2
        assert attempts.stat().st_size == 2
    numbers = pool.statistics()
    assert (numbers.retried, numbers.timed_out) == (1, 1)


def test_cancel_stops_a_task_that_runs(several: Make, tmp_path: Path) -> None:
    pool = several(max_workers=1)
    future = pool.submit(announce_and_spin, str(tmp_path / "begun"))
    until((tmp_path / "begun").exists)
    assert future.cancel()
    assert future.cancelled()
    assert future.cancel()
    with pytest.raises(concurrent.futures.CancelledError):
        future.result()
    assert pool.submit(square, 3).result() == 9


def test_cancel_of_a_task_that_has_begun_and_that_no_worker_has_yet(
    several: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Task.begin
    cancel = Cancelling()

    def begin_and_cancel(task: Task) -> bool:
        begun = begin(task)
        if task.function is spin and not cancel.threads:
            cancel(task.future)
        return begun

    pool = several(max_workers=1)
    monkeypatch.setattr(Task, "begin", begin_and_cancel)
    future = pool.submit(spin)
    if pool.statistics().kind == "interpreters":  # begins on the other side
        cancel(future)
    with pytest.raises(concurrent.futures.CancelledError):
        future.result(20)
    assert cancel.answer()
    assert pool.submit(square, 3).result(20) == 9


def test_cancel_of_a_task_between_two_attempts(several: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    may_retry = Task.may_retry
    cancel = Cancelling()

    def cancel_and_retry(task: Task) -> bool:
        if not cancel.threads:
            cancel(task.future)
        return may_retry(task)

    pool = several(max_workers=1)
    assert pool.submit(square, 2).result() == 4
    monkeypatch.setattr(Task, "may_retry", cancel_and_retry)
    future = pool.with_options(timeout=0.05, retries=1_000_000).submit(spin)
    with pytest.raises(concurrent.futures.CancelledError):
        future.result(20)
    assert cancel.answer()
    assert pool.submit(square, 3).result(20) == 9


def test_slot_that_is_gone_before_it_is_replaced_has_a_successor(
    several: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stops a worker may be slower than that is to end; a task waits already."""
    replace = WorkerManager._replace

    def replace_late(manager: WorkerManager, slot: WorkerSlot, *, ends: bool) -> None:
        if threading.current_thread() is not slot.thread:
            slot.thread.join(20)
        replace(manager, slot, ends=ends)

    pool = several(max_workers=1)
    assert pool.submit(square, 2).result() == 4
    monkeypatch.setattr(WorkerManager, "_replace", replace_late)
    late = pool.with_options(timeout=0.05).submit(spin)
    assert pool.submit(square, 3).result(20) == 9
    with pytest.raises(errors.TaskTimeoutError):
        late.result(20)
    numbers = pool.statistics()
    assert (numbers.timed_out, numbers.restarts, numbers.done) == (1, numbers.kind != "async", 2)


def test_terminate_between_two_attempts_ends_the_task(several: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    may_retry = Task.may_retry
    replace = WorkerManager._replace
    pool = several(max_workers=1)
    ending = threading.Thread(target=pool.terminate)

    def terminate_and_retry(task: Task) -> bool:
        if ending.ident is None:
            ending.start()
            ending.join(0.05)  # it may have to wait for what the caller holds
        return may_retry(task)

    def replace_after(manager: WorkerManager, slot: WorkerSlot, *, ends: bool) -> None:
        if threading.current_thread() not in (slot.thread, ending):
            ending.join(20)
        replace(manager, slot, ends=ends)

    assert pool.submit(square, 2).result() == 4
    monkeypatch.setattr(Task, "may_retry", terminate_and_retry)
    monkeypatch.setattr(WorkerManager, "_replace", replace_after)
    future = pool.with_options(timeout=0.05, retries=1_000_000).submit(spin)
    with pytest.raises(concurrent.futures.CancelledError):
        future.result(20)
    ending.join(20)
    pool.shutdown()


@pytest.mark.parametrize("rounds", [100, pytest.param(600, marks=pytest.mark.long)])
def test_cancel_says_how_the_task_ends(several: Make, rounds: int) -> None:
    """Whatever the moment of its life at which it is cancelled."""
    pool = several(max_workers=2)
    rounds //= 10 if pool.statistics().kind in ("processes", "interpreters") else 1
    chance = random.Random(7)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for number in range(rounds):
            brief = pool.with_options(timeout=0.002, retries=2)
            futures = [
                brief.submit(spin) if chance.random() < 0.2 else pool.submit(square, number) for _ in range(3)
            ]
            time.sleep(chance.choice((0, 0, 1e-5, 1e-4, 2e-3)))
            said = [future.cancel() for future in futures]
            concurrent.futures.wait(futures, 20)
            assert said == [future.cancelled() for future in futures]
    finally:
        sys.setswitchinterval(before)


def test_cancel_of_a_queued_task_keeps_it_from_beginning(several: Make, tmp_path: Path) -> None:
    pool = several(max_workers=1)
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
    pool = several(max_workers=1)
    running = pool.submit(announce_and_spin, str(tmp_path / "begun"))
    queued = [pool.submit(square, n) for n in range(5)]
    until((tmp_path / "begun").exists)
    pool.terminate()
    pool.shutdown()
    assert running.cancelled()
    assert all(future.cancelled() for future in queued)


def test_no_thread_of_a_worker_is_left_when_shutdown_returns(
    several: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = threading.Thread.run

    def run_and_linger(thread: threading.Thread) -> None:
        run(thread)
        time.sleep(0.1)

    monkeypatch.setattr(threading.Thread, "run", run_and_linger)
    others = set(threading.enumerate())
    pool = several()
    assert [future.result() for future in [pool.submit(square, n) for n in range(8)]][-1] == 49
    pool.shutdown()
    assert set(threading.enumerate()) <= others


def test_pool_that_is_closed_and_not_waited_for_leaves_no_thread(several: Make) -> None:
    others = set(threading.enumerate())
    pool = several()
    assert pool.with_options(timeout=60).submit(square, 3).result() == 9
    pool.shutdown(wait=False)
    until(lambda: set(threading.enumerate()) <= others)


def test_task_is_begun_once_by_all_threads_that_have_found_it_queued() -> None:
    """A worker that takes it from the queue, and one that is about to wait for it."""
    task = Task(Future(), square, (2,), {}, Options())
    assert task.begin()
    assert not task.begin()
    assert task.attempts == 1


def test_task_that_a_waiting_worker_has_run_is_counted_as_any_other() -> None:
    with ThreadPool(1) as pool:
        assert pool.submit(lambda: pool.submit(square, 3).result()).result() == 9
    numbers = pool.statistics()
    assert (numbers.done, numbers.cancelled) == (2, 0)
    assert numbers.run_time_s > 0
