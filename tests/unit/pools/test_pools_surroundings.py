"""What workers have of their parent's: environment, cores, threads of libraries. What their initializer
returned."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import pytest
from poolkinds import KINDS, Make, make
from pooltasks import fail_with, where

from fairlead import errors, machine
from fairlead.pools import AutoPool, ProcessPool, ThreadPool, pool, shared_pool, worker_state
from fairlead.pools.process.surroundings import THREADS

__all__ = ["make"]  # a fixture

pytestmark = [
    pytest.mark.ends_and_free,
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
]
METHODS = ["forkserver", "spawn", "fork"]
processes = pytest.mark.skipif("processes" not in KINDS, reason="no ProcessPool here")


def surroundings() -> tuple[dict[str, str], set[int], str]:
    return dict(os.environ), os.sched_getaffinity(0), os.getcwd()  # noqa: PTH109


@processes
@pytest.mark.parametrize("method", METHODS)
def test_workers_have_the_environment_and_the_cores_of_the_moment_of_their_start(
    method: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("OF_THE_MOMENT", "first")
    monkeypatch.setenv("GOES", "1")
    cores = os.sched_getaffinity(0)
    with ProcessPool(1, method, max_tasks_per_child=1) as pool:
        first, first_cores, _ = pool.submit(surroundings).result()
        assert (first["OF_THE_MOMENT"], first["GOES"], first_cores) == ("first", "1", cores)
    monkeypatch.setenv("OF_THE_MOMENT", "second")
    monkeypatch.delenv("GOES")
    monkeypatch.chdir(tmp_path)
    os.sched_setaffinity(0, {min(cores)})
    try:
        with ProcessPool(1, method, env={"OWN": "given", "OF_THE_MOMENT": "third"}) as pool:
            second, second_cores, place = pool.submit(surroundings).result()
    finally:
        os.sched_setaffinity(0, cores)
    assert (second["OWN"], second["OF_THE_MOMENT"], "GOES" in second) == ("given", "third", False)
    assert (second_cores, place) == ({min(cores)}, str(tmp_path))
    assert "OWN" not in os.environ


@processes
def test_environment_is_there_for_the_initializer() -> None:
    with ProcessPool(1, env={"OWN": "given"}, initializer=os.getenv, initargs=("OWN",)) as pool:
        assert pool.submit(worker_state).result() == "given"
    with pytest.raises(errors.UsageError, match="str, not 'OWN': 3"):
        ProcessPool(1, env={"OWN": 3})  # type: ignore[dict-item]


def limits() -> tuple[list[str | None], list[int]]:
    """Of the libraries' variables, and those that numpy's BLAS has been set to."""
    import threadpoolctl

    with_numpy = __import__("numpy")
    assert with_numpy is sys.modules["numpy"]
    found = threadpoolctl.threadpool_info()
    return [os.environ.get(name) for name in THREADS], [one["num_threads"] for one in found]


@processes
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("inner", "workers"), [(None, 1), (None, 64), (1, 1)])
def test_libraries_in_workers_have_a_part_of_the_cores(
    method: Any, inner: int | None, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """numpy has been loaded in this process, and so is when a worker is forked from it."""
    pytest.importorskip("threadpoolctl")
    pytest.importorskip("numpy")
    for name in THREADS:
        monkeypatch.delenv(name, raising=False)
    with ProcessPool(workers, method, inner_threads=inner) as pool:
        variables, used = pool.submit(limits).result()
    expected = inner or max(machine.cores().usable // workers, 1)
    assert variables == [str(expected)] * len(THREADS)
    assert set(used) == {expected}


@processes
def test_libraries_have_the_threads_that_the_program_has_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in THREADS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    with ProcessPool(1) as pool:
        environment, _, _ = pool.submit(surroundings).result()
    assert [environment.get(name) for name in THREADS] == ["5", *[None] * (len(THREADS) - 1)]


@processes
def test_joblibs_workers_have_as_many_inner_threads_as_it_says() -> None:
    joblib = pytest.importorskip("joblib")
    pytest.importorskip("fairlead.pools.joblib")
    for inner in (1, 2):
        with joblib.parallel_config(backend="fairlead", n_jobs=2, inner_max_num_threads=inner):
            found = joblib.Parallel()(joblib.delayed(os.getenv)("OMP_NUM_THREADS") for _ in range(4))
        assert found == [str(inner)] * 4
        shared_pool("processes", 2, inner_threads=inner).shutdown()


# what the initializer returned


class Server:
    def __init__(self, address: str) -> None:
        self.address = address
        self.asked = 0
        self.worker = where()

    def ask(self) -> tuple[str, int, bool]:
        self.asked += 1
        return self.address, self.asked, self.worker == where()


def ask() -> tuple[str, int, bool]:
    answer: tuple[str, int, bool] = worker_state().ask()
    return answer


def test_tasks_have_what_the_initializer_of_their_worker_returned(make: Make) -> None:
    pool = make(initializer=Server, initargs=("there",))
    answers = [pool.submit(ask).result() for _ in range(4)]
    assert {address for address, _, _ in answers} == {"there"}
    assert all(here for _, _, here in answers)
    assert max(asked for _, asked, _ in answers) >= 2
    assert worker_state() is None


def test_there_is_none_without_an_initializer_and_each_pool_has_its_own(make: Make) -> None:
    assert make().submit(worker_state).result() is None
    with ThreadPool(1, initializer=lambda: "outer") as outer:

        def nested() -> tuple[object, object, object]:
            inner = pool("sequential", initializer=lambda: "inner")
            return worker_state(), inner.submit(worker_state).result(), worker_state()

        assert outer.submit(nested).result() == ("outer", "inner", "outer")


def test_coroutines_have_what_an_initializer_that_is_one_returned() -> None:
    async def connect(address: str) -> tuple[str, int]:
        return address, threading.get_ident()

    async def use() -> tuple[str, bool]:
        address, thread = worker_state()
        return address, thread == threading.get_ident()

    with pool("async", initializer=connect, initargs=("there",)) as found:
        assert found.submit(use).result() == ("there", True)


def test_pool_that_chooses_its_kind_has_it_too() -> None:
    with AutoPool(2, initializer=Server, initargs=("there",)) as chosen:
        assert {address for address, _, _ in chosen.map(lambda _: ask(), range(20))} == {"there"}


def test_initializer_that_raises_still_breaks_the_pool(make: Make) -> None:
    refusing = make(initializer=fail_with, initargs=(OSError(5, "no"),))
    with pytest.raises(errors.BrokenPoolError):
        refusing.submit(worker_state).result()
