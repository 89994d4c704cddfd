"""What joblib's calls cost over fairlead, against loky, which is joblib's own.

    pip install --group bench --group ecosystem
    python benchmarks/pools_joblib.py [--rounds 7] [--quick] [--json FILE]

10,000 calls of 100 us (--quick: 200) by two workers, which are up already:

    seconds         wall time of one Parallel() over all of them
    CPU             CPU time of this process meanwhile, in seconds
    of the work     wall time, as a multiple of the calls' own on two cores
    MiB             the most memory that it takes meanwhile, workers included, beyond what there was
"""

from __future__ import annotations

import time

import harness
import joblib
import pool_loops
from subjects.calls import busy

import fairlead.pools.joblib  # noqa: F401 - which makes it a backend

WORKERS = 2
CALL_S = 100e-6


def measure(mode: str, calls: int) -> harness.FIGURES:
    with joblib.parallel_config(backend=mode, n_jobs=WORKERS):
        joblib.Parallel()(joblib.delayed(busy)(CALL_S) for _ in range(10 * WORKERS))
        begin, cpu = time.perf_counter(), time.process_time()
        joblib.Parallel()(joblib.delayed(busy)(CALL_S) for _ in range(calls))
        seconds = time.perf_counter() - begin
        cpu = time.process_time() - cpu
        with pool_loops.Memory() as memory:
            joblib.Parallel()(joblib.delayed(busy)(CALL_S) for _ in range(calls))
    return {
        "seconds": seconds,
        "CPU": cpu,
        "of the work": seconds / (calls * CALL_S / WORKERS),
        "MiB": memory.more_mib(),
    }


def main() -> None:
    options = harness.arguments(__doc__, rounds=7).parse_args()
    calls = 200 if options.quick else 10_000
    row = harness.Row(
        "joblib",
        lambda mode: measure(mode, calls),
        ("loky", "fairlead"),
        [
            harness.Target("seconds", "fairlead", at_most=0.5, of="loky"),
            harness.Target("MiB", "fairlead", at_most=1.0, of="loky"),
        ],
    )
    harness.run("What do joblib's calls cost?", [row], options)


if __name__ == "__main__":
    main()
