"""n threads are started behind a gate, and keep running once it opens."""

EXPERIMENT = {
    "id": "cured.thread-start",
    "title": "Starting threads behind a gate",
    "question": "How long does it take to start n threads that wait at a gate until all are there?",
    "explanation": (
        "As square.thread-start, with fairlead's Event as a gate. Each new thread sleeps at the gate "
        "without the GIL, so that none takes turns with the thread that starts them: n starts take n times "
        "as long as one. When the gate opens, each of the n needs one turn to take its item, and those that "
        "have theirs keep running until the last one has."
    ),
    "schedule": "start",
    "size_name": "threads",
    "metrics": [
        {"name": "region_s", "title": "all started", "unit": "s"},
    ],
    "claims": [
        {
            "topic": "start behind an Event",
            "of": {"experiment": "square.thread-start"},
            "more_than": 1.1,
            "says": "{n} threads start faster behind an Event",
            "otherwise": "{n} threads start no faster behind an Event",
        },
    ],
    "parameters": {
        "work": {
            "default": "sleep0",
            "choices": ["sleep0", "yield", "spin"],
            "help": "how those already started keep running: time.sleep(0), sched_yield(), or Python only",
        },
    },
    "sizes": {
        "quick": [40, 60, 90, 130],
        "standard": [100, 200, 400],
        "full": [100, 300, 500, 700, 900],
    },
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}

import probe  # noqa: E402


def measure(params):
    try:
        from fairlead.sync import Event
    except ImportError:
        raise probe.no_fairlead()
    n = params["n"]
    work = probe.work(params["work"])
    items = list(range(n))
    taken = []
    gate = Event()

    def body(index):
        gate.wait()
        taken.append(items.pop())
        while items:
            work()

    threads = probe.make(n, body)
    region = probe.Region()
    region.begin()
    try:
        for thread in threads:
            thread.start()
        region.mark("region_s")
    finally:
        gate.set()
    for thread in threads:
        thread.join()
    region.end()
    if sorted(taken) != list(range(n)):
        raise probe.Failed("not every thread took one item: %d of %d were taken" % (len(set(taken)), n))
    return region.result({"taken": len(taken)})


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
