"""How well fairlead.gil.watch_loop tells why a loop's callbacks are late: programs that know it themselves.

    python benchmarks/loop_lag_truth.py [--times 20] [--hold .08]

Each program makes its loop late in one way, for `hold` seconds at a time: a callback that computes, one that
blocks, threads that compute, a C call of another thread that keeps the GIL, and a callback that computes on a
core which two other processes want. It prints the delay, the part of it that watch_loop blames on that cause,
and the same by the program's own knowledge: the whole delay, but where it computes less the time without a
core, which is the wall clock's time less the thread's CPU time; of the last program that time itself. Another
process that wants the cores makes the third one's truth wrong: some of its delay is then for want of a core.
The last line is what the watch of an idle loop costs.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import os
import threading
import time
from collections.abc import Callable

from processes import cpu_bound_process

import fairlead.gil

hold_the_gil = ctypes.PyDLL(None).usleep


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def lag_of(what: Callable[[], object], times: int, pause: float) -> fairlead.gil.LoopLag:
    with fairlead.gil.watch_loop(interval=0.02, threshold=0.005) as lag:
        for _ in range(times):
            await asyncio.sleep(pause)
            what()
        await asyncio.sleep(pause)
    return lag


def own(hold: float, times: int) -> tuple[float, float, float]:
    away = 0.0

    def work() -> None:
        nonlocal away
        began = time.monotonic()
        compute(hold)
        away += time.monotonic() - began - hold

    lag = asyncio.run(lag_of(lambda: asyncio.get_running_loop().call_soon(work), times, 0.05))
    return lag.late_seconds, lag.own_seconds, lag.late_seconds - away


def blocked(hold: float, times: int) -> tuple[float, float, float]:
    lag = asyncio.run(lag_of(lambda: time.sleep(hold), times, 0.05))
    return lag.late_seconds, lag.own_seconds, lag.late_seconds


def threads(hold: float, times: int) -> tuple[float, float, float]:
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            compute(0.02)

    working = [threading.Thread(target=work) for _ in range(4)]
    for thread in working:
        thread.start()
    lag = asyncio.run(lag_of(lambda: None, round(times * hold / 0.05), 0.05))
    over.set()
    for thread in working:
        thread.join()
    return lag.late_seconds, lag.gil_seconds, lag.late_seconds


def c_call(hold: float, times: int) -> tuple[float, float, float]:
    wanted, over = threading.Semaphore(0), threading.Event()

    def keep() -> None:
        while wanted.acquire() and not over.is_set():
            hold_the_gil(round(hold * 1e6))

    keeper = threading.Thread(target=keep)
    keeper.start()
    lag = asyncio.run(lag_of(wanted.release, times, 0.05))
    over.set()
    wanted.release()
    keeper.join()
    return lag.late_seconds, lag.gil_seconds, lag.late_seconds


def no_core(hold: float, times: int) -> tuple[float, float, float]:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    away = 0.0

    def work() -> None:
        nonlocal away
        began = time.monotonic()
        compute(hold)
        away += time.monotonic() - began - hold

    try:
        with cpu_bound_process(2):
            lag = asyncio.run(lag_of(work, times, 0.05))
    finally:
        os.sched_setaffinity(0, cores)
    return lag.late_seconds, lag.core_seconds, away


async def cost() -> float:
    """CPU seconds that an idle loop's watch costs for each of its callbacks."""
    with fairlead.gil.watch_loop() as lag:
        await asyncio.sleep(0.5)
        before, beats = time.process_time(), lag.beats
        await asyncio.sleep(3)
        return (time.process_time() - before) / (lag.beats - beats)


PROGRAMS = {
    "a callback computes": own,
    "a callback blocks": blocked,
    "threads compute": threads,
    "a C call keeps the GIL": c_call,
    "no core": no_core,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--hold", type=float, default=0.08)
    options = parser.parse_args()
    print(f"{'program':26}{'late, s':>9}{'blamed, s':>11}{'truth, s':>10}{'error':>8}")
    for name, program in PROGRAMS.items():
        late, blamed, truth = program(options.hold, options.times)
        print(f"{name:26}{late:9.3f}{blamed:11.3f}{truth:10.3f}{(blamed - truth) / late:8.1%}", flush=True)
    print(f"cost: {asyncio.run(cost()) * 1e6:.0f} us of CPU time every interval")


if __name__ == "__main__":
    main()
