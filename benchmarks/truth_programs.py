"""Programs whose use of the GIL is known beforehand: what the truth of an observer is measured by.

    python benchmarks/truth_programs.py NAME SECONDS [--observe | --knock MILLISECONDS]

Runs on any CPython from 3.11 on without fairlead. Prints one line of JSON: ``known``, the figures that an
observer should find; ``own``, the same as the program's own clocks have them, which differ from the known
ones when the machine was not quiet; and what the run cost. With ``--observe``, also what
``fairlead.gil.observe()`` says; with ``--knock``, what gilknocker says. A figure is ``held THREAD``,
``waited THREAD`` or ``on CPU THREAD`` (the part of what was held in which the kernel left the thread its
core), a share of the interval, or ``longest hold THREAD`` in seconds.

spinners: two threads compute in Python: each holds half of the time and waits half. c-call: a call into C
keeps the GIL for 40 ms of every 100, and from 10 ms after its begin another thread wants the GIL: it waits
for 30. c-sleep: the same with a call that sleeps. half-busy: a thread computes for 20 ms of every 40.
hashing: two threads hash with the GIL released: no thread holds it.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import operator
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

Figures = dict[str, float]
Body = Callable[[float, float], Figures]
"""Runs from one moment of ``time.perf_counter`` to another; returns seconds by the thread's own clocks."""

TICKS = os.sysconf("SC_CLK_TCK")


def spin(begin: float, end: float) -> Figures:
    """Compute in Python; for how long by the clock of this thread's CPU time, and turns of the loop."""
    spent, turns = time.thread_time(), 0
    while time.perf_counter() < end:
        for _ in range(200):
            pass
        turns += 1
    held = time.thread_time() - spent
    return {"held": held, "waited": time.perf_counter() - begin - held, "on CPU": held, "turns": turns}


def spin_half(begin: float, end: float, cycle: float = 0.04) -> Figures:
    spent = time.thread_time()
    for start in starts(begin, end, cycle):
        time.sleep(max(0.0, start - time.perf_counter()))
        while time.perf_counter() < start + cycle / 2:
            pass
    held = time.thread_time() - spent
    return {"held": held, "on CPU": held, "waited": 0.0}


CYCLE, CALL, ASK = 0.1, 0.04, 0.01


def exponent(seconds: float) -> int:
    """Such that ``pow(3, exponent, _MODULUS)``, one call into C, takes so long."""
    size, spent = 1_000, 0.0
    while spent < seconds / 8:
        size *= 2
        before = time.thread_time()
        pow(3, 1 << size, _MODULUS)
        spent = time.thread_time() - before
    return 1 << round(size * seconds / spent)


_MODULUS = (1 << 607) - 1


def call(begin: float, end: float, work: Callable[[], object]) -> Figures:
    """Keep the GIL in one call into C after another; for how long, by the wall clock and by that of CPU time.

    A core that was taken away lengthens a hold. The clocks are read within the call, which is C from the
    first reading to the last: read by Python, both would have the thread's way back to the GIL in them.
    """
    total = on_cpu = longest = longest_cpu = 0.0
    timed = (time.perf_counter, time.thread_time, work, time.thread_time, time.perf_counter)
    for start in starts(begin, end, CYCLE):
        time.sleep(max(0.0, start - time.perf_counter()))
        begun, before, _, after, ended = map(operator.call, timed)
        spent, passed = after - before, ended - begun
        total, on_cpu = total + passed, on_cpu + spent
        longest, longest_cpu = max(longest, passed), max(longest_cpu, spent)
    return {"held": total, "on CPU": on_cpu, "longest hold": longest, "CPU of a call": longest_cpu}


def ask(begin: float, end: float) -> Figures:
    """Sleep into each of those calls; how late this thread came out of it."""
    late = 0.0
    for start in starts(begin, end, CYCLE):
        wanted = start + ASK
        time.sleep(max(0.0, wanted - time.perf_counter()))
        late += time.perf_counter() - wanted
    return {"waited": late}


def hash_away(begin: float, end: float) -> Figures:
    data = bytes(8_000_000)
    while time.perf_counter() < end:
        hashlib.sha256(data).digest()
    return {"outside": time.perf_counter() - begin}


def starts(begin: float, end: float, cycle: float) -> list[float]:
    """The moments at which cycles begin; all of them end within the interval."""
    return [begin + k * cycle for k in range(int((end - begin) / cycle + 1e-6))]


def programs() -> dict[str, tuple[dict[str, Body], Figures]]:
    """Threads by name, and the figures that are known beforehand."""
    power = exponent(CALL)
    return {
        "spinners": (
            {"spin-1": spin, "spin-2": spin},
            {"held spin-1": 0.5, "held spin-2": 0.5, "waited spin-1": 0.5, "waited spin-2": 0.5},
        ),
        "c-call": (
            {"c-code": partial(call, work=partial(pow, 3, power, _MODULUS)), "asker": ask},
            {"held asker": 0.0},
        ),
        "c-sleep": (
            {
                "c-code": partial(call, work=partial(ctypes.PyDLL(None).usleep, round(CALL * 1e6))),
                "asker": ask,
            },
            {"held asker": 0.0},
        ),
        "half-busy": ({"half": spin_half}, {"held half": 0.5, "waited half": 0.0}),
        "hashing": (
            {"hash-1": hash_away, "hash-2": hash_away},
            {"held hash-1": 0.0, "held hash-2": 0.0, "waited hash-1": 0.0, "waited hash-2": 0.0},
        ),
    }


NAMES = ("spinners", "c-call", "c-sleep", "half-busy", "hashing")


def parents_cpu() -> float:
    """CPU seconds of the process that started this one: of the observer, when that is another process."""
    try:
        fields = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def run(name: str, seconds: float, observe: bool, knock_ms: float | None) -> dict[str, Any]:
    bodies, known = programs()[name]
    gate, found, interval = threading.Event(), {}, [0.0, 0.0]

    def body(label: str, work: Body) -> None:
        gate.wait()
        found[label] = work(interval[0], interval[1])

    threads = [threading.Thread(target=body, args=item, name=item[0]) for item in bodies.items()]
    for thread in threads:
        thread.start()
    knocker = None
    if knock_ms is not None:
        import gilknocker

        micros = round(knock_ms * 1000)
        knocker = gilknocker.KnockKnock(
            polling_interval_micros=micros, sampling_interval_micros=micros, sleeping_interval_micros=0
        )
        knocker.start()
    seen = None
    if observe:
        import fairlead.gil

        seen = fairlead.gil.observe().start()
    spent, parents = time.process_time(), parents_cpu()
    interval[:] = time.perf_counter(), time.perf_counter() + seconds
    gate.set()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - interval[0]
    result: dict[str, Any] = {
        "seconds": seconds,
        "cpu_s": time.process_time() - spent,
        "parents_cpu_s": parents_cpu() - parents,
        "native_ids": {thread.native_id: thread.name for thread in threads},
        "turns": sum(figures.pop("turns", 0) for figures in found.values()),
        "longest_call_cpu_s": sum(figures.pop("CPU of a call", 0) for figures in found.values()),
    }
    own = {
        f"{figure} {label}": value if figure.startswith("longest") else value / seconds
        for label, figures in found.items()
        for figure, value in figures.items()
    }
    # the CPU time of what computes with the GIL is known by its clock alone, and so is how long a call takes
    timed = {key: value for key, value in own.items() if name.startswith("c-") or key.startswith("on CPU")}
    if name == "c-sleep":  # whether a holder sleeps is looked at only once a thread has waited for it
        del timed["on CPU c-code"]
    result |= {"known": {**known, **timed}, "own": own}
    if knocker is not None:
        result["contention"] = knocker.contention_metric
        knocker.stop()
    if seen is not None:
        seen.stop()
        result["seen"] = figures_of((thread.as_record() for thread in seen.threads), seconds)
    return result


def figures_of(threads: Any, seconds: float) -> Figures:
    """The figures from records of threads under the names that the JSON report has, too."""
    found: Figures = {}
    for thread in threads:
        found[f"held {thread['name']}"] = thread["held_seconds"] / seconds
        found[f"waited {thread['name']}"] = thread["waited_seconds"] / seconds
        on_cpu = thread["held_seconds"] - (thread["held_off_cpu_seconds"] or 0.0)
        found[f"on CPU {thread['name']}"] = on_cpu / seconds
        found[f"longest hold {thread['name']}"] = thread["max_held_seconds"]
    return found


if __name__ == "__main__":
    options = sys.argv[3:]
    if len(sys.argv) < 3 or sys.argv[1] not in NAMES:
        sys.exit(__doc__)
    knock = float(options[1]) if options[:1] == ["--knock"] else None
    print(json.dumps(run(sys.argv[1], float(sys.argv[2]), options == ["--observe"], knock)))
