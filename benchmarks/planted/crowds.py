"""Many threads: too many that compute, or that take short turns behind one another."""

from __future__ import annotations

import hashlib
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from plant import count, main, passing, planted, start

N = 120


def computes() -> None:
    while passing():
        count(2000)  # here


def all_of(n: int) -> float:
    for thread in start(*[computes] * n):
        thread.join()
    return (n - 1) / n


@planted("saturation")
def two_compute() -> float:
    return all_of(2)


@planted("saturation")
def eight_compute() -> float:
    return all_of(8)


@planted("saturation")
def executor_computes() -> float:
    def task(_: int) -> int:
        return count(20_000)  # here

    with ThreadPoolExecutor(4) as pool:
        while passing():
            list(pool.map(task, range(20)))
    return 0.7


@planted("saturation")
def matrices_in_python() -> float:
    def multiplies() -> None:
        while passing():
            a = [[float(i * j % 7) for i in range(30)] for j in range(30)]
            [[sum(x * y for x, y in zip(r, c, strict=True)) for c in zip(*a, strict=True)] for r in a]  # here

    for thread in start(*[multiplies] * 3):
        thread.join()
    return 0.6


@planted("saturation")
def requests_that_compute() -> float:
    todo: queue.Queue[int] = queue.Queue()

    def worker() -> None:
        while passing():
            todo.get()
            count(150_000)  # here
            todo.task_done()

    start(*[worker] * 6)
    while passing():
        for i in range(6):
            todo.put(i)
        time.sleep(0.005)
    return 0.8


@planted("saturation")
def main_joins_five_and_reports() -> float:
    threads = start(*[computes] * 5)
    while passing():
        threads[0].join(0.2)
    return 0.8


@planted("lock-square", "thread-start", "saturation")
def starts_many_that_poll() -> float:
    ready: list[int] = []

    def polls() -> None:
        ready.append(1)
        while len(ready) < N and passing():
            time.sleep(0)  # here

    began = time.monotonic()
    for thread in start(*[polls] * N):
        thread.join()
    return time.monotonic() - began


@planted("lock-square", "saturation", "lock")
def lock_passed_on_while_others_poll() -> float:
    lock, through = threading.Lock(), []

    def passes() -> None:
        with lock:
            through.append(1)
        while len(through) < N and passing():
            time.sleep(0)  # here

    lock.acquire()  # and that is waited for, too, until all have started
    threads = start(*[passes] * N)
    began = time.monotonic()
    lock.release()
    for thread in threads:
        thread.join()
    return time.monotonic() - began


@planted("switch-storm")
def hashes_in_threads() -> float:
    data = b"x" * 2100

    def hashes() -> None:
        while passing():
            hashlib.sha256(data)  # here

    for thread in start(*[hashes] * 4):
        thread.join()
    return 0.3


@planted("switch-storm")
def single_items() -> float:
    items: queue.Queue[int] = queue.Queue(1)
    moved = 0

    def takes() -> None:
        while True:
            items.get()  # here

    def puts() -> None:
        nonlocal moved
        while passing():
            items.put(1)  # here
            moved += 1

    start(*[takes] * 4)
    for thread in start(puts, puts):
        thread.join()
    return 2.0 - moved * 5e-6  # that long it takes where no thread waits


@planted("lock-square", "thread-start", "switch-storm", "saturation", "convoy")
def rounds_of_threads() -> float:
    def handles() -> None:
        for _ in range(20):
            count(300)  # here
            time.sleep(0)  # here

    began = time.monotonic()
    while passing():
        for thread in start(*[handles] * 100):
            thread.join()
    return time.monotonic() - began


if __name__ == "__main__":
    main()
