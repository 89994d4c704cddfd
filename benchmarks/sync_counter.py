"""What it costs to count in several threads at once: one, two and four of them.

    python benchmarks/sync_counter.py [--rounds 9] [--only "2 threads"] [--quick] [--json FILE]

Peers are a whole number under a threading.Lock, and itertools.count, which needs none but cannot be read.
All threads count as fast as they can; how many a microsecond all together, and CPU time of each. Run it on a
free-threaded build: with a GIL only one of them counts at any moment.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable

import harness

from fairlead import sync

EACH = 200_000


def under_a_lock() -> Callable[[], object]:
    lock, value = threading.Lock(), 0

    def add() -> None:
        nonlocal value
        with lock:
            value += 1

    return add


MAKERS: dict[str, Callable[[], Callable[[], Callable[[], object]]]] = {}
"""By name, what makes a counter: a function that makes what each thread calls."""


def maker(name: str) -> Callable[[Callable[[], Callable[[], Callable[[], object]]]], None]:
    def known(make: Callable[[], Callable[[], Callable[[], object]]]) -> None:
        MAKERS[name] = make

    return known


@maker("lock and int")
def lock_and_int() -> Callable[[], Callable[[], object]]:
    add = under_a_lock()
    return lambda: add


@maker("itertools.count")
def itertools_count() -> Callable[[], Callable[[], object]]:
    counter = itertools.count()
    return lambda: counter.__next__


@maker("StripedCounter")
def striped() -> Callable[[], Callable[[], object]]:
    counter = sync.StripedCounter()
    return lambda: counter.increment


def together(scale: int, number: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        make, many, gate = MAKERS[mode](), EACH // scale, sync.StartGate()

        def body() -> None:
            add = make()
            for _ in range(many):
                add()

        threads = [threading.Thread(target=gate.behind(body)) for _ in range(number)]
        for thread in threads:
            thread.start()
        begin, used = time.monotonic_ns(), time.process_time_ns()
        gate.open()
        for thread in threads:
            thread.join()
        took, cpu = time.monotonic_ns() - begin, time.process_time_ns() - used
        return {"per us": number * many / took * 1000, "CPU ns": cpu / (number * many)}

    return take


def main() -> None:
    parser = harness.arguments(__doc__, rounds=9)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    scale = 50 if options.quick else 1
    modes = list(MAKERS)
    rows = [
        harness.Row(
            f"{number} threads",
            together(scale, number),
            modes,
            [harness.Target("per us", "StripedCounter", at_least=1, of="lock and int")],
        )
        for number in (1, 2, 4)
    ]
    harness.run("counting together", [row for row in rows if options.only in row.name], options)


if __name__ == "__main__":
    main()
