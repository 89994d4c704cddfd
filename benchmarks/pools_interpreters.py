"""What giving work to interpreters costs, against the standard library's InterpreterPoolExecutor, in one run.

    python3.14 benchmarks/pools_interpreters.py [--rounds 7] [--only calls] [--quick] [--json FILE]

Two workers; microseconds of wall time unless it says otherwise:

    start ms        from the constructor to the first result
    round trip      submit().result(), one by one
    round trip CPU  CPU time of this process, its interpreters included, for one
    submit          for each of many tasks submitted at once, until the last has been
    stream          the same, until all have ended
    and workers' CPU  the same with workers that are processes
    map             for each item of map(), 10,000 of them, in the pool's own chunks: the best of three
    map in chunks   for each item of map(), chunks of 100
    bytes in        for each 0.5 MB of bytes, eight under way, of which the length comes back
    view in         the same of a memoryview
    MB per worker   memory of the process for each idle worker
    fib speed-up    fib(28) twice, one after the other here, against both at once in two workers
"""

from __future__ import annotations

import concurrent.futures
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import harness
import pool_loops
from subjects.calls import fib, length

from fairlead.pools import InterpreterPool

WORKERS = 2
THEIRS = "InterpreterPoolExecutor"
OURS = "InterpreterPool"


@contextmanager
def made(mode: str) -> Iterator[Any]:
    if mode == THEIRS:
        with concurrent.futures.InterpreterPoolExecutor(WORKERS) as pool:  # type: ignore[attr-defined]
            yield pool
    else:
        with InterpreterPool(WORKERS) as ours:
            yield ours


def eight_under_way(pool: Any, data: Any, calls: int) -> float:
    waiting: deque[Any] = deque()
    begin = time.perf_counter()
    for _ in range(calls):
        if len(waiting) == 8:
            waiting.popleft().result()
        waiting.append(pool.submit(length, data))
    for future in waiting:
        future.result()
    return (time.perf_counter() - begin) / calls * 1e6


def measure(mode: str, *, quick: bool) -> harness.FIGURES:
    calls = 20 if quick else 1000
    memory = pool_loops.memory_mib()
    began = time.perf_counter()
    with made(mode) as pool:
        figures = pool_loops.bring_up(pool, began)
        figures["MB per worker"] = (pool_loops.memory_mib() - memory) / WORKERS
        items = (10 if mode == THEIRS else 100) * calls  # it makes a task of each item
        figures |= pool_loops.call(pool, calls, mapped=items)
        data = bytes(500_000)
        figures["bytes in"] = eight_under_way(pool, data, calls)
        figures["view in"] = eight_under_way(pool, memoryview(data), calls)
        number = 18 if quick else 28
        begin = time.perf_counter()
        fib(number)
        fib(number)
        alone = time.perf_counter() - begin
        begin = time.perf_counter()
        for future in [pool.submit(fib, number) for _ in range(2)]:
            future.result()
        figures["fib speed-up"] = alone / (time.perf_counter() - begin)
    return figures


def main() -> None:
    parser = harness.arguments(__doc__, rounds=7)
    parser.add_argument("--only", default="", help="the row whose name contains this")
    options = parser.parse_args()
    targets = [
        harness.Target(figure, OURS, at_most=at_most, of=THEIRS)
        for figure, at_most in {
            "submit": 0.5, "round trip": 0.2, "stream": 0.12, "map": 0.01, "bytes in": 0.25, "view in": 0.06,
            "start ms": 0.5, "MB per worker": 0.7,
        }.items()
    ]  # fmt: skip
    targets.append(harness.Target("fib speed-up", OURS, at_least=1.8))
    rows = [
        harness.Row("interpreters", lambda mode: measure(mode, quick=options.quick), (THEIRS, OURS), targets)
    ]
    asked = [row for row in rows if options.only in row.name]
    harness.run("What does giving work to interpreters cost?", asked, options)


if __name__ == "__main__":
    main()
