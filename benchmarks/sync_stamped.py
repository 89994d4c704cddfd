"""What it costs to read two values that belong together: with locks, and by looking and validating.

    python benchmarks/sync_stamped.py [--rounds 9] [--only alone] [--quick] [--json FILE]

Peers are threading.Lock, fairlead's RWLock, and culsans.RWLock where it is installed (pip install --group
peers). Alone: CPU time per reading. Together: one, two and four threads that read, and beside them one that
writes 100 times a second; readings per millisecond of all. Run it on a free-threaded build, too: with a GIL
threads only take turns.
"""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import harness

from fairlead import sync

ALONE, SECONDS = 30_000, 0.2
Reader = Callable[[], tuple[int, int]]


class Subject:
    """Two values, how they are read, and how they are written."""

    def __init__(self) -> None:
        self.one = self.other = 0

    def by_lock(self, reading: Callable[[], Any], writing: Callable[[], Any]) -> tuple[Reader, Any]:
        def read() -> tuple[int, int]:
            with reading():
                return self.one, self.other

        return read, writing

    def by_looking(self) -> tuple[Reader, Any]:
        lock = sync.StampedLock()
        look, validate = lock.optimistic_read, lock.validate

        def read() -> tuple[int, int]:
            stamp = look()
            one, other = self.one, self.other
            if validate(stamp):
                return one, other
            with lock.reading:
                return self.one, self.other

        return read, lambda: lock.writing

    def write(self, writing: Callable[[], AbstractContextManager[Any]]) -> None:
        with writing():
            self.one += 1
            self.other += 1


def makers() -> dict[str, Callable[[], tuple[Subject, Reader, Any]]]:
    def of_lock() -> tuple[Subject, Reader, Any]:
        subject, lock = Subject(), threading.Lock()
        return subject, *subject.by_lock(lambda: lock, lambda: lock)

    def of_rwlock(make: Callable[[], Any]) -> tuple[Subject, Reader, Any]:
        subject, lock = Subject(), make()
        return subject, *subject.by_lock(lambda: lock.reading, lambda: lock.writing)

    def of_stamped() -> tuple[Subject, Reader, Any]:
        subject = Subject()
        return subject, *subject.by_looking()

    found = {"threading.Lock": of_lock, "RWLock": lambda: of_rwlock(sync.RWLock)}
    if importlib.util.find_spec("culsans"):
        import culsans

        found["culsans.RWLock"] = lambda: of_rwlock(culsans.RWLock)
    found["looking"] = of_stamped
    return found


def alone(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        _, read, _ = makers()[mode]()
        many = ALONE // scale
        begin = time.thread_time_ns()
        for _ in range(many):
            read()
        return {"CPU ns": (time.thread_time_ns() - begin) / many}

    return take


def together(scale: int, readers: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        subject, read, writing = makers()[mode]()
        ended, counts, gate = threading.Event(), [], sync.StartGate()

        def body() -> None:
            count = 0
            while not ended.is_set():
                for _ in range(100):
                    read()
                count += 100
            counts.append(count)

        threads = [threading.Thread(target=gate.behind(body)) for _ in range(readers)]
        for thread in threads:
            thread.start()
        gate.open()
        begin, used = time.monotonic_ns(), time.process_time_ns()
        until = time.monotonic() + SECONDS / scale
        while time.monotonic() < until:
            subject.write(writing)
            time.sleep(0.01)
        ended.set()
        for thread in threads:
            thread.join()
        took = time.monotonic_ns() - begin
        return {
            "per ms": sum(counts) / took * 1e6,
            "CPU ns": (time.process_time_ns() - used) / sum(counts),
        }

    return take


def main() -> None:
    parser = harness.arguments(__doc__, rounds=7)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    scale = 20 if options.quick else 1
    modes = list(makers())
    target = [harness.Target("CPU ns", "looking", at_most=1, of=peer) for peer in modes[:-1]]
    rows = [harness.Row("alone", alone(scale), modes, target)]
    rows += [
        harness.Row(
            f"together: {readers} threads",
            together(scale, readers),
            modes,
            [harness.Target("per ms", "looking", at_least=1, of=peer) for peer in modes[:-1]],
        )
        for readers in (1, 2, 4)
    ]
    harness.run("reading what belongs together", [row for row in rows if options.only in row.name], options)


if __name__ == "__main__":
    main()
