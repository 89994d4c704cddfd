"""DaskPool: calls on the workers of a dask cluster."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead import machine
from fairlead.errors import MissingExtraError, SerializationError, UsageError
from fairlead.pools.engine import forks
from fairlead.pools.engine.contract import Broken, Lost, Task, Worker
from fairlead.pools.engine.lock import EngineLock
from fairlead.pools.engine.worker_manager import WorkerManager
from fairlead.pools.executor.base import Pool, checked, checked_callable, pool_name
from fairlead.pools.serialization import calls
from fairlead.pools.serialization.chunk_loss import lost
from fairlead.pools.serialization.chunks import ChunkCalls, call_chunk, chunk_of
from fairlead.pools.serialization.failure import Failure

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

CONNECT_S = 30
CHECK_S = 1.0
"""How often a thread that waits for an answer checks whether the client is still there."""
GONE = ("closing", "closed")
"""States of a client that has given its scheduler up."""
LARGE = 1 << 20

_advice = EngineLock()
"""Of dask's configuration, which is the process's: what one thread sets, another's end would take back."""


@forks.in_child
def _renew() -> None:
    global _advice
    _advice = EngineLock()


class DaskPool(Pool):
    """Calls on a dask cluster: many machines, or one that is started here for the purpose.

    A task is with the cluster from its beginning on; at most as many are as there are workers, and the others
    wait here. What is sent, and how, is as for ProcessPool, but in dask's own messages; large buffers go
    beside them, without a copy. Functions go by reference, so that a cluster's workers must have the modules
    and fairlead itself, of the same version; those of ``__main__`` go by value.

    A task whose worker is lost is run again by the cluster, as often as its scheduler's
    ``allowed-failures`` say, and raises WorkerDiedError then. Time-outs count from the beginning and, like
    cancellation, end the future at once; the worker's thread is sent an exception, **which does not arrive
    inside a call into C**. Dask has no way to kill one task's process.

    Args:
        address: the scheduler's, as "tcp://10.0.0.1:8786" or "tls://..."; None: a cluster of processes on
            this machine, which ends with the pool.
        client: a ``distributed.Client``, not asynchronous, to be used in place of one of the pool's own. It
            stays open.
        max_workers: tasks at once; None: as many as the cluster has threads (embedded: as there are cores).
        security: a ``distributed.security.Security``, whose TLS contexts are used for all connections.
        initializer: called in each worker process before its first task, those that join later included. If
            it raises, the constructor raises a BrokenPoolError whose cause is that exception.
        thread_name_prefix: of the threads that wait for the cluster.

    Raises:
        MissingExtraError: distributed is not installed (``pip install 'fairlead[dask]'``).
        BrokenPoolError: there is no cluster at the address, it has no workers, or the client is closed.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        client: Client | None = None,
        max_workers: int | None = None,
        security: Security | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        thread_name_prefix: str = "",
    ) -> None:
        checked_callable(initializer=initializer)
        if max_workers is not None:
            checked("max_workers", max_workers)
        cluster: Any = None
        own = client is None
        if client is None:
            cluster, client = _connect(address, max_workers, security)
        elif address is not None or security is not None:
            raise UsageError("give DaskPool either an address or a client")
        elif client.asynchronous:
            raise UsageError("an asynchronous client cannot be waited for by threads: make another")
        elif client.status != "running":
            raise Broken(f"the client is {client.status}")
        plugin = "" if initializer is None else f"fairlead-{uuid.uuid4()}"
        try:
            if initializer is not None:
                _initialize(client, plugin, initializer, initargs)
            threads = _threads(client)
        except BaseException:
            _disconnect(client, cluster, plugin, own=own)
            raise
        name = pool_name(thread_name_prefix, "DaskPool")
        self._begin(_Cluster(max_workers or threads, client, cluster, plugin, own=own, name=name))


def _connect(address: str | None, workers: int | None, security: Security | None) -> tuple[Any, Client]:
    """An embedded cluster, or None; and the client."""
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError("DaskPool needs dask.distributed: pip install 'fairlead[dask]'") from error
    cluster = None
    try:
        if address is None:
            cluster = distributed.LocalCluster(
                n_workers=workers or machine.cores().usable, threads_per_worker=1, processes=True,
                dashboard_address="127.0.0.1:0", security=security,
            )  # fmt: skip
        # not asynchronous, and not the client that other code of dask's finds by itself
        client = distributed.Client(
            cluster or address, security=security, timeout=CONNECT_S, set_as_default=False
        )
    except Exception as error:
        if cluster is not None:
            cluster.close()
        where = "on this machine could not be started" if address is None else f"at {address} is not reached"
        raise Broken(f"the cluster {where}: {error}") from error
    return cluster, client


def _initialize(client: Client, plugin: str, function: Callable[..., object], args: tuple[Any, ...]) -> None:
    from fairlead.pools.distributed.remote import Initialize

    try:
        client.register_plugin(Initialize(function, args), name=plugin)
    except Exception as error:
        raise Broken(str(error)) from error


def _threads(client: Client) -> int:
    threads: int = sum(client.nthreads().values())
    if not threads:
        raise Broken("the cluster has no workers: start some before the pool")
    return threads


def _disconnect(client: Client, cluster: Any, plugin: str, *, own: bool) -> None:
    if plugin and cluster is None and client.status == "running":
        # it lives on, and workers that join it are none of this pool's any more
        with contextlib.suppress(Exception):  # a worker says by any exception that it had no plugin
            client.unregister_worker_plugin(plugin)
    if own:
        with contextlib.suppress(TimeoutError, OSError):
            client.close()
    if cluster is not None:
        cluster.close()


class _Cluster(WorkerManager):
    """A manager whose workers are the cluster's, and which leaves it when they have gone."""

    sends = True

    def __init__(
        self, workers: int, client: Client, cluster: Any, plugin: str, *, own: bool, name: str
    ) -> None:
        self._client: Client | None = client
        self._cluster = cluster
        self._plugin = plugin
        self._own = own
        self._leaving_it = EngineLock()
        super().__init__("dask", workers, lambda: _Remote(client, self._break), name=name, call_cost_s=2e-3)

    def portable(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return calls.portable(function, by_value=_by_value(function))

    def forget_after_fork(self) -> None:
        super().forget_after_fork()
        self._leaving_it = EngineLock()
        self._client = self._cluster = None  # the parent's: not to be closed from here

    def ended(self) -> None:
        super().ended()
        self._leave_cluster()

    def join(self, timeout: float | None = None) -> bool:
        if not super().join(timeout):
            return False
        self._leave_cluster()
        return True

    def _leave_cluster(self) -> None:
        with self._leaving_it:
            client, self._client = self._client, None
            if client is not None:
                _disconnect(client, self._cluster, self._plugin, own=self._own)


def _by_value(function: Callable[..., Any]) -> bool:
    return getattr(function, "__module__", None) == "__main__"


class _Killed(Lost):
    """One task has lost so many workers that the cluster gives it up."""


@dataclass(slots=True, eq=False)
class _Remote(Worker):
    """One task at a time with the cluster."""

    _client: Client
    _break: Callable[[BaseException], None]
    _future: Any = None
    _number: str = ""
    _stopped: bool = False
    _sent: int = 0
    _received: int = 0

    def traffic(self) -> tuple[int, int]:
        return self._sent, self._received

    def start(self) -> None:
        """The cluster's own are running."""

    def run(self, task: Task) -> Any:
        by_value = _by_value(task.function)
        try:
            while True:
                kind, value = self._answer(task, by_value=by_value)
                if kind != calls.UNREADABLE or not calls.read_again(task, value.error, by_value=by_value):
                    return calls.outcome(task, kind, value)
                by_value = True
        except _Killed as killed:
            chunk = chunk_of(task)
            if chunk is None or chunk.length == 1:
                raise
            return self._one_by_one(task, chunk, killed)

    def _one_by_one(self, task: Task, chunk: ChunkCalls, killed: _Killed) -> tuple[list[Any], int]:
        """The calls of a chunk that the cluster has given up, as it gives up calls: one of them has ended its
        workers."""
        function, _, star = task.args
        outcomes: list[Any] = []
        spent_ns = 0
        for item in chunk:
            alone = Task(task.future, call_chunk, (function, ChunkCalls([item]), star), {}, task.options)
            alone.context = task.context
            if self._stopped:
                raise killed
            try:
                (outcome,), one_ns = self.run(alone)
            except (Lost, SerializationError) as error:
                outcome, one_ns = Failure(error.error(alone) if isinstance(error, Lost) else error), 0
            outcomes.append(outcome)
            spent_ns += one_ns
        return outcomes, spent_ns

    def _answer(self, task: Task, *, by_value: bool) -> tuple[int, Any]:
        from distributed import CancelledError
        from distributed.client import ClosedClientError
        from distributed.scheduler import KilledWorker

        from fairlead.pools.distributed import remote

        self._number = f"fairlead-{uuid.uuid4()}"
        parcel = remote.Parcel.of(calls.CALL, calls.pack(task, by_value=by_value))
        self._sent += parcel.nbytes
        try:
            with _without_advice(parcel.nbytes):
                self._future = future = self._client.submit(
                    remote.call, parcel, self._number, key=self._number, pure=False
                )
            del parcel
            if self._stopped:
                self._stop(future)
            answer = self._awaited(future)
        except KilledWorker as gone:
            workers = gone.args[2] + 1
            raise _Killed(f"the cluster has lost {workers} workers in a row with this task") from None
        except (CancelledError, concurrent.futures.CancelledError, ClosedClientError):
            if self._client.status in GONE:
                raise self._gone() from None
            raise lost(task, "the cluster has cancelled this task") from None
        finally:
            self._future = None
        self._received += answer.nbytes
        if (chunk := chunk_of(task)) is not None:
            chunk.bytes_in = answer.nbytes
        try:
            return answer.kind, answer.load()
        except Exception as error:
            raise SerializationError(f"the result cannot be read here: {error!r}") from error

    def _awaited(self, future: Any) -> Any:
        """What a task has sent before its client closes; what was given to that while it tried to connect
        again never ends."""

        async def awaited() -> Any:  # distributed's own result(timeout=) may lose a result that comes late
            return await future

        answer = asyncio.run_coroutine_threadsafe(awaited(), self._client.loop.asyncio_loop)
        while not concurrent.futures.wait((answer,), CHECK_S).done:
            if self._client.status in GONE:
                answer.cancel()
                raise self._gone()
        return answer.result()

    def _gone(self) -> Broken:
        why = Broken("the connection to the cluster's scheduler is lost")
        self._break(why)
        return why

    def stop(self) -> bool:
        self._stopped = True
        if (future := self._future) is not None:
            self._stop(future)
        return True

    def _stop(self, future: Any) -> None:
        if self._client.status in GONE:
            return  # its thread finds out by itself
        future.cancel()
        self._client.loop.add_callback(_tell_to_stop, self._client, self._number)

    def close(self) -> None:
        """Nothing of it is kept."""


async def _tell_to_stop(client: Client, number: str) -> None:
    """Tells all workers, because only the scheduler knows which has it. Nothing waits for the answer, and
    if the cluster ends meanwhile it is none."""
    from fairlead.pools.distributed import remote

    with contextlib.suppress(OSError):
        await client._run(remote.stop, number, on_error="ignore")


@contextlib.contextmanager
def _without_advice(size: int) -> Any:
    """Dask advises against large calls; these are what was asked for."""
    if size < LARGE:
        yield
        return
    import dask

    with _advice, dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        yield
