"""What a readers-writer lock costs: alone, by several threads, and how long a writer waits under readers.

    python benchmarks/sync_rwlock.py [--rounds 9] [--only alone] [--quick] [--json FILE]

Peers are one made of threading's Lock and Condition, which prefers readers as such locks mostly do, one that
prefers writers, and culsans.RWLock where it is installed (pip install --group peers). All are reentrant for
readers but the two of threading. Alone: CPU time per pair. Together: four threads, each with one write in
ten, the clock's time per pair of all together. Under readers: two threads that read all the time, with a
little work inside; the median and the longest wait of a writer.
"""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from statistics import median
from typing import Any

import harness

from fairlead import sync

Face = Callable[[], AbstractContextManager[Any]]
PAIRS, TOGETHER, WRITES = 30_000, 4_000, 15


class OfThreading:
    """A lock, a condition and two counts."""

    def __init__(self, writers_first: bool) -> None:
        self.condition = threading.Condition(threading.Lock())
        self.readers = self.writers_waiting = 0
        self.busy = False
        self.writers_first = writers_first


class Reading:
    def __init__(self, lock: OfThreading) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        lock = self._lock
        with lock.condition:
            while lock.busy or (lock.writers_first and lock.writers_waiting):
                lock.condition.wait()
            lock.readers += 1

    def __exit__(self, *_: object) -> None:
        lock = self._lock
        with lock.condition:
            lock.readers -= 1
            if not lock.readers:
                lock.condition.notify_all()


class Writing:
    def __init__(self, lock: OfThreading) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        lock = self._lock
        with lock.condition:
            lock.writers_waiting += 1
            while lock.busy or lock.readers:
                lock.condition.wait()
            lock.writers_waiting -= 1
            lock.busy = True

    def __exit__(self, *_: object) -> None:
        with self._lock.condition:
            self._lock.busy = False
            self._lock.condition.notify_all()


def makers() -> dict[str, Callable[[], tuple[Face, Face]]]:
    """By name, what makes a lock's two faces, as functions that return context managers."""

    def of_threading(writers_first: bool) -> Callable[[], tuple[Face, Face]]:
        def make() -> tuple[Face, Face]:
            lock = OfThreading(writers_first)
            reading, writing = Reading(lock), Writing(lock)
            return (lambda: reading), (lambda: writing)

        return make

    def ours() -> tuple[Face, Face]:
        lock = sync.RWLock()
        return (lambda: lock.reading), (lambda: lock.writing)

    found = {"readers first": of_threading(False), "writers first": of_threading(True), "fairlead": ours}
    if importlib.util.find_spec("culsans"):
        import culsans

        def theirs() -> tuple[Face, Face]:
            lock: Any = culsans.RWLock()
            return (lambda: lock.reading), (lambda: lock.writing)

        found["culsans"] = theirs
    return found


def alone(scale: int, which: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        face, many = makers()[mode]()[which], PAIRS // scale
        begin = time.thread_time_ns()
        for _ in range(many):
            with face():
                pass
        return {"CPU ns": (time.thread_time_ns() - begin) / many}

    return take


def together(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        reading, writing = makers()[mode]()
        many, gate = TOGETHER // scale, sync.Event()

        def body() -> None:
            gate.wait()
            for number in range(many):
                with writing() if number % 10 == 0 else reading():
                    pass

        threads = [threading.Thread(target=body) for _ in range(4)]
        for thread in threads:
            thread.start()
        begin, used = time.monotonic_ns(), time.process_time_ns()
        gate.set()
        for thread in threads:
            thread.join()
        pairs = 4 * many
        return {
            "clock ns": (time.monotonic_ns() - begin) / pairs,
            "CPU ns": (time.process_time_ns() - used) / pairs,
        }

    return take


def under_readers(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        reading, writing = makers()[mode]()
        ended, waits = threading.Event(), []

        def read() -> None:
            while not ended.is_set():
                with reading():
                    sum(range(1000))

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(max(2, WRITES // scale)):
            begin = time.monotonic_ns()
            with writing():
                waits.append((time.monotonic_ns() - begin) / 1000)
            time.sleep(0.001)
        ended.set()
        for thread in threads:
            thread.join()
        return {"median us": median(waits), "longest us": max(waits)}

    return take


def main() -> None:
    parser = harness.arguments(__doc__, rounds=9)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    scale = 50 if options.quick else 1
    modes = list(makers())
    peers = [mode for mode in modes if mode != "fairlead"]
    target = [harness.Target("CPU ns", "fairlead", at_most=0.5, of=peer) for peer in peers]
    rows = [
        harness.Row("read, alone", alone(scale, 0), modes, target),
        harness.Row("write, alone", alone(scale, 1), modes, target),
        harness.Row("together: 4 threads, one write in ten", together(scale), modes, target),
        harness.Row(
            "a writer under 2 readers",
            under_readers(scale),
            modes,
            [harness.Target("longest us", "fairlead", at_most=1, of="readers first")],
        ),
    ]
    harness.run("readers-writer locks", [row for row in rows if options.only in row.name], options)


if __name__ == "__main__":
    main()
