"""What a worker process has of its parent's at the moment of its start.

A worker that is forked from multiprocessing's server would have what was there when the server was started.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from fairlead import machine

THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)  # fmt: skip
"""By which libraries learn how many threads they may have, when they are loaded."""


@dataclass(frozen=True)
class Surroundings:
    """Sent to a worker, which takes them over before its initializer."""

    environment: dict[str, str]
    affinity: set[int]
    threads: int | None
    """Of libraries that have been loaded already; None: what they have chosen by the environment."""

    def take_over(self) -> None:
        for name in os.environ.keys() - self.environment.keys():
            del os.environ[name]
        os.environ.update(self.environment)
        with contextlib.suppress(OSError):  # the parent's cores may have been taken away meanwhile
            os.sched_setaffinity(0, self.affinity)
        if self.threads is not None and "numpy" in sys.modules:
            with contextlib.suppress(ImportError):
                import threadpoolctl

                threadpoolctl.threadpool_limits(self.threads)


def of_this_process(given: Mapping[str, str], inner_threads: int | None, workers: int) -> Surroundings:
    """Those of this moment.

    Args:
        given: variables besides those of os.environ.
        inner_threads: of BLAS and the like in each worker. None: a worker's part of the cores, where the
            program has not set how many.
    """
    environment = {**os.environ, **given}
    chosen = inner_threads is None and not environment.keys().isdisjoint(THREADS)
    threads = max(machine.cores().usable // workers, 1) if inner_threads is None else inner_threads
    if not chosen:
        environment |= dict.fromkeys(THREADS, str(threads))
    return Surroundings(environment, os.sched_getaffinity(os.getpid()), None if chosen else threads)
