"""A lock of the program's own, and not the GIL, keeps its threads waiting."""

from __future__ import annotations

import logging
import queue
import sqlite3
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from plant import healthy, main, passing, planted, start


class Slow(logging.Handler):
    """A handler whose disk, or network, takes its time."""

    def emit(self, _: logging.LogRecord) -> None:
        time.sleep(0.02)


def waited(
    lock: threading.Lock | threading.RLock | threading.Semaphore, work: object, threads: int = 4
) -> float:
    """Each takes the lock, works and thinks, in turns: how long they waited for it."""
    lost = [0.0]

    def handles() -> None:
        while passing():
            began = time.monotonic()
            with lock:  # here
                lost[0] += time.monotonic() - began
                work()
            time.sleep(0.003)

    for thread in start(*[handles] * threads):
        thread.join()
    return lost[0]


@planted("lock")
def lock_held_over_a_request() -> float:
    return waited(threading.Lock(), lambda: time.sleep(0.015))


@planted("lock")
def recursive_lock_over_a_file() -> float:
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "state")

        def saves() -> None:
            for _ in range(3):
                file.write_bytes(b"x" * 1000)
                time.sleep(0.005)

        return waited(threading.RLock(), saves)


@planted("lock")
def log_with_a_slow_handler() -> float:
    log = logging.getLogger("slow")
    log.addHandler(Slow())
    log.propagate = False
    lost = [0.0]

    def handles() -> None:
        while passing():
            began = time.monotonic()
            log.warning("handled")  # here
            lost[0] += time.monotonic() - began - 0.02
            time.sleep(0.01)

    for thread in start(*[handles] * 4):
        thread.join()
    return lost[0]


@planted("lock")
def pool_of_one_connection() -> float:
    base = sqlite3.connect(":memory:", check_same_thread=False)
    base.create_function("slow", 0, lambda: time.sleep(0.01))
    lock, lost = threading.Lock(), [0.0]

    def query(_: int) -> None:
        began = time.monotonic()
        lock.acquire()  # here
        try:
            lost[0] += time.monotonic() - began
            base.execute("select slow()").fetchall()
        finally:
            lock.release()

    with ThreadPoolExecutor(5) as pool:
        while passing():
            list(pool.map(query, range(10)))
    return lost[0]


@planted("lock")
def semaphore_of_two() -> float:
    return waited(threading.BoundedSemaphore(2), lambda: time.sleep(0.02), 6)


@healthy
def semaphore_of_eight() -> None:
    few = threading.Semaphore(8)

    def handles() -> None:
        while passing():
            with few:
                time.sleep(0.01)

    for thread in start(*[handles] * 6):
        thread.join()


@healthy
def consumers_of_a_slow_producer() -> None:
    items: queue.Queue[int] = queue.Queue(5)

    def takes() -> None:
        while True:
            items.get()

    start(*[takes] * 4)
    while passing():
        time.sleep(0.02)
        items.put(1)


@healthy
def event_that_comes_late() -> None:
    for _ in range(8):
        event = threading.Event()
        start(event.wait, event.wait)
        time.sleep(0.2)
        event.set()


@healthy
def short_lock_that_many_take() -> None:
    lock = threading.Lock()

    def handles() -> None:
        while passing():
            with lock:
                pass
            time.sleep(0.002)

    for thread in start(*[handles] * 6):
        thread.join()


if __name__ == "__main__":
    main()
