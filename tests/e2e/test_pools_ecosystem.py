"""Pools where executors are used by other libraries."""

from __future__ import annotations

import asyncio
import contextvars
import io
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from poolkinds import KINDS, Make, make, several
from pooltasks import announce_and_spin, negative_raises, spin, square
from waiting import run, until

from fairlead.pools import ThreadPool, shared
from fairlead.pools.asyncio import AsyncioExecutor

dask = pytest.importorskip("dask", reason="dask is not installed")
joblib = pytest.importorskip("joblib", reason="joblib is not installed")
tqdm = pytest.importorskip("tqdm", reason="tqdm is not installed")
pytest.importorskip("fairlead.pools.joblib")

__all__ = ["make", "several"]  # fixtures

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="default")

# asyncio


def test_default_executor_of_asyncio_runs_to_thread() -> None:
    async def main() -> tuple[str, str]:
        asyncio.get_running_loop().set_default_executor(AsyncioExecutor(2, "mine"))
        VARIABLE.set("travelled")
        return await asyncio.to_thread(lambda: (threading.current_thread().name, VARIABLE.get()))

    name, value = run(main())
    assert name.startswith("mine")
    assert value == "travelled"


# concurrent.futures


# joblib


@pytest.fixture(scope="module", autouse=True)
def _end_of_joblibs_pools() -> Iterator[None]:
    yield
    for pool in shared._pools.values():
        pool.shutdown()


JOBLIB_KINDS = [kind for kind in KINDS if kind in {"threads", "processes", "interpreters"}]


@pytest.mark.parametrize("kind", JOBLIB_KINDS)
def test_joblib_returns_the_same_as_with_its_own_backends(kind: str) -> None:
    calls = [joblib.delayed(square)(n) for n in range(100)]
    expected = joblib.Parallel(n_jobs=1)(calls)
    with joblib.parallel_config(backend="fairlead", n_jobs=2, kind=kind):
        assert joblib.Parallel()(calls) == expected
        assert joblib.Parallel(batch_size=7)(calls) == expected
        assert list(joblib.Parallel(return_as="generator")(calls)) == expected
        assert sorted(joblib.Parallel(return_as="generator_unordered")(calls)) == sorted(expected)
        assert joblib.Parallel(n_jobs=1)(calls) == expected
        with pytest.raises(ValueError, match="-1"):
            joblib.Parallel()(joblib.delayed(negative_raises)(n) for n in (1, -1, 2))
        assert joblib.Parallel()(calls) == expected


def test_joblib_that_stops_cancels_first_what_a_worker_would_begin_next(tmp_path: Path) -> None:
    from fairlead.pools.joblib import FairleadBackend

    backend, paths, cancelled = FairleadBackend(), [tmp_path / "a", tmp_path / "b"], []
    backend.configure(len(paths))
    running = {backend.submit(partial(announce_and_spin, str(path))) for path in paths}
    until(lambda: all(path.exists() for path in paths))
    queued = {backend.submit(spin, cancelled.append) for _ in range(5)}
    for future in running:
        future.add_done_callback(cancelled.append)
    backend.abort_everything()
    assert set(cancelled[: len(queued)]) == queued
    assert set(cancelled[len(queued) :]) == running


def nested(n: int) -> list[int]:
    calls: list[int] = joblib.Parallel(n_jobs=2)(joblib.delayed(square)(m) for m in range(n))
    return calls


def test_joblib_nests_stops_and_survives_a_killed_worker() -> None:
    with joblib.parallel_config(backend="fairlead", n_jobs=2):
        found = joblib.Parallel()(joblib.delayed(nested)(n) for n in range(4))
    assert found == [[m * m for m in range(n)] for n in range(4)]
    with joblib.parallel_config(backend="fairlead", n_jobs=2):
        with pytest.raises(multiprocessing.TimeoutError):
            joblib.Parallel(timeout=0.2)(joblib.delayed(spin)() for _ in "ab")
        assert joblib.Parallel()(joblib.delayed(square)(n) for n in range(4)) == [0, 1, 4, 9]


def die_once(n: int, path: str) -> int:
    if n == 5 and not os.path.exists(path):  # noqa: PTH110
        os.mknod(path)
        os.kill(os.getpid(), signal.SIGKILL)
    return n * n


def test_worker_that_is_killed_does_not_end_joblibs_call(tmp_path: Path) -> None:
    with joblib.parallel_config(backend="fairlead", n_jobs=2):
        found = joblib.Parallel()(joblib.delayed(die_once)(n, str(tmp_path / "died")) for n in range(20))
    assert found == [n * n for n in range(20)]
    assert (tmp_path / "died").exists()


# dask and tqdm


def test_dask_computes_on_a_pool() -> None:
    with ThreadPool(3) as pool, dask.config.set(pool=pool):
        parts = [dask.delayed(square)(n) for n in range(20)]
        assert dask.delayed(sum)(parts).compute(scheduler="threads") == sum(n * n for n in range(20))
        assert pool.statistics().done > 0


def test_tqdm_counts_results_as_they_come(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tqdm.tqdm, "monitor_interval", 0)  # it would leave a thread
    out = io.StringIO()
    results: list[Any] = list(tqdm.tqdm(make().map(square, range(10)), total=10, file=out))
    assert results == [n * n for n in range(10)]
    assert "10/10" in out.getvalue()
