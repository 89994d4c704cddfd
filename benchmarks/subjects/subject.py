"""What the measured programs share. Their settings are one JSON object on the command line."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

SETTINGS: dict[str, Any] = json.loads(sys.argv[1])


def schedule() -> None:
    """Schedule the GIL if the settings say so; stock imports nothing of fairlead."""
    share = SETTINGS.get("share")
    if share is not None:
        import fairlead.gil

        fairlead.gil.schedule(cpu_share=share)


def spin() -> None:
    """CPU-bound Python code that is never done."""
    x = 0
    while True:
        x += 1


def spinners() -> list[int]:
    """Start as many CPU-bound threads as the settings say; their native ids."""
    threads = [threading.Thread(target=spin, daemon=True) for _ in range(SETTINGS.get("cpu_threads", 0))]
    for thread in threads:
        thread.start()
    return [thread.native_id for thread in threads if thread.native_id is not None]


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)
