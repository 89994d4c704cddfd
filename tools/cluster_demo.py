"""Starts a dask scheduler and workers on this machine's loopback, and runs the lab's pool workloads on them.

    tools/cluster_demo.py [--workers 2] [--fraction 0.05]

Prints for each workload how long it took on the cluster and here, one task after another, and whether the
answers are right.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairlead.lab.experiments import probe_workloads as workloads
from fairlead.pools import DaskPool, Pool, SequentialPool

START_S = 60


@contextlib.contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program of dask's, in a group of its own, which ends with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[str]:
    """The address of a scheduler that has so many workers."""
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as running:
        told = Path(place) / "scheduler.json"
        here = ("--no-dashboard", "--scheduler-file", str(told))
        program = running.enter_context(
            started("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", *here)
        )
        address = wait_for_address(told, program)
        for _ in range(workers):
            running.enter_context(
                started(
                    "distributed.cli.dask_worker",
                    address,
                    "--host",
                    "127.0.0.1",
                    "--nthreads",
                    "1",
                    "--no-dashboard",
                    "--local-directory",
                    place,
                )
            )
        wait_for_workers(address, workers)
        yield address


def wait_for_address(told: Path, program: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and program.poll() is None:
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            address: str = json.loads(told.read_text())["address"]
            return address
        time.sleep(0.05)
    raise SystemExit("the scheduler has not started; is distributed installed? pip install 'fairlead[dask]'")


def wait_for_workers(address: str, workers: int) -> None:
    import distributed

    with distributed.Client(address, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=START_S)


def timed(pool: Pool, work: workloads.Workload, items: list[Any]) -> tuple[float, int]:
    """Seconds, and wrong answers."""
    begin = time.perf_counter()
    results = list(pool.map(work.function, items))
    return time.perf_counter() - begin, work.wrong(results)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--fraction", type=float, default=0.05, help="of each workload's tasks")
    options = parser.parse_args()
    wrong = 0
    with cluster(options.workers) as address, DaskPool(address) as pool, SequentialPool() as alone:
        print(f"scheduler {address}, {pool.workers} workers")
        for work in workloads.catalogue():
            items = work.items(options.fraction if work.tasks < 10_000 else options.fraction / 100)
            there, wrong_there = timed(pool, work, items)
            here, wrong_here = timed(alone, work, items)
            wrong += wrong_there + wrong_here
            verdict = "all right" if not wrong_there else f"{wrong_there} WRONG"
            print(
                f"{work.name:14} {len(items):5} tasks  cluster {there:7.3f} s  sequential {here:7.3f} s  "
                f"{here / there:5.2f} x  {verdict}",
                flush=True,
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
