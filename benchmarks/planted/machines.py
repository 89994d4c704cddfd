"""The machine, or what the program asked of it, is what threads wait for."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

from plant import count, late, main, passing, planted, start

BUSY = "import os; parent = os.getppid(); print(flush=True)\nwhile os.getppid() == parent: pass"


def computes() -> None:
    while passing():
        count(2000)  # here


def on_one_core_with(others: int) -> list[subprocess.Popen[bytes]]:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    found = [subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) for _ in range(others)]
    for one in found:
        one.stdout.readline()
    return found


def beside_others(others: int, nice: int = 0) -> float:
    busy = on_one_core_with(others)
    os.nice(nice)
    start(computes)
    try:
        return late(0.005)
    finally:
        for one in busy:
            one.kill()
            one.wait()


@planted("no-core")
def three_others_on_its_core() -> float:
    return beside_others(3)


@planted("no-core")
def lowest_priority() -> float:
    return beside_others(1, nice=19)


@planted("no-core")
def stopped_by_its_parent() -> float:
    """A child stops this process for a moment, again and again."""
    code = (
        "import os, signal, time\nparent = os.getppid()\nend = time.monotonic() + 1.8\n"
        "while time.monotonic() < end:\n os.kill(parent, signal.SIGSTOP); time.sleep(.15)\n"
        " os.kill(parent, signal.SIGCONT); time.sleep(.05)"
    )
    start(computes)
    child = subprocess.Popen([sys.executable, "-c", code])
    try:
        return late(0.005)
    finally:
        child.wait()


@planted("switch-interval", "convoy")
def library_sets_a_second() -> float:
    sys.setswitchinterval(1)
    start(computes)
    return late(0.01)


@planted("switch-interval", "convoy")
def program_sets_a_tenth() -> float:
    sys.setswitchinterval(0.1)
    start(computes, computes)
    return late(0.01)


@planted("convoy")
def program_sets_half_a_millisecond() -> float:
    sys.setswitchinterval(0.0005)
    start(computes)
    return late(0.001)


@planted("saturation")
def half_a_millisecond_and_three_compute() -> float:
    sys.setswitchinterval(0.0005)
    for thread in start(*[computes] * 3):
        thread.join()
    return 0.6


@planted("convoy")
def tidy_thread_of_idle_priority() -> float:
    def tidies() -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 5)
        late(0.002, lambda: count(100))

    start(computes)
    thread = start(tidies)[0]
    began = time.monotonic()
    thread.join()
    return time.monotonic() - began


if __name__ == "__main__":
    main()
