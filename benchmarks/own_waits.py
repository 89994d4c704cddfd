"""What it costs to look at what waits for what, and to look for deadlocks all the time."""

EXPERIMENT = {
    "id": "own.waits",
    "size_name": "pairs",
    "growth": False,
    "ways": "by",
    "value": "took_s",
    "metrics": [{"name": "took_s", "title": "took", "unit": "s"}],
    "cases": {
        "look": {
            "title": "A look at threads that wait",
            "question": "What does a picture of n threads that wait cost?",
            "explanation": (
                "CPU time of the thread that looks, for each that waits. sys._current_frames() with "
                "traceback says where threads are, and not what for."
            ),
            "size_name": "threads",
            "sizes": {"quick": [100], "standard": [100], "full": [100, 400]},
            "ways": ["frames", "waits", "detector.now"],
            "claims": [{"topic": "a look", "of": {"by": "waits"}, "over": {"by": "frames"}}],
        },
        "with": {
            "title": "A lock while deadlocks are looked for",
            "question": "What does `with lock` cost while a detector looks once a second?",
            "explanation": "CPU time of the thread for a pair.",
            "ways": ["off", "detecting"],
            "claims": [
                {
                    "topic": "with, watched",
                    "of": {"by": "detecting"},
                    "over": {"by": "off"},
                    "says": "a thread's `with lock` is dearer while deadlocks are looked for",
                    "otherwise": "a thread's `with lock` is no dearer while deadlocks are looked for",
                }
            ],
        },
        "async-with": {
            "title": "A lock in a task while deadlocks are looked for",
            "question": "What does `async with lock` cost while a detector looks once a second?",
            "explanation": (
                "CPU time of the thread for a pair. While a detector is on, a lock notes the task that "
                "acquires it."
            ),
            "ways": ["off", "detecting"],
            "claims": [
                {
                    "topic": "async with, watched",
                    "of": {"by": "detecting"},
                    "over": {"by": "off"},
                    "says": "a task's `async with lock` is dearer while deadlocks are looked for",
                    "otherwise": "a task's `async with lock` is no dearer while deadlocks are looked for",
                }
            ],
        },
        "hand-over": {
            "title": "A hand-over while deadlocks are looked for",
            "question": (
                "What does it cost to hand a lock to another thread while a detector looks once a second?"
            ),
            "explanation": "CPU time of the process for a hand-over to the other thread and back.",
            "size_name": "hand-overs",
            "sizes": {"quick": [2000], "standard": [5000], "full": [10000]},
            "ways": ["off", "detecting"],
            "claims": [
                {
                    "topic": "hand-over, watched",
                    "of": {"by": "detecting"},
                    "over": {"by": "off"},
                    "says": "a hand-over is dearer while deadlocks are looked for",
                    "otherwise": "a hand-over is no dearer while deadlocks are looked for",
                }
            ],
        },
    },
    "sizes": {"quick": [100000], "standard": [200000], "full": [400000]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}

import sys  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
import traceback  # noqa: E402
from contextlib import nullcontext  # noqa: E402

import own  # noqa: E402
import probe  # noqa: E402

LOOKS = 10


def look(by, n):
    sync = own.peer("fairlead.sync")
    event = sync.Event()
    threads = probe.start(n, lambda _: event.wait())
    probe.wait_until(lambda: event.statistics().waiting == n, "all threads wait")

    def frames():
        for frame in sys._current_frames().values():
            traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=False)

    with sync.detect_deadlocks(interval=3600) as detector:
        once = {"frames": frames, "waits": sync.waits, "detector.now": detector.now}[by]
        begin = time.thread_time()
        for _ in range(LOOKS):
            once()
        used = time.thread_time() - begin
    event.set()
    for thread in threads:
        thread.join()
    return used / LOOKS / n


def detector(by):
    detecting = by == "detecting"
    return own.peer("fairlead.sync").detect_deadlocks(on_deadlock=print) if detecting else nullcontext()


def pair(statement):
    def measure(by, n):
        with detector(by):
            return own.pair(statement, n, lambda: {"x": own.made("Lock")})

    return measure


def hand_over(by, n):
    there, back = own.made("Lock"), own.made("Lock")
    there.acquire()
    back.acquire()

    def other():
        for _ in range(n):
            there.acquire()
            back.release()

    with detector(by):
        thread = threading.Thread(target=other)
        thread.start()
        clocks = own.Clocks()
        for _ in range(n):
            there.release()
            back.acquire()
        found = clocks.each(n)
        thread.join()
    return found["took_s"]


if __name__ == "__main__":
    own.main(
        EXPERIMENT,
        {
            "look": look,
            "with": pair("with x: pass"),
            "async-with": pair("async with x: pass"),
            "hand-over": hand_over,
        },
    )
