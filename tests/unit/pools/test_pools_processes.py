"""What pools of processes promise besides: isolation, what can be sent, shared memory, no remains."""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pooltasks
import pytest
from pooltasks import announce_and_spin, identity, square, where
from waiting import until

from fairlead import errors
from fairlead.pools import ProcessPool
from fairlead.pools.process import channel

pytestmark = pytest.mark.ends_and_free


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@pytest.fixture
def pool() -> Iterator[ProcessPool]:
    with ProcessPool(1) as pool:
        yield pool


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["forkserver", "spawn", "fork"])
def test_processes_of_every_start_method_work_and_leave_nothing(method: Any) -> None:
    with ProcessPool(1, mp_context="forkserver") as first:  # what multiprocessing keeps from then on
        first.submit(square, 1).result()
    gc.collect()  # what errors of other tests hold
    threads, fds = threading.active_count(), descriptors()
    with ProcessPool(2, mp_context=method) as pool:
        assert list(pool.map(square, range(20))) == [n * n for n in range(20)]
        pid, _ = pool.submit(where).result()
        assert pid != os.getpid()
        assert pool.submit(lambda: os.getppid()).result() > 0
    assert not Path(f"/proc/{pid}").exists() or method == "forkserver"
    assert multiprocessing.active_children() == []
    assert threading.active_count() <= threads  # those of other tests end meanwhile
    assert descriptors() <= fds


def test_start_method_unknown_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(errors.UsageError, match="forkserver"):
        ProcessPool(1, mp_context="magic")  # type: ignore[arg-type]


def babble(_: object = None) -> None:
    """Sends what is no message on every socket of this process."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):  # noqa: PTH115
                os.write(int(name), b"no message of ours at all")
        except OSError:
            continue


@pytest.mark.parametrize(
    ("death", "how"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "killed by SIGKILL"),
        (lambda: os._exit(3), "status 3"),
        (babble, "data that is not a message"),
    ],
    ids=["killed", "exited", "babbles"],
)
def test_worker_that_dies_loses_its_own_task_only(death: Any, how: str, tmp_path: Path) -> None:
    with ProcessPool(2) as pool:
        beside = pool.submit(pooltasks.wait_for, str(tmp_path / "go"))
        until(beside.running)
        with pytest.raises(errors.WorkerDiedError, match=how):
            pool.submit(death).result()
        (tmp_path / "go").touch()
        assert beside.result() == str(tmp_path / "go")
        assert pool.submit(square, 3).result() == 9
        numbers = pool.statistics()
        assert (numbers.lost, numbers.restarts) == (1, 1)


def test_task_whose_worker_died_is_run_again_if_asked_for(pool: ProcessPool, tmp_path: Path) -> None:
    def die_once(path: Path) -> str:
        if not path.exists():
            path.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "second"

    assert pool.with_options(retries=1).submit(die_once, tmp_path / "died").result() == "second"


def test_without_cloudpickle_what_pickle_refuses_is_refused_by_name(
    pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)  # as on an interpreter on which it does not load
    assert list(pool.map(square, [2, 3])) == [4, 9]
    with pytest.raises(errors.SerializationError, match=r"the function <lambda>\(\) cannot be sent"):
        pool.submit(lambda: 1).result()


def test_locks_of_multiprocessing_reach_workers_through_the_initializer() -> None:
    context = multiprocessing.get_context("forkserver")
    value = context.Value("i", 0)
    with ProcessPool(2, initializer=pooltasks.keep, initargs=(value,)) as pool:
        list(pool.map(pooltasks.count_up, range(20), chunksize=1))
    assert value.value == 20


# shared memory


@pytest.mark.parametrize("size", [0, 1, channel.INLINE - 100, channel.INLINE, channel.INLINE + 1, 3_000_000])
def test_bytes_of_any_size_come_back_as_they_went(pool: ProcessPool, size: int) -> None:
    data = os.urandom(size)
    assert pool.submit(identity, data).result() == data
    assert pool.submit(identity, [data, "text" * (size // 4), bytearray(data)]).result()[2] == data


def test_arrays_come_back_as_they_went_can_be_written_and_outlive_their_pool(pool: ProcessPool) -> None:
    arrays = [np.arange(size, dtype=kind) for size in (0, 10, 5_000, 300_000) for kind in ("u1", "f8")]
    arrays.append(np.arange(90_000, dtype="f8").reshape(300, 300)[::2, ::3])
    back = pool.submit(identity, arrays).result()
    pool.shutdown()
    for array, other in zip(arrays, back, strict=True):
        assert np.array_equal(array, other)
    back[7][:] = 1


def test_arrays_that_live_keep_their_memory_and_those_gone_free_it(pool: ProcessPool) -> None:
    fds = descriptors()
    many = channel.MOST_LENT + 10
    kept = [pool.submit(np.full, 100_000, n, dtype="f8").result() for n in range(many)]
    assert [array[-1] for array in kept] == list(range(many))
    assert descriptors() <= fds + channel.MOST_LENT + channel.KEEP
    total = pool.submit(np.ones, 100_000).result().sum()
    for n in range(50):
        assert pool.submit(np.sum, np.full(100_000, n, dtype="f8")).result() == n * total
    workers_fds = pool.submit(lambda: len(os.listdir("/proc/self/fd"))).result()  # noqa: PTH208
    del kept
    gc.collect()
    assert descriptors() <= fds + 3 * channel.KEEP
    pool.submit(square, 2).result()  # takes along what has become free
    pool.submit(square, 2).result()
    assert pool.submit(lambda: len(os.listdir("/proc/self/fd"))).result() < workers_fds  # noqa: PTH208


def test_large_messages_go_without_shared_memory_where_there_is_none(pool: ProcessPool) -> None:
    """No file may grow any more, in this process; its worker still can make blocks."""
    data = os.urandom(1_000_000)
    pool.submit(square, 1).result()
    fds = descriptors()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        assert pool.submit(identity, data).result() == data
        array = pool.submit(identity, np.arange(100_000)).result()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert array[-1] == 99_999
    del array
    assert descriptors() <= fds + channel.KEEP


def test_killed_workers_leave_no_shared_memory_behind(tmp_path: Path) -> None:
    with ProcessPool(1) as pool:
        pool.submit(square, 1).result()
        fds = descriptors()
        for number in range(3):
            begun = tmp_path / str(number)
            future = pool.submit(lambda path, _: announce_and_spin(path), str(begun), np.zeros(100_000))
            until(begun.exists)
            assert future.cancel()
        pool.submit(square, 1).result()
        until(lambda: descriptors() <= fds)
    assert multiprocessing.active_children() == []


# forks


def test_fork_is_refused_while_subinterpreters_live() -> None:
    if sys.version_info >= (3, 13):
        import _interpreters as interpreters
    else:
        import _xxsubinterpreters as interpreters
    one = interpreters.create()
    try:
        with pytest.raises(errors.UsageError, match="subinterpreters"):
            ProcessPool(1, mp_context="fork")
    finally:
        interpreters.destroy(one)


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_forked_child_takes_the_pool_for_closed(pool: ProcessPool) -> None:
    pool.submit(square, 1).result()
    child = os.fork()
    if child == 0:
        try:
            pool.submit(square, 1)
        except errors.PoolClosedError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert pool.submit(square, 2).result() == 4


def test_worker_that_dies_while_it_is_idle_takes_no_task_along(pool: ProcessPool) -> None:
    for n in range(20):
        pid, _ = pool.submit(where).result()
        os.kill(pid, signal.SIGKILL)
        if n % 2:
            until(lambda: pool.statistics().started == 0)
        assert pool.submit(square, n).result(40) == n * n
    assert pool.statistics().lost == 0


def test_worker_killed_before_it_is_ready_is_replaced_and_many_in_a_row_break_the_pool() -> None:
    number = multiprocessing.get_context("forkserver").Value
    with ProcessPool(1, initializer=kill_in_first, initargs=(number("i", 2),)) as pool:
        assert pool.submit(square, 3).result() == 9
        assert pool.statistics().restarts == 2
    with (
        ProcessPool(1, initializer=kill_in_first, initargs=(number("i", 99),)) as pool,
        pytest.raises(errors.BrokenPoolError, match="killed by SIGKILL before it was ready"),
    ):
        pool.submit(square, 3).result()


def kill_in_first(left: Any) -> None:
    with left.get_lock():
        left.value -= 1
        kills = left.value >= 0
    if kills:
        os.kill(os.getpid(), signal.SIGKILL)


def test_submission_interrupted_while_it_is_sent_costs_the_worker_and_leaves_the_pool_usable(
    pool: ProcessPool,
) -> None:
    class Interrupts:
        def __reduce__(self) -> Any:
            raise KeyboardInterrupt

    assert pool.submit(square, 2).result() == 4
    until(lambda: pool._engine._idle)  # type: ignore[attr-defined] # so that it is sent at once
    with pytest.raises(KeyboardInterrupt):
        pool.submit(identity, Interrupts())
    assert pool.submit(square, 3).result() == 9
