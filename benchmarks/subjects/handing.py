"""Threads that hand work to each other, over and over.

Settings: kind (of KINDS), seconds, cpu_threads. Prints a line when the measurement begins, and then what was
seen.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable

import subject
from steps import count_to

SECONDS: float = subject.SETTINGS["seconds"]
STEPS = 200
"""Of work, some ten microseconds, at each stage of the pipeline."""


def endless(body: Callable[[], object]) -> None:
    def repeat() -> None:
        while True:
            body()

    threading.Thread(target=repeat, daemon=True).start()


def lock() -> Callable[[], object]:
    """A lock each to wake the other."""
    asked, answered = threading.Lock(), threading.Lock()
    asked.acquire()
    answered.acquire()

    def other() -> None:
        asked.acquire()
        answered.release()

    def ask() -> None:
        asked.release()
        answered.acquire()

    endless(other)
    return ask


def through(stages: int, work: Callable[[], object]) -> Callable[[], object]:
    """Through so many threads, each with a queue before it, and back."""
    queues = [queue.Queue[int]() for _ in range(stages + 1)]

    def stage(number: int) -> Callable[[], object]:
        def step() -> None:
            item = queues[number].get()
            work()
            queues[number + 1].put(item)

        return step

    def ask() -> None:
        queues[0].put(1)
        queues[-1].get()

    for number in range(stages):
        endless(stage(number))
    return ask


def full() -> Callable[[], object]:
    """A queue with room for one item, which another thread takes."""
    line = queue.Queue[int](1)
    endless(line.get)
    return lambda: line.put(1)


def semaphore() -> Callable[[], object]:
    """One of 16 threads that take turns with a semaphore."""
    turn = threading.Semaphore(1)

    def take() -> None:
        with turn:
            count_to(STEPS)

    for _ in range(15):
        endless(take)
    return take


def notify() -> Callable[[], object]:
    """A hundred threads that are told at once, and answer; one hop is there and back for all."""
    told, answers, number = threading.Condition(), threading.Semaphore(0), 0

    def told_once() -> None:
        with told:
            before = number
            answers.release()
            told.wait_for(lambda: number != before)

    def ask() -> None:
        nonlocal number
        for _ in range(100):
            answers.acquire()
        with told:
            number += 1
            told.notify_all()

    for _ in range(100):
        endless(told_once)
    return ask


KINDS: dict[str, Callable[[], Callable[[], object]]] = {
    "lock": lock,
    "queue": lambda: through(1, lambda: None),
    "pipeline": lambda: through(3, lambda: count_to(STEPS)),
    "full": full,
    "semaphore": semaphore,
    "notify": notify,
}

subject.set_switch_interval()
ask = KINDS[subject.SETTINGS["kind"]]()
work = subject.spinners()
for _ in range(100):
    ask()
subject.say(**work)
times, used, begin = 0, time.process_time(), time.perf_counter()
while time.perf_counter() - begin < SECONDS:
    ask()
    times += 1
took = time.perf_counter() - begin
subject.say(hop_s=took / times, cpu_s=(time.process_time() - used) / times)
sys.stdin.read()  # what its threads have computed is read from outside, while it lives
