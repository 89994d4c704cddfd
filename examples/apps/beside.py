"""What stands beside other people's servers in the examples: threads of the same process that compute.

A program calls `compute()` when it has imported what it needs. How many threads there are to be, and whether
the switch interval is to be shortened, is said by the environment that `sample.py` prepares.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
import time
from pathlib import Path

from steps import count_to, spin

STEPS_PER_MS = int(os.environ.get("EXAMPLE_STEPS_PER_MS", "40000"))


def shorten_switch_interval() -> None:
    if interval := os.environ.get("EXAMPLE_SWITCH_INTERVAL"):
        sys.setswitchinterval(float(interval))


def work_done() -> memoryview | None:
    """A counter for each computing thread, of the nanoseconds of work that it has done; None without any."""
    path = Path(os.environ["EXAMPLE_WORK"])
    if path.stat().st_size == 0:
        return None
    with path.open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 0)).cast("q")


def compute() -> None:
    shorten_switch_interval()
    done = work_done()
    for place in range(0 if done is None else len(done)):
        threading.Thread(target=spin, args=(done, place), name=f"compute-{place}", daemon=True).start()


def query() -> None:
    """What a request does at a database: some Python before and after, and the database's 2 ms."""
    work(0.1)
    time.sleep(0.002)


def work(ms: float) -> None:
    """Python code that needs the GIL for about so long."""
    count_to(round(ms * STEPS_PER_MS))
