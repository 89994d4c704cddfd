"""fairlead as a backend of joblib: ``joblib.parallel_config(backend="fairlead")`` once this is imported."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from joblib.parallel import (
    AutoBatchingMixin,
    FallbackToBackend,
    ParallelBackendBase,
    SequentialBackend,
    register_parallel_backend,
)

from fairlead import machine
from fairlead.pools.engine.future import Future
from fairlead.pools.executor.base import Pool
from fairlead.pools.shared import shared_pool

OF_JOBLIB = {"context", "max_nbytes", "mmap_mode", "prefer", "require", "temp_folder", "verbose"}
"""What joblib gives each backend besides the pool's options."""


class FairleadBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc] # joblib has no types
    """Batches of joblib's calls are tasks of a pool.

    Args:
        kind: of the pool, as ``fairlead.pools.pool`` takes it.
        retries: how often a batch is run again whose worker died.
        nesting_level, inner_max_num_threads: joblib's.
        options: of the pool, as ``fairlead.pools.shared_pool`` takes them. ``joblib.Parallel`` takes more of
            them.
    """

    supports_retrieve_callback = True
    supports_return_generator = True
    supports_timeout = True

    def __init__(
        self,
        kind: str = "processes",
        retries: int = 1,
        nesting_level: int | None = None,
        inner_max_num_threads: int | None = None,
        **options: Hashable,
    ) -> None:
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        self._kind = kind
        self.uses_threads = self.supports_sharedmem = kind == "threads"
        self.supports_inner_max_num_threads = kind == "processes"
        self._retries = retries
        self._options = options
        self._pool: Pool | None = None
        self._futures: set[Future[Any]] = set()

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None:
            return 1
        return n_jobs if n_jobs > 0 else max(machine.cores().usable + 1 + n_jobs, 1)

    def configure(self, n_jobs: int = 1, parallel: Any = None, **given: Any) -> int:
        workers = self.effective_n_jobs(n_jobs)
        if workers == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        self.parallel = parallel
        options = self._options | {name: value for name, value in given.items() if name not in OF_JOBLIB}
        if self.inner_max_num_threads is not None:
            options["inner_threads"] = self.inner_max_num_threads
        if self._kind == "threads" and self.nesting_level:
            # a pool for each level: calls that wait for calls of the same pool could take all of its threads
            options.setdefault("thread_name_prefix", f"ThreadPool-of-joblib-level-{self.nesting_level}")
        self._pool = shared_pool(self._kind, workers, **options).with_options(retries=self._retries)
        return workers

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], object] | None = None) -> Any:
        assert self._pool is not None
        future = self._pool.submit(func)
        self._futures.add(future)
        future.listen(self._futures.discard)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    apply_async = submit  # its name before joblib 1.5

    def retrieve_result_callback(self, out: Any) -> Any:
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:  # noqa: ARG002 - the pool is always ready
        futures = list(self._futures)
        for future in futures:  # first, as a worker whose task is stopped would begin the next
            future.cancel_queued()
        for future in futures:
            future.cancel()

    def terminate(self) -> None:
        self._pool = None
        self.reset_batch_stats()


register_parallel_backend("fairlead", FairleadBackend)
