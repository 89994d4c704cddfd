"""What it costs to look at who waits, and to look for deadlocks all the time.

    python benchmarks/sync_waits.py [--rounds 9] [--only with] [--quick] [--json FILE]

Look: 100 threads wait; CPU time of one picture, for each of them, beside that of sys._current_frames() with
traceback.extract_stack, which says where they are and not what for. Pair: CPU time of an uncontended
`async with` of a Lock, of `with`, and of a hand-over between two threads, with the detector looking once a
second and without it.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext

import harness

from fairlead.sync import Detector, Event, Lock, detect_deadlocks, waits

WAITING, PAIRS, PASSES = 100, 100_000, 5_000


def look(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        event, many = Event(), max(4, WAITING // scale)
        threads = [threading.Thread(target=event.wait) for _ in range(many)]
        for thread in threads:
            thread.start()
        while event.statistics().waiting < many:
            time.sleep(0.001)
        with detect_deadlocks(interval=3600) as detector:
            begin = time.thread_time_ns()
            for _ in range(10):
                if mode == "frames":
                    for frame in sys._current_frames().values():
                        traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=False)
                elif mode == "waits":
                    waits()
                else:
                    detector.now()
            used = (time.thread_time_ns() - begin) / 10 / many / 1000
        event.set()
        for thread in threads:
            thread.join()
        return {"CPU us": used}

    return take


def detector(mode: str) -> Detector | nullcontext[None]:
    return detect_deadlocks(on_deadlock=print) if mode == "detecting" else nullcontext()


def pair(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        lock, many = Lock(), PAIRS // scale
        with detector(mode):
            begin = time.thread_time_ns()
            for _ in range(many):
                with lock:
                    pass
            return {"CPU ns": (time.thread_time_ns() - begin) / many}

    return take


def async_pair(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        lock, many = Lock(), PAIRS // scale

        async def main() -> float:
            begin = time.thread_time_ns()
            for _ in range(many):
                async with lock:
                    pass
            return (time.thread_time_ns() - begin) / many

        with detector(mode):
            return {"CPU ns": asyncio.run(main())}

    return take


def hand_over(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        there, back, many = Lock(), Lock(), PASSES // scale
        there.acquire()
        back.acquire()

        def other() -> None:
            for _ in range(many):
                there.acquire()
                back.release()

        with detector(mode):
            thread = threading.Thread(target=other)
            thread.start()
            begin = time.process_time_ns()
            for _ in range(many):
                there.release()
                back.acquire()
            used = (time.process_time_ns() - begin) / many / 1000
            thread.join()
        return {"CPU us": used}

    return take


def main() -> None:
    parser = harness.arguments(__doc__, rounds=9)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    scale = 50 if options.quick else 1
    modes = ["off", "detecting"]
    rows = [
        harness.Row("look, each of 100 that wait", look(scale), ["frames", "waits", "find deadlocks"]),
        harness.Row(
            "with", pair(scale), modes, [harness.Target("CPU ns", "detecting", at_most=1.1, of="off")]
        ),
        harness.Row("async with", async_pair(scale), modes),
        harness.Row(
            "hand-over",
            hand_over(scale),
            modes,
            [harness.Target("CPU us", "detecting", at_most=1.1, of="off")],
        ),
    ]
    harness.run(
        "What does it cost to look at who waits?", [row for row in rows if options.only in row.name], options
    )


if __name__ == "__main__":
    main()
