"""n threads wait, the last one wakes them all, and those already awake keep running."""

EXPERIMENT = {
    "id": "square.semaphore",
    "title": "Waking many threads at once",
    "question": "How long until n threads woken at once have all run, if those already awake keep running?",
    "explanation": (
        "All wake-ups are given out at once, so the kernel has all threads ready to run and none waits for "
        "the wake-up of another. But each of them needs the GIL once to see that it is awake, and it "
        "queues for it behind those that already run. How many turns those take in the meantime depends on "
        "which thread the kernel favours. Where a newly woken thread is served soon, it is n turns in all; "
        "where it waits for a round of all others, it is a square. Both happen, on the same machine, from "
        "one run to the next: look at the two modes and not at their mean. Semaphore, Event and Barrier "
        "are Python code around a lock and a Condition, which adds turns of its own. Scheduled, a thread "
        "that wakes comes first, whatever the kernel favours."
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
    ],
    "parameters": {
        "wake": {
            "default": "release",
            "choices": ["release", "release-n", "event", "barrier"],
            "help": "n - 1 times release(), release(n - 1), Event.set() or Barrier.wait()",
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
        {"label": "release", "params": {"wake": "release"}, "modes": ["quick", "standard", "full"]},
        {"label": "release(n)", "params": {"wake": "release-n"}, "modes": ["standard", "full"]},
        {"label": "event", "params": {"wake": "event"}, "modes": ["standard", "full"]},
        {"label": "barrier", "params": {"wake": "barrier"}, "modes": ["standard", "full"]},
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
    semaphore = threading.Semaphore(0)
    if name == "release-n":
        if sys.version_info < (3, 9):
            raise probe.Skipped("needs Semaphore.release(n), which came with Python 3.9")
        return semaphore.acquire, lambda: semaphore.release(n - 1)

    def release_all():
        for _ in range(n - 1):
            semaphore.release()

    return semaphore.acquire, release_all


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
