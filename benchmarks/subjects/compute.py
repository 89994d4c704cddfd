"""Single-threaded programs of the kinds that pyperformance has, and a countdown in threads.

Settings: work (one of WORK, or "countdown"), threads, scale. Prints the CPU seconds of the process, and the
wall-clock seconds, of the best of five runs.
"""

from __future__ import annotations

import json
import pickle
import re
import threading
import time
from collections.abc import Callable

import subject


def nbody(n: int) -> None:
    bodies = [[i * 1.1, i * 0.7 + 1, i * 0.3 + 2, 0.0, 0.01 * i, 0.0, 1.0 + i] for i in range(5)]
    for _ in range(n):
        for i, a in enumerate(bodies):
            for b in bodies[i + 1 :]:
                dx, dy, dz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
                pull = 0.001 / ((dx * dx + dy * dy + dz * dz) ** 1.5)
                for k, d in ((3, dx), (4, dy), (5, dz)):
                    a[k] -= d * b[6] * pull
                    b[k] += d * a[6] * pull
        for a in bodies:
            a[0] += 0.001 * a[3]
            a[1] += 0.001 * a[4]
            a[2] += 0.001 * a[5]


def fannkuch(n: int) -> None:
    for _ in range(n):
        row = list(range(7))
        for i in range(120):
            row.append(row.pop(i % 7))
            flipped = row[:]
            while first := flipped[0]:
                flipped[: first + 1] = flipped[first::-1]


def json_both_ways(n: int) -> None:
    value = {f"key {i}": [i, i / 3, str(i), None, {"deep": [True] * 5}] for i in range(50)}
    for _ in range(n):
        json.loads(json.dumps(value))


def pickle_both_ways(n: int) -> None:
    value = [{"name": f"n{i}", "values": tuple(range(20))} for i in range(100)]
    for _ in range(n):
        pickle.loads(pickle.dumps(value, protocol=2))


def regex(n: int) -> None:
    text = " ".join(f"user{i}@host{i % 7}.example.org some words {i * i}" for i in range(100))
    pattern = re.compile(r"(\w+)@(\w+)\.([\w.]+)\s+\w+")
    for _ in range(n):
        pattern.findall(text)


class Node:
    __slots__ = ("left", "right", "value")

    def __init__(self, value: int) -> None:
        self.value = value
        self.left: Node | None = None
        self.right: Node | None = None

    def add(self, value: int) -> None:
        side = "left" if value < self.value else "right"
        child = getattr(self, side)
        if child is None:
            setattr(self, side, Node(value))
        else:
            child.add(value)


def objects(n: int) -> None:
    for _ in range(n):
        root = Node(500)
        for i in range(200):
            root.add(i * 7919 % 1000)


def generators(n: int) -> None:
    def tree(depth: int) -> object:
        if depth:
            yield from tree(depth - 1)  # type: ignore[misc]
            yield depth
            yield from tree(depth - 1)  # type: ignore[misc]

    for _ in range(n):
        sum(1 for _ in tree(9))  # type: ignore[attr-defined]


def files(n: int) -> None:
    """System calls, each of which lets go of the GIL."""
    for _ in range(n):
        with open("/dev/null", "wb", buffering=0) as file:  # noqa: PTH123
            for _ in range(50):
                file.write(b"x")


WORK: dict[str, tuple[Callable[[int], None], int]] = {
    "nbody": (nbody, 3000),
    "fannkuch": (fannkuch, 800),
    "json": (json_both_ways, 300),
    "pickle": (pickle_both_ways, 300),
    "regex": (regex, 500),
    "objects": (objects, 150),
    "generators": (generators, 150),
    "files": (files, 600),
}


def countdown(n: int) -> None:
    while n:
        n -= 1


def in_threads(threads: int, work: Callable[[int], None], n: int) -> None:
    """The same work in all, however many threads share it."""
    all_of_them = [threading.Thread(target=work, args=(n // threads,)) for _ in range(threads)]
    for thread in all_of_them:
        thread.start()
    for thread in all_of_them:
        thread.join()


def main() -> None:
    scale: float = subject.SETTINGS["scale"]
    name: str = subject.SETTINGS["work"]
    cpu, wall = [], []
    for _ in range(subject.SETTINGS["runs"]):
        begin, used = time.perf_counter(), time.process_time()
        if name == "countdown":
            in_threads(subject.SETTINGS["threads"], countdown, int(scale * 10_000_000))
        else:
            work, n = WORK[name]
            work(max(1, int(n * scale)))
        cpu.append(time.process_time() - used)
        wall.append(time.perf_counter() - begin)
    subject.say(**{"CPU s": min(cpu), "wall s": min(wall)})


subject.set_switch_interval()
subject.say(work=list(WORK))
main()
