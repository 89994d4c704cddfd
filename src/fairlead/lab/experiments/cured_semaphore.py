"""n threads wait at a gate, the last one opens it, and those already awake keep running."""

EXPERIMENT = {
    "id": "cured.semaphore",
    "title": "Waking many threads at once, by a chain",
    "question": "How long until n threads woken at once have all run, if each wakes the next ones?",
    "explanation": (
        "As square.semaphore, with fairlead's Event. The opening thread wakes two, and each that "
        "wakes wakes two more before it wants the GIL, so that none makes n system calls while it holds "
        "the GIL. In what order the n then get the GIL is still the kernel's affair, as it is there."
    ),
    "schedule": "",
    "size_name": "threads",
    "metrics": [
        {"name": "region_s", "title": "all awake", "unit": "s"},
    ],
    "claims": [
        {
            "topic": "waking in a chain",
            "of": {"experiment": "square.semaphore", "wake": "release"},
            "more_than": 1.1,
            "says": "an Event wakes {n} threads faster than a semaphore",
            "otherwise": "an Event wakes {n} threads no faster than a semaphore",
            "main": False,
        },
    ],
    "parameters": {
        "work": {
            "default": "sleep0",
            "choices": ["sleep0", "yield", "spin"],
            "help": "how those already awake keep running: time.sleep(0), sched_yield(), or Python only",
        },
    },
    "sizes": {
        "quick": [100, 150, 220, 320],
        "standard": [100, 200, 400],
        "full": [100, 300, 500, 700, 900],
    },
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}

import threading  # noqa: E402

import probe  # noqa: E402


def measure(params):
    try:
        from fairlead.sync import Event
    except ImportError:
        raise probe.no_fairlead()
    n = params["n"]
    work = probe.work(params["work"])
    gate = Event()
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
            gate.set()
        else:
            gate.wait()
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


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
