"""Programs of several processes: the trouble is in a child."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import time

from plant import count, late, main, passing, planted, start


def computes() -> None:
    while passing():
        count(2000)  # here


def forked(work: object, n: int = 2) -> float:
    children = []
    for _ in range(n):
        pid = os.fork()
        if pid == 0:
            work()
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    return 1.0


@planted("convoy")
def forked_workers_with_a_report() -> float:
    def worker() -> None:
        start(computes)
        late(0.002)

    return forked(worker)


@planted("long-hold")
def forked_workers_that_export() -> float:
    data = [{"a": i, "b": [i] * 10} for i in range(60_000)]

    def exports() -> None:
        while passing():
            json.dumps(data)  # here
            time.sleep(0.03)

    def worker() -> None:
        start(exports)
        late(0.002)

    return forked(worker)


@planted("convoy")
def pool_of_processes() -> float:
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool:
        pool.map(child, range(2))
    return 1.0


def child(_: int) -> None:
    threading.Thread(target=computes, daemon=True).start()
    late(0.002)


if __name__ == "__main__":
    main()
