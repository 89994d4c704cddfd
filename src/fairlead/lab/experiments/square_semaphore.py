"""n threads wait, the last one wakes them all, and those already awake keep running."""

EXPERIMENT = {
    "id": "square.semaphore",
    "title": "Waking many threads at once",
    "question": "How long until n threads woken at once have all run, if those already awake keep running?",
    "explanation": (
        "All wake-ups are given out at once, so the kernel has all threads ready to run and none waits for "
        "the wake-up of another. But each of them needs the GIL once to see that it is awake, and it queues "
        "for it behind those that already run. How many turns those take in the meantime depends on which "
        "thread the kernel favours. Where a newly woken thread is served soon, it is n turns in all; where "
        "it waits for a round of all others, it is a square. Both happen, on the same machine, from one run "
        "to the next: look at the two modes and not at their mean. Semaphore, Event, Barrier and Queue are "
        "Python code around a lock and a Condition, which adds turns of its own. What waking costs has "
        "three rules: a wake-up that switches no thread is free and n of them take a time in proportion to "
        "n; one that is a system call lets go of the GIL, and takes as long as the kernel lets others run "
        "meanwhile; one that waits until the thread runs takes a round of turns, and n of them a square. "
        "Scheduled, a thread that wakes comes first, whatever the kernel favours."
    ),
    "schedule": "",
    "size_name": "threads",
    "metrics": [
        {"name": "region_s", "title": "all awake", "unit": "s"},
    ],
    "claims": [
        {
            "topic": "waking, semaphore",
            "kind": "exponent",
            "of": {"wake": "release"},
            "more_than": 1.5,
            "says": "waking with a semaphore: time grows faster than n^1.5",
            "otherwise": "waking with a semaphore: time grows no faster than n^1.5",
        },
        {
            "topic": "semaphore, scheduled",
            "kind": "exponent",
            "of": {"wake": "release", "scheduler": "interactive"},
            "more_than": 1.15,
            "says": "waking with a semaphore, GIL scheduled: time grows faster than n^1.15",
            "otherwise": "waking with a semaphore, GIL scheduled: time grows no faster than n^1.15",
            "main": False,
        },
        {
            "topic": "waking, GIL scheduled",
            "of": {"wake": "release", "scheduler": "off"},
            "over": {"wake": "release", "scheduler": "interactive"},
            "more_than": 1.1,
            "says": "waking with a semaphore: faster with the GIL scheduled",
            "otherwise": "waking with a semaphore: no faster with the GIL scheduled",
            "main": False,
        },
        {
            "topic": "waking, release(n)",
            "kind": "exponent",
            "of": {"wake": "release-n"},
            "more_than": 1.5,
            "says": "waking with one release(n): time grows faster than n^1.5",
            "otherwise": "waking with one release(n): time grows no faster than n^1.5",
            "main": False,
        },
        {
            "topic": "waking, Event",
            "kind": "exponent",
            "of": {"wake": "event"},
            "more_than": 1.5,
            "says": "waking with Event.set: time grows faster than n^1.5",
            "otherwise": "waking with Event.set: time grows no faster than n^1.5",
            "main": False,
        },
        {
            "topic": "waking, Barrier",
            "kind": "exponent",
            "of": {"wake": "barrier"},
            "more_than": 1.5,
            "says": "waking with Barrier.wait: time grows faster than n^1.5",
            "otherwise": "waking with Barrier.wait: time grows no faster than n^1.5",
            "main": False,
        },
        {
            "topic": "waking, Condition",
            "kind": "exponent",
            "of": {"wake": "notify"},
            "more_than": 1.5,
            "says": "waking with Condition.notify: time grows faster than n^1.5",
            "otherwise": "waking with Condition.notify: time grows no faster than n^1.5",
            "main": False,
        },
        {
            "topic": "waking, one queue",
            "kind": "exponent",
            "of": {"wake": "queue"},
            "more_than": 1.5,
            "says": "waking those that wait for one queue: time grows faster than n^1.5",
            "otherwise": "waking those that wait for one queue: time grows no faster than n^1.5",
            "main": False,
        },
        {
            "topic": "rule 1: free wake-ups",
            "kind": "exponent",
            "of": {"wake": "locks"},
            "more_than": 1.5,
            "says": "wake-ups that switch no thread: time grows faster than n^1.5",
            "otherwise": "wake-ups that switch no thread: time grows no faster than n^1.5",
            "main": False,
        },
        {
            "topic": "rule 2: no wait",
            "kind": "exponent",
            "of": {"wake": "pipe"},
            "more_than": 1.5,
            "says": "wake-ups by a system call that nothing waits for: time grows faster than n^1.5",
            "otherwise": "wake-ups by a system call that nothing waits for: time grows no faster than n^1.5",
            "main": False,
        },
        {
            "topic": "rule 3: waits for each",
            "kind": "exponent",
            "of": {"wake": "handshake"},
            "more_than": 1.5,
            "says": "wake-ups that wait for each thread: time grows faster than n^1.5",
            "otherwise": "wake-ups that wait for each thread: time grows no faster than n^1.5",
            "main": False,
        },
        {
            "topic": "semaphore vs locks",
            "of": {"wake": "release"},
            "over": {"wake": "locks"},
            "more_than": 1.1,
            "says": "a semaphore wakes {n} threads more slowly than a lock for each",
            "otherwise": "a semaphore wakes {n} threads no more slowly than a lock for each",
            "main": False,
        },
        {
            "topic": "Condition vs locks",
            "of": {"wake": "notify"},
            "over": {"wake": "locks"},
            "more_than": 1.1,
            "says": "a Condition wakes {n} threads more slowly than a lock for each",
            "otherwise": "a Condition wakes {n} threads no more slowly than a lock for each",
            "main": False,
        },
    ],
    "parameters": {
        "wake": {
            "default": "release",
            "choices": [
                "release",
                "release-n",
                "event",
                "barrier",
                "notify",
                "queue",
                "locks",
                "pipe",
                "handshake",
            ],
            "help": (
                "n - 1 times Semaphore.release(); release(n - 1), Event.set() or Barrier.wait(); n - 1 "
                "times Condition.notify(), Queue.put(), release() of a lock for each, a write to a pipe, or "
                "release() and a wait until that thread runs"
            ),
        },
        "work": {
            "default": "sleep0",
            "choices": ["sleep0", "yield", "spin"],
            "help": "how those already awake keep running: time.sleep(0), sched_yield(), or Python only",
        },
        "scheduler": {
            "default": "off",
            "choices": ["off", "interactive"],
            "help": "whether fairlead schedules the GIL meanwhile",
        },
    },
    "variants": [
        {"label": "release", "params": {"wake": "release"}},
        {"label": "release(n)", "params": {"wake": "release-n"}, "modes": ["standard", "full"]},
        {"label": "event", "params": {"wake": "event"}, "modes": ["standard", "full"]},
        {"label": "barrier", "params": {"wake": "barrier"}, "modes": ["standard", "full"]},
        {"label": "notify", "params": {"wake": "notify"}, "modes": ["full"]},
        {"label": "one queue", "params": {"wake": "queue"}, "modes": ["full"]},
        {"label": "a lock each", "params": {"wake": "locks"}, "modes": ["full"]},
        {"label": "pipe", "params": {"wake": "pipe"}, "modes": ["full"]},
        {"label": "handshake", "params": {"wake": "handshake"}, "modes": ["full"]},
        {
            "label": "release, scheduled",
            "params": {"wake": "release", "scheduler": "interactive"},
            "modes": ["standard", "full"],
        },
    ],
    "sizes": {
        "quick": [100, 150, 220, 320],
        "quick:<3.11": [20, 30, 50, 80],
        "standard": [100, 200, 400, 600],
        "standard:<3.11": [50, 100, 150, 200],
        "full": [100, 300, 500, 700, 900],
        "full:<3.11": [100, 200, 300, 400],
    },
    "timeout_s": 60,
    "pythons": ">=2.7",
}

import os  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402

import probe  # noqa: E402
import probe_fairlead  # noqa: E402


def measure(params):
    probe_fairlead.schedule(params["scheduler"])
    n = params["n"]
    work = probe.work(params["work"])
    wait, wake = waking(params["wake"], n)
    region = probe.Region()
    door = threading.Lock()
    arrived = []
    awake = []
    blocked = []

    def body(index):
        with door:
            arrived.append(index)
            last = len(arrived) == n
        if last:
            blocked.append(probe.wait_until_blocked(probe.other_threads))
            region.begin()
            wake()
        else:
            wait()
        awake.append(index)
        if len(awake) == n:
            region.mark("region_s")
        while len(awake) < n:
            work()

    for thread in probe.start(n, body):
        thread.join()
    region.end()
    if sorted(awake) != list(range(n)):
        raise probe.Failed("not every thread woke exactly once: %d of %d" % (len(set(awake)), n))
    return region.result({"awake": len(awake), "all_blocked_first": blocked[0]})


def waking(name, n):
    """The function that n - 1 threads wait in, and the one with which the last of n wakes them all."""
    if name == "event":
        event = threading.Event()
        return event.wait, event.set
    if name == "barrier":
        if not hasattr(threading, "Barrier"):
            raise probe.Skipped("needs threading.Barrier, which came with Python 3.2")
        barrier = threading.Barrier(n)
        return barrier.wait, barrier.wait
    if name == "queue":
        queue = __import__("queue" if sys.version_info >= (3,) else "Queue").Queue()
        return queue.get, lambda: [queue.put(None) for _ in range(n - 1)]
    if name == "pipe":
        reading, writing = os.pipe()
        return lambda: os.read(reading, 1), lambda: [os.write(writing, b"x") for _ in range(n - 1)]
    if name == "notify":
        return notifying(threading.Condition(), n)
    if name in ("locks", "handshake"):
        return releasing(n, name == "handshake")
    semaphore = threading.Semaphore(0)
    if name == "release-n":
        if sys.version_info < (3, 9):
            raise probe.Skipped("needs Semaphore.release(n), which came with Python 3.9")
        return semaphore.acquire, lambda: semaphore.release(n - 1)

    def release_all():
        for _ in range(n - 1):
            semaphore.release()

    return semaphore.acquire, release_all


def notifying(condition, n):
    """One notify() after another, each with the lock that a waiter acquires again after its wait."""

    def wait():
        with condition:
            condition.wait()

    def wake():
        for _ in range(n - 1):
            with condition:
                condition.notify()

    return wait, wake


def releasing(n, waits):
    """A lock for each waiter; the waking thread waits for each to run before it wakes the next, or not."""
    locks = [threading.Lock() for _ in range(n - 1)]
    runs = threading.Lock()
    for lock in locks + [runs]:
        lock.acquire()
    free = list(locks)

    def wait():
        free.pop().acquire()
        if waits:
            runs.release()

    def wake():
        for lock in locks:
            lock.release()
            if waits:
                runs.acquire()

    return wait, wake


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
