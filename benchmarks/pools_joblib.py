"""What joblib's calls cost over fairlead, against loky, which is joblib's own.

    pip install --group bench --group ecosystem
    python benchmarks/pools_joblib.py [--rounds 7] [--quick] [--json FILE]

10,000 calls of 100 us (--quick: 200) by two workers, which are up already:

    seconds         wall time of one Parallel() over all of them
    CPU             CPU time of this process meanwhile, in seconds
    of the work     wall time, as a multiple of the calls' own on two cores
    besides ms      wall time besides that
    MiB             memory of the workers, which are begun anew, and what more this process has then
"""

from __future__ import annotations

import time

import harness
import joblib
import pool_loops
from joblib.externals.loky import get_reusable_executor
from subjects.calls import busy

import fairlead.pools.joblib  # noqa: F401 - which makes it a backend
from fairlead.pools import shared_pool

WORKERS = 2
CALL_S = 100e-6


def measure(mode: str, calls: int) -> harness.FIGURES:
    before = pool_loops.memory_mib()
    with joblib.parallel_config(backend=mode, n_jobs=WORKERS):
        joblib.Parallel()(joblib.delayed(busy)(CALL_S) for _ in range(10 * WORKERS))
        begin, cpu = time.perf_counter(), time.process_time()
        joblib.Parallel()(joblib.delayed(busy)(CALL_S) for _ in range(calls))
        seconds = time.perf_counter() - begin
        cpu = time.process_time() - cpu
        mib = pool_loops.memory_mib() - before
    end = {"loky": get_reusable_executor, "fairlead": lambda: shared_pool("processes", WORKERS)}[mode]
    end().shutdown(wait=True)
    own = calls * CALL_S / WORKERS
    return {
        "seconds": seconds,
        "CPU": cpu,
        "of the work": seconds / own,
        "besides ms": (seconds - own) * 1e3,
        "MiB": mib,
    }


def main() -> None:
    options = harness.arguments(__doc__, rounds=7).parse_args()
    calls = 200 if options.quick else 10_000
    row = harness.Row(
        "joblib",
        lambda mode: measure(mode, calls),
        ("loky", "fairlead"),
        [
            harness.Target("besides ms", "fairlead", at_most=0.5, of="loky"),
            harness.Target("MiB", "fairlead", at_most=1.0, of="loky"),
        ],
    )
    harness.run("What do joblib's calls cost?", [row], options)


if __name__ == "__main__":
    main()
