"""What the planted programs share: how one says what its truth is, and what it measured of it.

    python FILE.py NAME

runs one program, which prints a line of JSON: the seconds that it saw itself lose, by its own clock.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable

SECONDS = 2.0
stop = threading.Event()
programs: dict[str, Program] = {}


class Program:
    """One program with one trouble, or with none."""

    def __init__(self, run: Callable[[], float | None], causes: tuple[str, ...]) -> None:
        self.run = run
        self.causes = causes
        """Findings that are right, the first one best."""


def planted(*causes: str) -> Callable[[Callable[[], float | None]], Callable[[], float | None]]:
    """A program whose trouble this is. The line that makes the trouble ends in ``# here``; the program
    returns the seconds that it lost, as far as it can tell. Without causes it is healthy."""

    def add(run: Callable[[], float | None]) -> Callable[[], float | None]:
        programs[run.__name__] = Program(run, causes)
        return run

    return add


healthy = planted()


def start(*works: Callable[[], object], daemon: bool = True) -> list[threading.Thread]:
    """Each in a thread of its name, and they go on."""
    threads = [threading.Thread(target=work, name=work.__name__, daemon=daemon) for work in works]
    for thread in threads:
        thread.start()
    return threads


def passing() -> bool:
    """Until the time is up."""
    return time.monotonic() < _end and not stop.is_set()


def late(pause: float = 0.002, work: Callable[[], object] = lambda: None) -> float:
    """Sleeps and does some work in turns until the time is up: by how much all sleeps were too long."""
    lost = 0.0
    while passing():
        began = time.monotonic()
        time.sleep(pause)
        work()
        lost += max(0.0, time.monotonic() - began - pause - 0.0005)
    return lost


def count(n: int) -> int:
    """Some Python code: about n / 20 us."""
    total = 0
    for i in range(n):
        total += i
    return total


_end = 0.0


def main() -> None:
    """Run the program that the command line names."""
    global _end
    _end = time.monotonic() + SECONDS
    lost = programs[sys.argv[1]].run()
    stop.set()
    print(json.dumps({"lost": lost}), flush=True)
