"""Open-loop load in Python, for what is no HTTP: instants at which requests are due, and what became of them.

Settings come as JSON in EXAMPLE_LOAD: rate (per second), seconds, warm_up, seed.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

SETTINGS: dict[str, Any] = json.loads(os.environ["EXAMPLE_LOAD"])
SECONDS: float = SETTINGS["seconds"]
_begun: list[float] = []
_lock = threading.Lock()


def begin() -> float:
    """The instant at which the warm-up begins: said once, to `sample.py`."""
    with _lock:
        if not _begun:
            _begun.append(time.monotonic())
            print(json.dumps({"start": _begun[0]}), flush=True)
    return _begun[0]


def end() -> float:
    return begin() + SETTINGS["warm_up"] + SECONDS


def arrivals(stream: int = 0, streams: int = 1) -> Iterator[float]:
    """When requests are due: a Poisson process, or one of several streams that add up to it."""
    chance = random.Random(SETTINGS["seed"] * 1000 + stream)
    at = begin()
    while (at := at + chance.expovariate(SETTINGS["rate"] / streams)) < end():
        yield at


def sleep_until(due: float) -> None:
    """A caller that is late already does not sleep at all."""
    left = due - time.monotonic()
    if left > 0:
        time.sleep(left)


class Latencies:
    """Of requests that were due after the warm-up, each known by the instant at which it was due."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.done: dict[float, float] = {}
        self.failed: set[float] = set()

    def ask(self, due: float) -> None:
        self.asked.append(due)

    def answer(self, due: float, at: float | None = None) -> None:
        self.done[due] = time.monotonic() if at is None else at

    def fail(self, due: float) -> None:
        self.failed.add(due)

    def open(self) -> int:
        return len(self.asked) - len(self.done) - len(self.failed)

    def add(self, other: Latencies) -> None:
        self.asked += other.asked
        self.done |= other.done
        self.failed |= other.failed

    def seen(self) -> dict[str, Any]:
        """What is unanswered counts with the time for which it has waited."""
        now, first = time.monotonic(), begin() + SETTINGS["warm_up"]
        counted = [due for due in self.asked if due >= first]
        took = sorted((self.done.get(due, now) - due) * 1e3 for due in counted if due not in self.failed)
        parts = {"p50": 0.5, "p99": 0.99, "max": 1.0} if took else {}
        at = {name: took[min(len(took) - 1, int(len(took) * part))] for name, part in parts.items()}
        return {
            "figures": {"requests": len(took), **at},
            "in time": sum(first <= at <= end() for at in self.done.values()),
            "errors": sum(due in self.failed for due in counted),
            "unanswered": sum(due not in self.done and due not in self.failed for due in counted),
        }


def say(**classes: Latencies) -> None:
    """What was seen of each class of requests, for `sample.py`."""
    seen = {name: one.seen() for name, one in classes.items()}
    total = {name: sum(one[name] for one in seen.values()) for name in ("in time", "errors", "unanswered")}
    answer = {
        "classes": {name: one["figures"] for name, one in seen.items()},
        "throughput": total.pop("in time") / SECONDS,
        **total,
    }
    print(json.dumps(answer), flush=True)
