"""What a round trip between two interpreters takes: an object is put there, and put back.

    python benchmarks/sync_interpreters.py [--rounds 15] [--quick] [--json FILE]

Python 3.14 or newer, with fairlead installed from a wheel (an editable install cannot be imported by an
interpreter that may start no processes). Each interpreter has a GIL and a thread of its own. Peers: the queue
of concurrent.interpreters, which polls every 10 ms, and as the floor two threads of one interpreter with
queue.SimpleQueue. Figures are times of the clock, and CPU time of the process, per round trip.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import harness

from fairlead import sync

ROUND_TRIPS = {"concurrent.interpreters": 40}
MANY = 2_000
SMALL, LARGE = ("text", 1, 2.5, None), b"x" * 65536

ECHO = """
back.put("ready")
for _ in range(many):
    back.put(there.get())
"""

OURS = """
from fairlead._native import attach
there, back = attach(there), attach(back)
"""


def pair_of(mode: str) -> tuple[Any, Any]:
    if mode == "concurrent.interpreters":
        from concurrent import interpreters

        return interpreters.create_queue(), interpreters.create_queue()
    kind: Callable[[], Any] = {"Queue": sync.Queue, "SimpleQueue": sync.SimpleQueue}.get(
        mode.removeprefix("fairlead "), queue.SimpleQueue
    )
    return kind(), kind()


def round_trips(item: Any, scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        from concurrent import interpreters

        many = max(1, ROUND_TRIPS.get(mode, MANY) // scale)
        there, back = pair_of(mode)
        if mode.startswith("two threads"):
            scope = {"there": there, "back": back, "many": many}
            return timed(threading.Thread(target=exec, args=(ECHO, scope)), there, back, item, many)
        other = interpreters.create()
        try:
            if mode.startswith("fairlead"):
                other.prepare_main(there=sync.handle(there), back=sync.handle(back), many=many)
                other.exec(OURS)
            else:
                other.prepare_main(there=there, back=back, many=many)
            return timed(threading.Thread(target=other.exec, args=(ECHO,)), there, back, item, many)
        finally:
            other.close()

    return take


def timed(thread: threading.Thread, there: Any, back: Any, item: Any, many: int) -> dict[str, float]:
    thread.start()
    assert back.get() == "ready"
    begin, used = time.monotonic_ns(), time.process_time_ns()
    for _ in range(many):
        there.put(item)
        back.get()
    end, spent = time.monotonic_ns(), time.process_time_ns()
    thread.join()
    return {"us": (end - begin) / many / 1000, "CPU us": (spent - used) / many / 1000}


def main() -> None:
    options = harness.arguments(__doc__ or "", rounds=15).parse_args()
    if sys.version_info < (3, 14):
        raise SystemExit("sync_interpreters.py needs Python 3.14 or newer, for concurrent.interpreters")
    scale = 20 if options.quick else 1
    modes = [
        "concurrent.interpreters",
        "fairlead Queue",
        "fairlead SimpleQueue",
        "two threads, queue.SimpleQueue",
    ]
    targets = [harness.Target("us", mode, at_most=15) for mode in modes if mode.startswith("fairlead")]
    rows = [
        harness.Row("a small tuple", round_trips(SMALL, scale), modes, targets),
        harness.Row("64 KiB of bytes", round_trips(LARGE, scale), modes),
    ]
    harness.run("A round trip between two interpreters", rows, options)


if __name__ == "__main__":
    main()
