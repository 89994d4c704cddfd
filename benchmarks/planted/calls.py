"""One call into C that does not let go of the GIL, or that destroys something large."""

from __future__ import annotations

import ctypes
import decimal
import gc
import itertools
import json
import math
import pickle
import re
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from plant import late, main, passing, planted, start


def beside(work: Callable[[], object], pause: float = 0.05) -> float:
    """What a thread loses that wakes every 2 ms, beside one that calls this now and then."""

    def worker() -> None:
        while passing():
            work()
            time.sleep(pause)

    start(worker)
    return late()


@planted("long-hold")
def regular_expression() -> float:
    pattern, text = re.compile(r"(a+)+$"), "a" * 22 + "b"

    def matches() -> None:
        pattern.match(text)  # here

    return beside(matches)


@planted("long-hold")
def dumps() -> float:
    data = [{"a": i, "b": [i] * 10} for i in range(60_000)]

    def exports() -> None:
        json.dumps(data)  # here

    return beside(exports)


@planted("long-hold")
def loads() -> float:
    text = json.dumps([[i] * 10 for i in range(100_000)])

    def reads() -> None:
        json.loads(text)  # here

    return beside(reads)


@planted("long-hold")
def sorts() -> float:
    data = [(i * 7919) % 1_000_003 for i in range(400_000)]

    def sorts_all() -> None:
        sorted(data)  # here

    return beside(sorts_all)


@planted("long-hold")
def large_power() -> float:
    def raises() -> int:
        return 7**400_000 % 1_000_003  # here

    return beside(raises)


@planted("long-hold")
def compares() -> float:
    one, other = list(range(6_000_000)), list(range(6_000_000))

    def same() -> bool:
        return one == other  # here

    return beside(same)


@planted("long-hold")
def counts_bytes() -> float:
    data = b"ab" * 40_000_000

    def counts() -> int:
        return data.count(b"ba")  # here

    return beside(counts)


@planted("long-hold")
def pickles() -> float:
    data = [(i, str(i)) for i in range(200_000)]

    def saves() -> bytes:
        return pickle.dumps(data)  # here

    return beside(saves)


@planted("long-hold")
def consumes() -> float:
    def drains() -> None:
        deque(itertools.repeat(None, 15_000_000), maxlen=0)  # here

    return beside(drains)


@planted("long-hold")
def sleeps_in_c() -> float:
    usleep = ctypes.PyDLL(None).usleep

    def naps() -> None:
        usleep(150_000)  # here

    return beside(naps)


@planted("long-hold")
def searches_a_list() -> float:
    data = list(range(8_000_000))

    def searches() -> bool:
        return -1 in data  # here

    return beside(searches)


@planted("long-hold")
def joins() -> float:
    parts = [str(i) for i in range(1_500_000)]

    def makes() -> str:
        return ",".join(parts)  # here

    return beside(makes)


@planted("long-hold")
def decimals() -> float:
    exact = decimal.Context(prec=60_000)

    def root() -> decimal.Decimal:
        return exact.sqrt(decimal.Decimal(2))  # here

    return beside(root)


@planted("long-hold")
def method_of_a_handler() -> float:
    class Export:
        rows = tuple((i * 7919) % 1_000_003 for i in range(300_000))

        def handle(self) -> list[int]:
            return self.order()

        def order(self) -> list[int]:
            return sorted(self.rows, key=str)  # here

    return beside(Export().handle)


def rows(n: int) -> list[list[int]]:
    """Made with pauses, and without collections, so that what costs is to be rid of them."""
    made = []
    for _ in range(n // 2000):
        made += [[i] for i in range(2000)]
        time.sleep(0)
    return made


@planted("destruction")
def deletes_a_list() -> float:
    gc.disable()

    def forgets() -> None:
        data = rows(600_000)
        time.sleep(0.001)
        del data  # here

    return beside(forgets, 0.01)


@planted("destruction")
def replaces_a_cache() -> float:
    gc.disable()

    class Cache:
        rows: list[list[int]]

    def renews() -> None:
        fresh = rows(600_000)
        Cache.rows = fresh  # here

    return beside(renews, 0.01)


@planted("destruction")
def returns_and_forgets() -> float:
    gc.disable()

    def handles() -> int:
        found = rows(600_000)
        return len(found)  # here

    def serves() -> None:
        handles()  # here

    return beside(serves, 0.01)


@planted("destruction", "long-hold")
def empties_a_dictionary() -> float:
    gc.disable()

    def renews() -> None:
        kept = {}
        for i in range(300):
            kept |= {(i, j): [j] for j in range(2000)}
            time.sleep(0)
        kept.clear()  # here

    return beside(renews, 0.01)


@planted("long-hold")
def set_of_many() -> float:
    one, other = set(range(1_500_000)), set(range(700_000, 2_500_000))

    def meets() -> set[int]:
        return one & other  # here

    return beside(meets)


@planted("long-hold")
def in_an_executor() -> float:
    data = [(i * 7919) % 1_000_003 for i in range(400_000)]

    def job() -> None:
        sorted(data, key=str)  # here

    with ThreadPoolExecutor(3) as pool:

        def feeds() -> None:
            while passing():
                pool.submit(job).result()
                time.sleep(0.03)

        threading.Thread(target=feeds, name="feeds", daemon=True).start()
        return late()


@planted("long-hold")
def fetches_rows_and_exports() -> float:
    base = sqlite3.connect(":memory:", check_same_thread=False)
    base.execute("create table t (a, b)")
    base.executemany("insert into t values (?, ?)", ((i, str(i)) for i in range(60_000)))

    def exports() -> None:
        rows = base.execute("select a, b from t").fetchall()
        json.dumps(rows)  # here

    threads = ThreadPoolExecutor(6)
    for _ in range(6):
        threads.submit(late, 0.02)
    return beside(exports)


@planted("long-hold")
def sums_an_array() -> float:
    import numpy

    data = numpy.array([i % 7 for i in range(3_000_000)], dtype=object)

    def sums() -> None:
        data.sum()  # here

    return beside(sums)


@planted("long-hold")
def factorials() -> float:
    def counts() -> int:
        return math.factorial(40_000)  # here

    return beside(counts)


if __name__ == "__main__":
    main()
