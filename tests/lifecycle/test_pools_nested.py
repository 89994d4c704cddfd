"""Pools of processes within processes of multiprocessing and of other pools: daemonic ones, and left open."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pooltasks import announce_and_spin, square
from programs import living
from waiting import until

from fairlead.pools import ProcessPool, shared_pool

METHODS = ["forkserver", "spawn", "fork"]
WAIT_S = 40

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


def by_a_pool(method: Any) -> int:
    with ProcessPool(1, method) as pool:
        return pool.submit(square, 3).result(WAIT_S)


def by_one_left_open(_: object) -> int:
    return shared_pool("processes", 1).submit(square, 3).result(WAIT_S)


def by_joblib(_: object) -> int:
    import joblib

    import fairlead.pools.joblib

    assert fairlead.pools.joblib.FairleadBackend is not None
    with joblib.parallel_config(backend="fairlead", n_jobs=2):
        return sum(joblib.Parallel()(joblib.delayed(square)(n) for n in range(3))) + 4


def by_a_worker_of_a_worker(method: Any) -> int:
    with ProcessPool(1, method) as pool:
        return pool.submit(by_a_pool, method).result(WAIT_S)


INNER = [by_a_pool, by_one_left_open, by_joblib, by_a_worker_of_a_worker]


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("outer", METHODS)
def test_daemonic_process_has_pools_of_processes_and_ends(outer: str, inner: Callable[[object], int]) -> None:
    if inner is by_joblib:
        pytest.importorskip("joblib")
    with multiprocessing.get_context(outer).Pool(1) as pool:
        assert pool.apply_async(inner, (outer,)).get(WAIT_S) == 9
        assert pool.apply_async(is_daemonic).get(WAIT_S)
        pool.close()
        pool.join()


def is_daemonic() -> bool:
    """And may not have other children than fairlead's, as before."""
    with pytest.raises(AssertionError, match="daemonic"):
        multiprocessing.Process(target=square, args=(3,)).start()
    return multiprocessing.current_process().daemon


@pytest.mark.parametrize("method", METHODS)
def test_process_ends_that_leaves_a_pool_of_processes_open(method: Any) -> None:
    with ProcessPool(1, method) as pool:
        assert pool.submit(by_one_left_open, method).result(WAIT_S) == 9
        pool.shutdown(timeout=WAIT_S)
    process = multiprocessing.get_context(method).Process(target=by_one_left_open, args=(method,))
    process.start()
    process.join(WAIT_S)
    assert process.exitcode == 0


@pytest.mark.parametrize("method", METHODS)
def test_workers_of_a_daemonic_process_end_when_it_is_terminated(method: str, tmp_path: Path) -> None:
    mark = f"DAEMON={tmp_path}"
    process = multiprocessing.get_context(method).Process(
        target=start_and_wait, args=(mark, str(tmp_path / "begun")), daemon=True
    )
    process.start()
    until((tmp_path / "begun").exists)
    assert living(mark)
    process.terminate()
    process.join(WAIT_S)
    assert process.exitcode == -signal.SIGTERM
    until(lambda: not living(mark))


def start_and_wait(mark: str, begun: str) -> None:
    os.environ.update([mark.split("=", 1)])
    with ProcessPool(1) as pool:
        pool.submit(announce_and_spin, begun).result()
