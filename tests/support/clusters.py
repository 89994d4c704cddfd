"""A dask scheduler and workers on loopback, each a process of its own, ended with their block."""

from __future__ import annotations

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

START_S = 60


@contextlib.contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program of this interpreter's, in a group of its own, which ends with the block."""
    process = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
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
def cluster(hosts: list[str], *, without_fairlead: str = "", nanny: bool = True) -> Iterator[str]:
    """The address of a scheduler that has a worker on each of these addresses of loopback.

    Args:
        without_fairlead: the host whose worker cannot import fairlead.
        nanny: whether each has a process that starts it again when it is lost.
    """
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as running:
        told = Path(place) / "scheduler.json"
        scheduler = ("-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0")
        program = running.enter_context(started(*scheduler, "--no-dashboard", "--scheduler-file", str(told)))
        address = _address(told, program)
        for host in hosts:
            absent = "sys.modules['fairlead'] = None; " if host == without_fairlead else ""
            code = f"import sys; {absent}from distributed.cli.dask_worker import main; main()"
            start = ("-c", code) if absent else ("-m", "distributed.cli.dask_worker")
            running.enter_context(
                started(
                    *start, address, "--host", host, "--nthreads", "1", "--no-dashboard",
                    "--local-directory", place, *[] if nanny else ["--no-nanny"],
                )
            )  # fmt: skip
        _wait_for_workers(address, len(hosts))
        yield address


def _address(told: Path, program: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and program.poll() is None:
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            address: str = json.loads(told.read_text())["address"]
            return address
        time.sleep(0.05)
    raise RuntimeError(
        "the scheduler has not started; is distributed installed? pip install 'fairlead[dask]'"
    )


def _wait_for_workers(address: str, workers: int) -> None:
    import distributed

    with distributed.Client(address, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=START_S)
