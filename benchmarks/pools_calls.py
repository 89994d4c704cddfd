"""What giving work to a pool costs, against the standard library's pools and others', in one run.

    python benchmarks/pools_calls.py [--rounds 7] [--only processes] [--quick] [--json FILE]

The figures, all of pools with two workers, in microseconds of wall time unless they say otherwise:

    start ms        from the constructor to the first result
    round trip      submit().result(), one by one
    round trip CPU  CPU time of this process for one
    submit          for each of many tasks submitted at once, until the last has been
    stream          the same, until all have ended
    and workers' CPU  the same with the workers'
    map             for each item of map(), 10,000 of them, in the pool's own chunks: the best of three
    map in chunks   for each item of map(), chunks of 100
    echo 0.5 MB     a round trip of bytes of that size, there and back
    array 50 MB ms  a round trip of a numpy array of that size, of which the shape comes back: the median of
                    nine, after the first two, for which memory must be found
    both ways ms    the same, of which the array comes back
    first array ms  the first of these
    copy 50 MB ms   copying it within this process
    8 workers ms    from the constructor until eight workers have each had a call of 0.1 s, less these
    million MiB     memory that a million integers take on their way through stream() or what is most like it,
                    beyond what there was: the most at any moment
"""

from __future__ import annotations

import concurrent.futures
import importlib.util
import multiprocessing
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import harness
import pool_loops
from subjects.calls import identity, shape

from fairlead.pools import ProcessPool, ThreadPool

WORKERS = 2
NAP_S = 0.1
METHODS = ("forkserver", "spawn", "fork")
PEERS = ("loky", "mpire", "pebble")
"""Measured beside the start method that is the default here, where they are installed (pip install --group
bench)."""


class Classic:
    """multiprocessing.Pool with an executor's submit."""

    def __init__(self, pool: Any) -> None:
        self.pool = pool

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        result = self.pool.apply_async(function, args)
        result.result = result.get
        return result

    def map(self, function: Callable[..., Any], items: Any, chunksize: int | None = None) -> Any:
        return self.pool.map(function, items, chunksize)

    def stream(self, function: Callable[..., Any], items: Any) -> Any:
        return self.pool.imap(function, items, pool_loops.CHUNK)


class Mpire(Classic):
    """Its pool is for apply or for map, not for both: a map after calls hands the calls' arguments on."""

    map = None  # type: ignore[assignment]


class Pebble:
    """Its pool, with an executor's arguments."""

    def __init__(self, pool: Any) -> None:
        self.pool = pool

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.pool.schedule(function, args=args)

    def map(self, function: Callable[..., Any], items: Any, chunksize: int = 1) -> Any:
        return self.pool.map(function, items, chunksize=chunksize).result()


@contextmanager
def made(mode: str, workers: int = WORKERS) -> Iterator[Any]:
    library, _, method = mode.partition(" ")
    if mode == "ThreadPoolExecutor":
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            yield pool
    elif mode == "ThreadPool":
        with ThreadPool(workers) as ours:
            yield ours
    elif library == "ProcessPoolExecutor":
        context = multiprocessing.get_context(method)
        with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool_:
            yield pool_
    elif library == "multiprocessing.Pool":
        with multiprocessing.get_context(method).Pool(workers) as classic:
            yield Classic(classic)
    elif mode == "loky":
        with importlib.import_module("loky").ProcessPoolExecutor(workers) as pool_:
            yield pool_
    elif mode == "mpire":
        with importlib.import_module("mpire").WorkerPool(workers, start_method="forkserver") as classic:
            yield Mpire(classic)
    elif mode == "pebble":
        context = multiprocessing.get_context("forkserver")
        with importlib.import_module("pebble").ProcessPool(workers, context=context) as pool_:
            yield Pebble(pool_)
    else:
        with ProcessPool(workers, mp_context=method) as processes:  # type: ignore[arg-type]
            yield processes


def copied_ms(array: Any) -> float:
    """A copy of it within this process, into memory that is there already: what memory can do."""
    room = array.copy()
    return statistics.median(
        pool_loops.each_us(1, lambda: room.__setitem__(slice(None), array)) / 1e3 for _ in range(9)
    )


def measure(mode: str, *, quick: bool, processes: bool) -> harness.FIGURES:
    calls = 20 if quick else 1000
    began = time.perf_counter()
    with made(mode) as pool:
        figures = pool_loops.bring_up(pool, began)
        figures |= pool_loops.call(pool, calls, mapped=0 if pool.map is None else 100 * calls)
        if processes:
            import numpy as np

            data = bytes(500_000)
            figures["echo 0.5 MB"] = pool_loops.each_us(
                max(calls // 10, 2), lambda: pool.submit(identity, data).result()
            )
            array = np.ones(50_000_000 // 8)
            taken = [
                pool_loops.each_us(1, lambda: pool.submit(shape, array).result()) / 1e3
                for _ in range(3 if quick else 11)
            ]
            figures["first array ms"] = taken[0]
            figures["array 50 MB ms"] = statistics.median(taken[2:])
            returned = [
                pool_loops.each_us(1, lambda: pool.submit(identity, array).result()) / 1e3
                for _ in range(3 if quick else 11)
            ]
            figures["both ways ms"] = statistics.median(returned[2:])
            figures["copy 50 MB ms"] = copied_ms(array)
    if processes and not quick:
        figures |= eight_workers(mode) | a_million(mode)
    return figures


def eight_workers(mode: str) -> harness.FIGURES:
    began = time.perf_counter()
    with made(mode, 8) as pool:
        for future in [pool.submit(time.sleep, NAP_S) for _ in range(8)]:
            future.result()
        return {"8 workers ms": (time.perf_counter() - began - NAP_S) * 1e3}


def a_million(mode: str) -> harness.FIGURES:
    with made(mode) as pool:
        if (stream := getattr(pool, "stream", None)) is None:
            return {}
        for future in [pool.submit(time.sleep, NAP_S) for _ in range(WORKERS)]:
            future.result()
        deque(stream(identity, range(10_000)), maxlen=0)  # all workers are up, and have what calls need
        with pool_loops.Memory() as memory:
            deque(stream(identity, range(1_000_000)), maxlen=0)
    return {"million MiB": memory.more_mib()}


def main() -> None:
    parser = harness.arguments(__doc__, rounds=7)
    parser.add_argument("--only", default="", help="the row whose name contains this")
    options = parser.parse_args()
    targets = [
        harness.Target("round trip", "ThreadPool", at_most=1.0, of="ThreadPoolExecutor"),
        harness.Target("submit", "ThreadPool", at_most=0.5, of="ThreadPoolExecutor"),
        harness.Target("stream", "ThreadPool", at_most=0.7, of="ThreadPoolExecutor"),
    ]
    rows = [
        harness.Row(
            "threads",
            lambda mode: measure(mode, quick=options.quick, processes=False),
            ("ThreadPoolExecutor", "ThreadPool"),
            targets,
        )
    ]
    for method in METHODS:
        mine, theirs = f"ProcessPool {method}", f"ProcessPoolExecutor {method}"
        others = [
            peer for peer in PEERS if method == METHODS[0] and importlib.util.find_spec(peer) is not None
        ]
        rows.append(
            harness.Row(
                f"processes, {method}",
                lambda mode: measure(mode, quick=options.quick, processes=True),
                (theirs, f"multiprocessing.Pool {method}", *others, mine),
                [
                    harness.Target("submit", mine, at_most=0.5, of=theirs),
                    harness.Target("round trip", mine, at_most=0.5, of=theirs),
                    harness.Target("echo 0.5 MB", mine, at_most=0.2, of=theirs),
                    harness.Target("map", mine, at_most=1.0, of=f"multiprocessing.Pool {method}"),
                    harness.Target(
                        "both ways ms",
                        mine,
                        at_most=1.1,
                        of=(theirs, f"multiprocessing.Pool {method}", *others),
                    ),
                    harness.Target("million MiB", mine, at_most=16.0),
                    *(
                        harness.Target(figure, mine, at_most=1.0, of=peer)
                        for figure in ("round trip", "echo 0.5 MB")
                        for peer in others
                        if peer in ("loky", "mpire")
                    ),
                ],
            )
        )
    asked = [row for row in rows if options.only in row.name]
    harness.run("What does giving work to a pool cost?", asked, options)


if __name__ == "__main__":
    main()
