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


def unit() -> None:
    """Some tens of microseconds of CPU-bound Python code."""
    x = 0
    while x < UNIT:
        x += 1


def spin(done: memoryview | None = None, place: int = 0) -> None:
    """CPU-bound Python code that is never done; it counts its units."""
    count = 0
    while True:
        unit()
        count += 1
        if done is not None:
            done[place] = count


def unit_seconds() -> float:
    """What a unit takes that has a core and the GIL to itself: the quickest of some."""
    took = []
    for _ in range(200):
        begin = time.perf_counter()
        unit()
        took.append(time.perf_counter() - begin)
    return min(took)


def spinners() -> dict[str, Any]:
    """Start as many CPU-bound threads as the settings say. Their facts: a file with an integer for each, of
    the units that it has done, and how long a unit takes."""
    count = SETTINGS.get("cpu_threads", 0)
    if count == 0:
        return {}
    seconds = unit_seconds()
    number = os.memfd_create("work")
    os.truncate(number, 8 * count)
    done = memoryview(mmap.mmap(number, 8 * count)).cast("q")
    for place in range(count):
        threading.Thread(target=spin, args=(done, place), daemon=True).start()
    return {"work": f"/proc/{os.getpid()}/fd/{number}", "unit_seconds": seconds}


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)
