"""n threads pass a lock that runs the sections of the waiting threads; those already through keep running."""

EXPERIMENT = {
    "id": "cured.mutex",
    "title": "Passing a lock, combined",
    "question": "How long do n waiting threads take to pass a lock whose holder runs their sections?",
    "explanation": (
        "As square.mutex, with fairlead's Combiner. The holder runs the sections of all waiters, "
        "one after another and in its own thread, so that n sections need no n switches of threads and no "
        "turn of another thread in between. Each of the n still needs the GIL once afterwards, to see that "
        "its section is done, and those that have seen it keep running until the last section has run; the "
        "time is that until all threads are joined."
    ),
    "schedule": "pass",
    "size_name": "threads",
    "metrics": [
        {"name": "region_s", "title": "last pass", "unit": "s"},
    ],
    "claims": [
        {
            "topic": "Combiner",
            "of": {"experiment": "square.mutex"},
            "more_than": 1.1,
            "says": "{n} threads pass a Combiner faster than a Lock",
            "otherwise": "{n} threads pass a Combiner no faster than a Lock",
        },
    ],
    "parameters": {
        "work": {
            "default": "sleep0",
            "choices": ["sleep0", "yield", "spin"],
            "help": "how those already through keep running: time.sleep(0), sched_yield(), or Python only",
        },
    },
    "sizes": {
        "quick": [50, 75, 110, 160],
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
        from fairlead.sync.extra import Combiner
    except ImportError:
        raise probe.no_fairlead()
    n = params["n"]
    work = probe.work(params["work"])
    lock = Combiner()
    region = probe.Region()
    arrived = []
    passed = []
    blocked = []

    def section(index):
        if not passed:
            probe.wait_until(lambda: len(arrived) == n, "all threads have arrived")
            blocked.append(probe.wait_until_blocked(probe.other_threads))
            region.begin()
        passed.append(index)
        if len(passed) == n:
            region.mark("region_s")

    def body(index):
        arrived.append(index)
        lock.run(lambda: section(index))
        while len(passed) < n:
            work()

    for thread in probe.start(n, body):
        thread.join()
    region.end()
    if sorted(passed) != list(range(n)):
        raise probe.Failed("not every thread passed exactly once: %d passes of %d" % (len(passed), n))
    details = {"passed": len(passed), "all_blocked_first": blocked[0]}
    return region.result(dict(details, combined=lock.statistics().combined))


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
