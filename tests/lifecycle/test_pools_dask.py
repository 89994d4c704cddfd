"""Pools on a dask cluster: embedded, over TLS, and when its workers are lost."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import clusters
import numpy as np
import pooltasks
import pytest
from poolchunks import BadThere, Noted
from pooltasks import add, announce_and_spin, identity, raise_odd, remember, remembered, square
from programs import living
from waiting import until

from fairlead import errors
from fairlead.lab.experiments import probe_workloads as workloads
from fairlead.pools import DaskPool
from fairlead.pools.engine.stopped import Stopped
from fairlead.pools.serialization import calls
from fairlead.pools.serialization.failure import WorkerTraceback
from fairlead.pools.serialization.messages import pickled

pytest.importorskip(
    "distributed", reason="distributed has no release for this interpreter, or is not installed"
)
from fairlead.pools.distributed import remote

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.long,
    pytest.mark.timeout(180),
    # what dask and its libraries do at the end of clusters is theirs
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture(scope="module")
def pool() -> Iterator[DaskPool]:
    """Shared, because starting a cluster takes a while."""
    sys.path.insert(0, str(Path(pooltasks.__file__).parent))
    with DaskPool(max_workers=2, initializer=remember, initargs=(411,)) as pool:
        yield pool


def test_cluster_calls_functions_and_returns_results_and_exceptions(pool: DaskPool) -> None:
    assert pool.submit(add, 2, b=3).result() == 5
    assert list(pool.map(square, range(200))) == [n * n for n in range(200)]
    assert sorted(pool.stream(square, range(5), ordered=False)) == [0, 1, 4, 9, 16]
    offset = 10
    assert pool.submit(lambda n: n + offset, 1).result() == 11
    with pytest.raises(pooltasks.Odd, match="odd 7") as caught:
        pool.submit(raise_odd, 7).result()
    assert caught.value.hint == "as it was"
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert 411 in pool.submit(remembered).result()


def test_call_that_is_to_stop_before_it_has_come_does_not_run_and_few_are_remembered() -> None:
    remote.stop("to come")
    parcel = remote.Parcel.of(calls.CALL, pickled((os._exit, (1,), {}, None)))
    answer = remote.call(parcel, "to come")
    assert answer.kind == calls.FAILED
    assert type(answer.load().error) is Stopped
    assert remote.call(remote.Parcel.of(calls.CALL, pickled((int, (), {}, None))), "to come").load() == 0
    for number in range(2 * remote.REMEMBERED):
        remote.stop(str(number))
    assert len(remote._early) == remote.REMEMBERED
    remote._early.clear()


def test_cluster_takes_large_arrays_and_says_which_part_cannot_be_sent(pool: DaskPool) -> None:
    array = np.arange(2_000_000.0)
    back = pool.submit(identity, array).result()
    assert (back == array).all()
    back[0] = 7  # as from the other kinds, it can be written to
    assert pool.statistics().bytes_in >= array.nbytes
    assert pool.statistics().bytes_out >= array.nbytes
    with pytest.raises(errors.SerializationError, match=r"argument 1 of identity\(\)"):
        pool.submit(identity, threading.Lock()).result()
    with pytest.raises(
        errors.SerializationError, match=r"the result of \w+\(\), a lock, cannot be sent back"
    ):
        pool.submit(threading.Lock).result()
    assert pool.submit(square, 3).result() == 9


def test_cluster_stops_what_takes_too_long_and_what_is_cancelled(pool: DaskPool, tmp_path: Path) -> None:
    with pytest.raises(errors.TaskTimeoutError):
        pool.with_options(timeout=0.2).submit(pooltasks.spin).result()
    endless = [pool.submit(announce_and_spin, str(tmp_path / name)) for name in ("one", "two")]
    until(lambda: all((tmp_path / name).exists() for name in ("one", "two")))
    assert all(future.cancel() for future in endless)
    # both workers would still be busy, had they not been stopped
    assert list(pool.map(square, range(4), chunksize=1)) == [0, 1, 4, 9]


def test_cluster_runs_a_task_again_whose_worker_was_lost(pool: DaskPool, tmp_path: Path) -> None:
    def die_once(path: str) -> str:
        if not os.path.exists(path):  # noqa: PTH110
            open(path, "w").close()  # noqa: PTH123
            os._exit(3)
        return "second"

    assert pool.submit(die_once, str(tmp_path / "died")).result() == "second"


def test_bad_call_of_a_chunk_on_a_cluster_costs_that_call(pool: DaskPool, tmp_path: Path) -> None:
    for items, call in (
        ([threading.Lock() if n == 3 else n for n in range(6)], Noted(tmp_path / "sent")),
        ([BadThere(n) if n == 3 else n for n in range(6)], Noted(tmp_path / "read")),
        (list(range(6)), Noted(tmp_path / "back", bad=3)),
    ):
        results = pool.map(call, items, chunksize=6)
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(errors.SerializationError, match=r"noted\(\)"):
            next(results)
        assert list(results) == [4, 5]
        assert set(call.made().values()) == {1}
    deadly = pool.map(Noted(tmp_path / "died", dies=1), range(3), chunksize=3)
    assert next(deadly) == 0
    with pytest.raises(errors.WorkerDiedError, match="in a row with this task; only this task is lost"):
        next(deadly)
    assert list(deadly) == [2]


def test_cluster_that_is_not_there_or_whose_initializer_raises_is_said_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fairlead.pools import dask

    monkeypatch.setattr(dask, "CONNECT_S", 0.2)
    with pytest.raises(errors.BrokenPoolError, match=r"the cluster at tcp://127\.0\.0\.1:9 is not reached"):
        DaskPool("tcp://127.0.0.1:9")
    with pytest.raises(errors.BrokenPoolError, match="the initializer refuses"):
        DaskPool(max_workers=1, initializer=pooltasks.refuse)


def test_cluster_ends_with_its_pool_and_is_reached_over_tls() -> None:
    from distributed.security import Security

    threads = threading.active_count()
    with DaskPool(max_workers=1, security=Security.temporary()) as secure:
        assert str(secure._engine._client.scheduler.address).startswith("tls://")  # type: ignore[attr-defined]
        pid = secure.submit(os.getpid).result()
        assert pid != os.getpid()
    until(lambda: not Path(f"/proc/{pid}").exists())
    with pytest.raises(errors.PoolClosedError):
        secure.submit(square, 2)
    assert threading.active_count() <= threads + 3  # what dask keeps: its loop, and its offloaders


def test_cluster_of_others_does_not_initialize_workers_for_a_pool_that_has_left() -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):

        def plugins() -> list[str]:
            here = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.worker_plugins))
            (there,) = client.run(lambda dask_worker: list(dask_worker.plugins)).values()
            return [name for name in (*here, *there) if name.startswith("fairlead-")]

        with DaskPool(cluster.scheduler_address, initializer=remember, initargs=(7,)) as pool:
            assert 7 in pool.submit(remembered).result()
            assert len(plugins()) == 2
        assert plugins() == []
        with pytest.raises(errors.BrokenPoolError, match="the initializer refuses"):
            DaskPool(cluster.scheduler_address, initializer=pooltasks.refuse)
        assert plugins() == []


def test_pool_whose_scheduler_dies_ends_its_tasks_and_takes_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairlead.pools import dask

    monkeypatch.setattr(dask, "CONNECT_S", 3)
    gate = str(tmp_path / "never")
    with (
        clusters.cluster(["127.0.0.1", "127.0.0.1"], nanny=False) as address,
        DaskPool(address) as pool,
    ):
        begun = [pool.submit(pooltasks.wait_for, gate) for _ in range(6)]
        until(lambda: pool.statistics().running == 2)
        client = pool._engine._client  # type: ignore[attr-defined]
        with contextlib.suppress(OSError):
            client.run_on_scheduler(os._exit, 9)
        for future in begun:
            with pytest.raises((errors.BrokenPoolError, errors.WorkerDiedError)):
                future.result(100)
        until(lambda: pool._engine.closed)
        with pytest.raises(errors.BrokenPoolError, match="the connection to the cluster's scheduler is lost"):
            pool.submit(square, 2)


def test_client_of_others_is_used_and_stays_open() -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        with DaskPool(client=client) as pool:
            assert pool.submit(square, 3).result() == 9
        assert client.submit(square, 4).result() == 16
        with pytest.raises(errors.UsageError, match="either an address or a client"):
            DaskPool(cluster.scheduler_address, client=client)
    with pytest.raises(errors.BrokenPoolError, match="the client is closed"):
        DaskPool(client=client)


def test_large_calls_at_once_bring_no_advice(pool: DaskPool, recwarn: pytest.WarningsRecorder) -> None:
    arrays = [np.ones(2_000_000) for _ in range(8)]
    assert list(pool.map(len, arrays, chunksize=1)) == 8 * [2_000_000]
    assert not [str(warning.message) for warning in recwarn if "large graph" in str(warning.message)]


def test_demonstration_runs_every_workload_on_a_cluster_and_leaves_nothing(tmp_path: Path) -> None:
    program = Path(__file__).parents[2] / "tools" / "cluster_demo.py"
    environment = {**os.environ, "DEMO_TEST": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, program, "--fraction", "0.001"], env=environment, capture_output=True, text=True,
        timeout=150, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 workers" in done.stdout
    left_out = 0 if workloads.has_pyperformance() else 2
    assert done.stdout.count("left out, it needs the package pyperformance") == left_out
    assert done.stdout.count("all right") == len(workloads.catalogue()) - left_out
    until(lambda: not living(f"DEMO_TEST={tmp_path}"))
