"""Workers whose start, end or callback hangs, or whose start fails: what becomes of the pool."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import resource
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from poolkinds import KINDS, Make, pass_time
from pooltasks import announce_and_hang, announce_and_spin, square, wait_for
from waiting import PATIENCE_S, until

from fairlead import errors
from fairlead.pools import AsyncPool, AutoPool, Pool, ProcessPool, ThreadPool, processes
from fairlead.pools.engine import scheduler, shutdown
from fairlead.pools.engine.contract import Lost, Task, Worker
from fairlead.pools.engine.worker_manager import WorkerManager

pytestmark = pytest.mark.ends_and_free


class Hanging:
    """A hook that hangs from when a file is there until the test is over."""

    def __init__(self, place: Path) -> None:
        self.begun, self.fifo = place / "begun", place / "fifo"
        os.mkfifo(self.fifo)
        self.hook = functools.partial(announce_and_hang, str(self.begun), str(self.fifo))

    def end(self) -> None:
        with contextlib.suppress(OSError):  # none hangs
            os.close(os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK))


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hanging]:
    monkeypatch.setattr(shutdown, "PATIENCE_S", 0.05)
    made = Hanging(tmp_path)
    yield made
    made.end()


@pytest.fixture
def beside(hanging: Hanging, several: Make) -> Iterator[Make]:
    """As ``several``; what hangs ends before its fixture waits for the threads."""
    yield several
    hanging.end()


# what hangs


def test_terminated_pool_is_left_while_an_initializer_hangs(beside: Make, hanging: Hanging) -> None:
    pool = beside(max_workers=1, initializer=hanging.hook)
    future = pool.submit(square, 2)
    until(hanging.begun.exists)
    with contextlib.suppress(KeyboardInterrupt), pool:
        raise KeyboardInterrupt
    assert future.cancelled()
    pool.shutdown(timeout=PATIENCE_S)
    with pytest.raises(errors.PoolClosedError):
        pool.submit(square, 2)


def test_shutdown_of_a_pool_whose_initializer_hangs_says_so_and_terminate_ends_it(
    beside: Make, hanging: Hanging
) -> None:
    pool = beside(max_workers=1, initializer=hanging.hook)
    future = pool.submit(square, 2)
    until(hanging.begun.exists)
    with pytest.raises(TimeoutError, match=r"terminate\(\) stops them"):
        pool.shutdown(timeout=0.01)
    pool.terminate()
    pool.shutdown(timeout=PATIENCE_S)
    assert future.cancelled()


@pytest.mark.parametrize("when", ["ending", "idle"])
def test_terminated_pool_is_left_while_a_finalizer_hangs(beside: Make, hanging: Hanging, when: str) -> None:
    pool = beside(max_workers=1, finalizer=hanging.hook)
    assert pool.submit(square, 2).result(PATIENCE_S) == 4
    if when == "ending":
        pool.shutdown(wait=False)
        until(hanging.begun.exists)
    pool.terminate()
    pool.shutdown(timeout=PATIENCE_S)


def test_terminated_pool_is_left_while_a_done_callback_hangs(beside: Make, tmp_path: Path) -> None:
    pool = beside(max_workers=1)
    calls, go = threading.Event(), threading.Event()
    future = pool.submit(wait_for, str(tmp_path / "gate"))
    future.add_done_callback(lambda _: (calls.set(), go.wait()))
    (tmp_path / "gate").touch()
    assert calls.wait(PATIENCE_S)
    pool.terminate()
    pool.shutdown(timeout=PATIENCE_S)
    go.set()


def test_initializer_that_hangs_keeps_no_auto_pool(hanging: Hanging) -> None:
    with contextlib.suppress(KeyboardInterrupt), AutoPool(1, initializer=hanging.hook) as pool:
        future = pool.submit(square, 2)
        until(hanging.begun.exists)
        raise KeyboardInterrupt
    assert future.cancelled()


def test_initializer_that_is_a_coroutine_function_is_cancelled_with_the_pool() -> None:
    begun, ends = threading.Event(), []

    async def waits() -> None:
        import asyncio

        begun.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    pool = AsyncPool(initializer=waits)
    future = pool.submit(square, 2)
    assert begun.wait(PATIENCE_S)
    pool.terminate()
    pool.shutdown(timeout=PATIENCE_S)
    assert (ends, future.cancelled()) == (["cancelled"], True)
    with pytest.raises(errors.PoolClosedError):
        pool.submit(square, 2)


def test_initializer_that_is_interrupted_at_the_end_is_no_reason_for_a_broken_pool(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    pool = ThreadPool(1, "interrupted", announce_and_spin, (str(begun),), interrupt=True)
    future = pool.submit(square, 2)
    until(begun.exists)
    thread = next(thread for thread in threading.enumerate() if thread.name.startswith("interrupted"))
    pool.terminate()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert future.cancelled()
    with pytest.raises(errors.PoolClosedError):
        pool.submit(square, 2)


# a start's time-out


def test_start_that_takes_too_long_breaks_the_pool(beside: Make, hanging: Hanging) -> None:
    pool = beside(max_workers=1, initializer=hanging.hook, start_timeout=3600)
    future = pool.submit(square, 2)
    until(hanging.begun.exists)
    pass_time(pool)
    with pytest.raises(errors.BrokenPoolError, match=r"initializer .*start_timeout=3600 s") as caught:
        future.result(PATIENCE_S)
    assert isinstance(caught.value.__cause__, errors.WaitTimeoutError)
    with pytest.raises(errors.BrokenPoolError, match="start_timeout"):
        pool.submit(square, 2)
    pool.shutdown(timeout=PATIENCE_S)


def test_start_within_its_time_is_not_timed_any_more(several: Make) -> None:
    pool = several(max_workers=1, start_timeout=3600)
    assert pool.submit(square, 2).result(PATIENCE_S) == 4
    until(lambda: not pool._engine._timed)
    pass_time(pool)
    assert pool.submit(square, 3).result(PATIENCE_S) == 9


def test_start_that_takes_too_long_names_its_initializer(hanging: Hanging) -> None:
    def load() -> None:
        hanging.hook()

    pool = ThreadPool(1, initializer=load, start_timeout=0.05)
    with pytest.raises(errors.BrokenPoolError, match=r"its initializer .*load\(\), has not ended within"):
        pool.submit(square, 2).result(PATIENCE_S)
    pool.shutdown(timeout=PATIENCE_S)


def test_first_start_of_auto_pool_that_takes_too_long_breaks_it(hanging: Hanging) -> None:
    pool = AutoPool(1, initializer=hanging.hook, start_timeout=0.05)
    with pytest.raises(errors.BrokenPoolError, match=r"start_timeout=0\.05 s"):
        pool.submit(square, 2).result(PATIENCE_S)
    assert pool.choice is None
    with pytest.raises(errors.BrokenPoolError, match=r"start_timeout=0\.05 s"):
        pool.submit(square, 2)
    pool.shutdown(timeout=PATIENCE_S)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_start_timeout_that_is_no_time_is_refused(seconds: float, several: Make) -> None:
    with pytest.raises(errors.UsageError, match="start_timeout must be a positive number of seconds"):
        several(start_timeout=seconds)


# starts that fail


class Fails(Worker):
    """Of the workers that are made, those with these numbers cannot start, and the others run tasks here."""

    made = 0

    def __init__(self, failing: Callable[[int], bool]) -> None:
        Fails.made += 1
        self.fails = functools.partial(failing, Fails.made)

    def start(self) -> None:
        if self.fails():
            raise Lost("no worker to be had") from OSError(errno.EMFILE, "too many")

    def run(self, task: Task) -> Any:
        return task.call()

    def stop(self) -> bool:
        return False

    def close(self) -> None:
        pass


class FailingPool(Pool):
    def __init__(self, workers: int, failing: Callable[[int], bool]) -> None:
        Fails.made = 0
        self._begin(
            WorkerManager("failing", workers, lambda: Fails(failing), name="failing", call_cost_s=1e-5)
        )


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "LONGEST_PAUSE_S", 0.001)


@pytest.mark.usefixtures("pauses")
def test_start_that_fails_is_tried_again() -> None:
    with FailingPool(1, lambda number: number < scheduler.MOST_FAILED_STARTS) as pool:
        assert pool.submit(square, 2).result(PATIENCE_S) == 4
        assert Fails.made == scheduler.MOST_FAILED_STARTS


@pytest.mark.usefixtures("pauses")
def test_pool_without_a_worker_is_broken_by_starts_that_fail() -> None:
    with FailingPool(1, lambda _: True) as pool:
        with pytest.raises(errors.BrokenPoolError, match="no worker to be had") as caught:
            pool.submit(square, 2).result(PATIENCE_S)
        assert isinstance(caught.value.__cause__, OSError)
        assert Fails.made == scheduler.MOST_FAILED_STARTS


@pytest.mark.usefixtures("pauses")
def test_pool_with_one_worker_goes_on_with_that_however_often_others_cannot_start() -> None:
    gate = threading.Event()
    with FailingPool(3, lambda number: 1 < number < 100) as pool:
        first = pool.submit(gate.wait)
        until(first.running)
        others = [pool.submit(square, n) for n in range(5)]
        until(lambda: Fails.made >= 60)
        assert not any(future.done() for future in others), "the only worker is busy"
        gate.set()
        assert [future.result(PATIENCE_S) for future in others] == [0, 1, 4, 9, 16]
        assert not pool._engine.closed


@pytest.mark.usefixtures("pauses")
def test_worker_that_waits_for_its_own_pool_is_none_that_others_can_rely_on() -> None:
    with FailingPool(2, lambda number: number > 1) as pool:

        def waits() -> BaseException | None:
            return pool.submit(square, 2).exception()

        refusal = pool.submit(waits).result(PATIENCE_S)
        assert isinstance(refusal, errors.BrokenPoolError)


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize("end", ["terminate", "cancel"])
def test_start_that_fails_is_not_tried_again_without_work(end: str) -> None:
    made: list[int] = []
    goes_on = threading.Event()

    def failing(number: int) -> bool:
        made.append(number)
        if number == 2:
            assert goes_on.wait(PATIENCE_S)
        return True

    pool = FailingPool(1, failing)
    future = pool.submit(square, 2)
    until(lambda: len(made) == 2)
    if end == "terminate":
        pool.terminate()
    else:
        pool.shutdown(wait=False, cancel_futures=True)
    goes_on.set()
    pool.shutdown(timeout=PATIENCE_S)
    assert future.cancelled()
    assert made == [1, 2]


@contextlib.contextmanager
def no_descriptors() -> Iterator[None]:
    """In this process; workers that are started in the block by a server have their own limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            os.dup(0)
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif("interpreters" not in KINDS, reason="there are no interpreters")
def test_interpreters_go_on_with_what_they_have_without_descriptors_and_more_are_made_later(
    tmp_path: Path,
) -> None:
    gates = [str(tmp_path / str(n)) for n in range(3)]
    with KINDS["interpreters"](max_workers=3) as pool:
        assert pool.submit(wait_for, str(tmp_path)).result() == str(tmp_path)
        engine: Any = pool._engine
        with no_descriptors():
            futures = [pool.submit(wait_for, gate) for gate in gates]
            until(lambda: any(worker.failed_starts > 1 for worker in list(engine._places.values())))
            assert pool.statistics().running == 1
        until(lambda: pool.statistics().running == 3)
        for gate in gates:
            Path(gate).touch()
        assert [future.result(PATIENCE_S) for future in futures] == gates


@pytest.mark.skipif("interpreters" not in KINDS, reason="there are no interpreters")
@pytest.mark.usefixtures("pauses")
def test_interpreters_that_cannot_be_made_at_all_break_the_pool() -> None:
    with KINDS["interpreters"]() as pool, no_descriptors():
        refusal = pool.submit(square, 2).exception(PATIENCE_S)
        assert isinstance(refusal, errors.BrokenPoolError)
        assert "interpreter creation failed" in str(refusal)


def test_processes_go_on_with_what_they_have_without_descriptors_and_more_start_later(tmp_path: Path) -> None:
    gates = [str(tmp_path / str(n)) for n in range(3)]
    with ProcessPool(3) as pool:
        assert pool.submit(square, 2).result() == 4
        engine: Any = pool._engine
        with no_descriptors():
            futures = [pool.submit(wait_for, gate) for gate in gates]
            until(lambda: any(slot.failed_starts > 1 for slot in list(engine._slots)))
            assert pool.statistics().running == 1
        until(lambda: pool.statistics().running == 3)
        for gate in gates:
            Path(gate).touch()
        assert [future.result(PATIENCE_S) for future in futures] == gates


@pytest.mark.usefixtures("pauses")
def test_processes_that_cannot_be_started_at_all_break_the_pool_and_say_why() -> None:
    with ProcessPool(2) as pool, no_descriptors():
        future = pool.submit(square, 2)
        with pytest.raises(
            errors.BrokenPoolError, match=r"cannot be started: .*Too many open files"
        ) as caught:
            future.result(PATIENCE_S)
        assert getattr(caught.value.__cause__, "errno", None) == errno.EMFILE


@pytest.mark.parametrize(
    "refusal", [OSError(errno.EAGAIN, "busy"), MemoryError(), EOFError(), BrokenPipeError()]
)
def test_process_that_cannot_be_started_now_is_started_later(
    refusal: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = [refusal]
    pair = processes.socket.socketpair

    def refuse_once() -> Any:
        if refusals:
            raise refusals.pop()
        return pair()

    with ProcessPool(1, max_tasks_per_child=1) as pool:
        assert pool.submit(square, 2).result() == 4
        monkeypatch.setattr(processes.socket, "socketpair", refuse_once)
        assert pool.submit(square, 3).result(PATIENCE_S) == 9
        until(lambda: not refusals)
        assert pool.submit(square, 4).result(PATIENCE_S) == 16


def refuse_for_want_of_descriptors(path: str) -> None:
    with open(path, "ab") as file:  # noqa: PTH123
        file.write(b".")
    raise OSError(errno.EMFILE, "the initializer's own")


def test_initializer_that_runs_out_of_descriptors_has_raised(several: Make, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    pool = several(max_workers=1, initializer=refuse_for_want_of_descriptors, initargs=(str(calls),))
    with pytest.raises(errors.BrokenPoolError, match="the initializer's own"):
        pool.submit(square, 2).result(PATIENCE_S)
    assert calls.read_bytes() == b"."
