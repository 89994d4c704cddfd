"""What the measured programs share. Their settings are one JSON object on the command line."""

from __future__ import annotations

import json
import mmap
import os
import sys
import threading
from typing import Any

from steps import spin

SETTINGS: dict[str, Any] = json.loads(sys.argv[1])


def set_switch_interval() -> None:
    """Shorten the switch interval, if the settings say so."""
    if "switch_interval" in SETTINGS:
        sys.setswitchinterval(SETTINGS["switch_interval"])


def spinners() -> dict[str, Any]:
    """Start as many CPU-bound threads as the settings say. Their facts: a file with an integer for each, of
    the nanoseconds of work that it has done; and their numbers."""
    count = SETTINGS.get("cpu_threads", 0)
    if count == 0:
        return {}
    number = os.memfd_create("work")
    os.truncate(number, 8 * count)
    done = memoryview(mmap.mmap(number, 8 * count)).cast("q")
    threads = [threading.Thread(target=spin, args=(done, place), daemon=True) for place in range(count)]
    for thread in threads:
        thread.start()
    return {"work": f"/proc/{os.getpid()}/fd/{number}", "spinners": [thread.native_id for thread in threads]}


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)
