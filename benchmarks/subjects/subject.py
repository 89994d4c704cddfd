"""What the measured programs share. Their settings are one JSON object on the command line."""

from __future__ import annotations

import json
import mmap
import os
import sys
import threading
import time
from typing import Any

SETTINGS: dict[str, Any] = json.loads(sys.argv[1])


def schedule() -> None:
    """Schedule the GIL if the settings say so; stock imports nothing of fairlead."""
    share = SETTINGS.get("share")
    if share is not None:
        import fairlead.gil

        fairlead.gil.schedule(cpu_share=share)


UNIT = 1000
BATCH = 16


def unit() -> None:
    """Some tens of microseconds of CPU-bound Python code."""
    x = 0
    while x < UNIT:
        x += 1


def spin(done: memoryview | None = None, place: int = 0) -> None:
    """CPU-bound Python code that is never done; it counts the nanoseconds of work that it did.

    A unit counts as long as it took, but no more than half as much again as the quickest of its batch, which
    had a core and the GIL to itself: so neither waiting nor looking on counts, and how fast the core is just
    then, which may change by half within a second, does not matter.
    """
    clock = time.perf_counter_ns
    work = 0
    while True:
        took = []
        begin = clock()
        for _ in range(BATCH):
            unit()
            end = clock()
            took.append(end - begin)
            begin = end
        most = min(took) * 3 // 2
        work += sum(min(one, most) for one in took)
        if done is not None:
            done[place] = work


def spinners() -> dict[str, Any]:
    """Start as many CPU-bound threads as the settings say. Their facts: a file with an integer for each, of
    the nanoseconds of work that it has done."""
    count = SETTINGS.get("cpu_threads", 0)
    if count == 0:
        return {}
    number = os.memfd_create("work")
    os.truncate(number, 8 * count)
    done = memoryview(mmap.mmap(number, 8 * count)).cast("q")
    for place in range(count):
        threading.Thread(target=spin, args=(done, place), daemon=True).start()
    return {"work": f"/proc/{os.getpid()}/fd/{number}"}


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)
