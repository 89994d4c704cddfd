"""How long a thread waits for a lock that others want all the time, and what a readers-writer lock costs."""

EXPERIMENT = {
    "id": "own.fairness",
    "growth": False,
    "ways": "by",
    "value": "took_s",
    "metrics": [
        {"name": "took_s", "title": "took", "unit": "s"},
        {"name": "clock_s", "title": "clock", "unit": "s"},
        {"name": "median_s", "title": "median", "unit": "s"},
        {"name": "turns", "title": "turns", "unit": "count"},
    ],
    "cases": {
        "lock": {
            "title": "The longest wait for a lock",
            "question": (
                "How long does the unluckiest of n threads wait that acquire one lock as often as they can?"
            ),
            "explanation": (
                "Each thread acquires the lock, loops a little inside, releases it and tries again at once, "
                "for half a second. The time is the longest single wait of any thread; turns are those of "
                "all. A lock that newcomers may take often goes to its last holder again, which has the GIL "
                "already. That gives many turns, and may leave one thread without any."
            ),
            "size_name": "threads",
            "sizes": {"quick": [16], "standard": [16], "full": [4, 16, 64]},
            "ways": ["threading.Lock", "Lock", "Lock(fair=True)"],
            "claims": [
                {
                    "topic": "longest wait",
                    "of": {"by": "threading.Lock"},
                    "over": {"by": "Lock"},
                    "says": "the longest wait for a Lock is shorter than for threading's",
                    "otherwise": "the longest wait for a Lock is no shorter than for threading's",
                },
                {
                    "topic": "turns, fair",
                    "metric": "turns",
                    "of": {"by": "threading.Lock"},
                    "over": {"by": "Lock(fair=True)"},
                    "says": "a fair Lock gives fewer turns than threading's",
                    "otherwise": "a fair Lock gives no fewer turns than threading's",
                },
            ],
        },
        "read": {
            "title": "Reading alone",
            "question": "What does a readers-writer lock cost a reader that is alone?",
            "explanation": "CPU time of the thread for a `with`.",
            "size_name": "pairs",
            "sizes": {"quick": [10000], "standard": [30000], "full": [60000]},
            "ways": ["readers first", "writers first", "RWLock", "culsans.RWLock"],
            "claims": [{"topic": "reading", "of": {"by": "readers first"}, "over": {"by": "RWLock"}}],
        },
        "write": {
            "title": "Writing alone",
            "question": "What does a readers-writer lock cost a writer that is alone?",
            "explanation": "CPU time of the thread for a `with`.",
            "size_name": "pairs",
            "sizes": {"quick": [10000], "standard": [30000], "full": [60000]},
            "ways": ["readers first", "writers first", "RWLock", "culsans.RWLock"],
            "claims": [{"topic": "writing", "of": {"by": "readers first"}, "over": {"by": "RWLock"}}],
        },
        "together": {
            "title": "Readers and writers together",
            "question": (
                "What does a readers-writer lock cost when four threads use it, each with one write in ten?"
            ),
            "explanation": "CPU time of the process for a pair of calls, and the clock's.",
            "size_name": "pairs",
            "sizes": {"quick": [4000], "standard": [16000], "full": [32000]},
            "ways": ["readers first", "writers first", "RWLock", "culsans.RWLock"],
            "claims": [{"topic": "four threads", "of": {"by": "readers first"}, "over": {"by": "RWLock"}}],
        },
        "under-readers": {
            "title": "A writer under readers",
            "question": "How long does a writer wait for a lock that two threads read all the time?",
            "explanation": (
                "The time is the longest of n waits. A lock that prefers readers lets the writer in when "
                "there happens to be none, or when they end, after half a second."
            ),
            "size_name": "writes",
            "sizes": {"quick": [15], "standard": [15], "full": [30]},
            "ways": ["readers first", "writers first", "RWLock", "culsans.RWLock"],
            "claims": [
                {
                    "topic": "a writer's wait",
                    "of": {"by": "readers first"},
                    "over": {"by": "RWLock"},
                    "says": "a writer waits less for an RWLock than for a lock that prefers readers",
                    "otherwise": "a writer waits no less for an RWLock than for a lock that prefers readers",
                }
            ],
        },
    },
    "sizes": {"quick": [10], "standard": [10], "full": [10]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}

import threading  # noqa: E402
import time  # noqa: E402
from functools import partial  # noqa: E402
from statistics import median  # noqa: E402

import own  # noqa: E402

SECONDS = 0.5
"""After which threads stop that would go on."""
INSIDE = 200
"""Iterations of an empty loop while the lock is held: some microseconds."""


def longest_wait(by, n):
    lock = own.made(by)
    waits = []

    def body():
        longest = turns = 0
        until = time.perf_counter() + SECONDS
        while (begin := time.perf_counter()) < until:
            with lock:
                longest = max(longest, time.perf_counter() - begin)
                for _ in range(INSIDE):
                    pass
            turns += 1
        waits.append((longest, turns))

    own.in_threads(n, body)
    return {"took_s": max(longest for longest, _ in waits), "turns": sum(turns for _, turns in waits)}


class OfThreading:
    """A readers-writer lock as one makes it of a condition and two counts."""

    def __init__(self, writers_first):
        self.changed = threading.Condition(threading.Lock())
        self.readers = self.writers_waiting = 0
        self.busy = False
        self.writers_first = writers_first
        self.reading, self.writing = Reading(self), Writing(self)


class Reading:
    def __init__(self, lock):
        self._lock = lock

    def __enter__(self):
        lock = self._lock
        with lock.changed:
            while lock.busy or (lock.writers_first and lock.writers_waiting):
                lock.changed.wait()
            lock.readers += 1

    def __exit__(self, *_):
        lock = self._lock
        with lock.changed:
            lock.readers -= 1
            if not lock.readers:
                lock.changed.notify_all()


class Writing:
    def __init__(self, lock):
        self._lock = lock

    def __enter__(self):
        lock = self._lock
        with lock.changed:
            lock.writers_waiting += 1
            while lock.busy or lock.readers:
                lock.changed.wait()
            lock.writers_waiting -= 1
            lock.busy = True

    def __exit__(self, *_):
        with self._lock.changed:
            self._lock.busy = False
            self._lock.changed.notify_all()


def rwlock(by):
    return OfThreading(by == "writers first") if by.endswith("first") else own.made(by)


def alone(statement, by, n):
    return own.pair(statement, n, lambda: {"x": rwlock(by)})


def together(by, n):
    lock = rwlock(by)

    def body():
        for number in range(n // 4):
            with lock.writing if number % 10 == 0 else lock.reading:
                pass

    return own.in_threads(4, body).each(n)


def under_readers(by, n):
    lock = rwlock(by)
    ended, waits = threading.Event(), []
    until = time.perf_counter() + SECONDS

    def read():
        while not ended.is_set() and time.perf_counter() < until:
            with lock.reading:
                sum(range(1000))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    while len(waits) < n and (begin := time.perf_counter()) < until:
        with lock.writing:
            waits.append(time.perf_counter() - begin)
        time.sleep(0.001)
    ended.set()
    for thread in threads:
        thread.join()
    return {"took_s": max(waits), "median_s": median(waits)}


if __name__ == "__main__":
    own.main(
        EXPERIMENT,
        {
            "lock": longest_wait,
            "read": partial(alone, "with x.reading: pass"),
            "write": partial(alone, "with x.writing: pass"),
            "together": together,
            "under-readers": under_readers,
        },
    )
