"""What the measured programs share. Their settings are one JSON object on the command line."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import sys
import threading
from typing import Any

from steps import spin

SETTINGS: dict[str, Any] = json.loads(sys.argv[1])
PR_SET_PDEATHSIG = 1


def set_switch_interval() -> None:
    """Shorten the switch interval, if the settings say so."""
    if "switch_interval" in SETTINGS:
        sys.setswitchinterval(SETTINGS["switch_interval"])


def fork_workers() -> None:
    """Fork the further processes that the settings ask for. They serve the same sockets, say nothing, and end
    with the first."""
    for _ in range(SETTINGS.get("workers", 1) - 1):
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return


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
