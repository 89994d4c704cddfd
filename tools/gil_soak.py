"""Record a process whose threads come and go, for minutes, and look for what grows.

    tools/gil_soak.py [--seconds 300] [--seed N] [--threads 40]

A process records every event of its GIL while threads are started and end, in waves of another size, work
and moment each time, some forked children among them, and interpreters with GILs of their own where there
are any. All the while its memory (the kernel's count of private pages), its descriptors and its threads are
looked at, each time when no wave is going on. None of these may rise from the middle of the run to its end:
by then every table has been filled once. The recording must be whole.

Exit status 0: nothing grew; 1: something did, with the seed that shows it.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import fairlead.gil
from fairlead.record.recording import BlockType, Recording

GROWTH_KIB = 1024
"""More than that between the medians of the third and of the last quarter of a run is growth: an allocator's
own noise is less."""

WORK: tuple[Callable[[], object], ...] = (
    lambda: sum(range(20_000)),
    lambda: time.sleep(0),
    lambda: time.sleep(0.002),
    lambda: hashlib.sha256(bytes(200_000)).digest(),
    lambda: [os.stat("/") for _ in range(50)],  # noqa: PTH116 - lets go of the GIL, once a call
    lambda: fairlead.gil.counters(),
)


@dataclass(frozen=True, slots=True)
class Census:
    """What there is of a process at a moment."""

    private_kib: int
    descriptors: int
    threads: int


def census() -> Census:
    """Of this process, by the kernel."""
    gc.collect()
    private = 0
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith(("Private_Dirty:", "Private_Clean:")):
            private += int(line.split()[1])
    return Census(private, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")))  # noqa: PTH208


def wave(dice: random.Random, size: int) -> int:
    """Start threads, some of which start more, and wait for them all; returns how many."""
    works = [dice.choices(WORK, k=dice.randint(1, 6)) for _ in range(dice.randint(1, size))]

    def body(own: list[Callable[[], object]]) -> None:
        for work in own:
            work()

    threads = [threading.Thread(target=body, args=(own,)) for own in works]
    for thread in threads:
        thread.start()
        if dice.random() < 0.1:
            time.sleep(dice.random() * 0.002)
    for thread in threads:
        thread.join()
    return len(threads)


def fork() -> None:
    """A child that is recorded afresh for a moment."""
    child = os.fork()
    if not child:
        time.sleep(0)
        os._exit(0)
    os.waitpid(child, 0)


def interpreter() -> None:
    """One with a GIL of its own, where there is such a thing, made, used and ended."""
    try:
        import _interpreters  # type: ignore[import-not-found]
    except ImportError:
        return
    made = _interpreters.create("isolated")
    _interpreters.run_string(made, "import threading\nt = threading.Thread(target=int)\nt.start(); t.join()")
    _interpreters.destroy(made)


def soak(seconds: float, dice: random.Random, size: int) -> tuple[list[Census], int]:
    """What there was all along, and how many threads have come and gone."""
    found: list[Census] = []
    started = 0
    end = time.monotonic() + seconds
    look = time.monotonic()
    while time.monotonic() < end:
        started += wave(dice, size)
        chance = dice.random()
        if chance < 0.02:
            fork()
        elif chance < 0.03:
            interpreter()
        if time.monotonic() >= look:
            found.append(census())
            look = time.monotonic() + seconds / 200
    return found, started


def growth(found: list[Census], of: str) -> float:
    """From the third to the last quarter, median against median."""
    values = [getattr(one, of) for one in found]
    quarter = len(values) // 4
    return statistics.median(values[3 * quarter :]) - statistics.median(values[2 * quarter : 3 * quarter])


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--threads", type=int, default=40, help="how many there are at once, at most")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fairlead-soak-") as directory:
        path = Path(directory) / "soak.flrec"
        with fairlead.gil.record(path), fairlead.gil.observe() as seen:
            found, started = soak(options.seconds, random.Random(options.seed), options.threads)
            acquisitions = sum(thread.acquisitions for thread in seen.threads)
        recording = Recording(path)
        kinds = [block.type for block in recording.blocks()]
        size = path.stat().st_size
    failures = list(recording.problems)
    if kinds[-1] != BlockType.END:
        failures.append("the recording has no end")
    print(f"seed {options.seed}, Python {sys.version.split()[0]}: {options.seconds:g} s, {started} threads,")
    print(f"{acquisitions} acquisitions, {size / 1e6:.0f} MB recorded, {len(found)} looks")
    for name, allowed in (("private_kib", GROWTH_KIB), ("descriptors", 0), ("threads", 0)):
        values = [getattr(one, name) for one in found]
        more = growth(found, name)
        most = f"least {min(values)}, most {max(values)}"
        print(f"{name:12} first {values[0]}, {most}, last {values[-1]}; {more:+g}")
        if more > allowed:
            failures.append(f"{name} grew by {more:g} from the third to the last quarter")
    for failure in failures:
        print(f"FAILED: {failure} (seed {options.seed})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
