"""n threads are started one after the other, while those already started keep running."""

EXPERIMENT = {
    "id": "square.thread-start",
    "title": "Starting threads",
    "question": "How long does it take to start n threads, if those already started keep running?",
    "explanation": (
        "Starting a thread is a conversation: Thread.start() returns only when the new thread has said "
        "that it runs. For that the new thread needs the GIL, and then the starting thread needs it back, "
        "and each time all threads that were started before get their turn first. So the k-th start waits "
        "for about two rounds of k turns, and n starts take 2 (1 + 2 + ... + n) turns: a square, although "
        "each thread by itself starts in microseconds. It is no law of starting threads: with threads that "
        "do nothing but wait, the same loop takes a time proportional to n. Scheduled, a thread that "
        "starts or is started comes before those that keep running, and so it is here."
    ),
    "schedule": "start",
    "size_name": "threads",
    "metrics": [
        {"name": "region_s", "title": "all started", "unit": "s"},
        {"name": "per_turn", "title": "switches a turn", "unit": "ratio"},
    ],
    "claims": [
        {
            "topic": "starting threads",
            "kind": "exponent",
            "of": {},
            "more_than": 1.5,
            "says": "starting threads: time grows faster than n^1.5",
            "otherwise": "starting threads: time grows no faster than n^1.5",
        },
        {
            "topic": "starts, GIL scheduled",
            "of": {"scheduler": "off"},
            "over": {"scheduler": "interactive"},
            "more_than": 1.1,
            "says": "starting threads: faster with the GIL scheduled",
            "otherwise": "starting threads: no faster with the GIL scheduled",
            "main": False,
        },
    ],
    "parameters": {
        "work": {
            "default": "sleep0",
            "choices": ["sleep0", "yield", "spin"],
            "help": "how those already started keep running: time.sleep(0), sched_yield(), or Python only",
        },
        "scheduler": {
            "default": "off",
            "choices": ["off", "interactive"],
            "help": "whether fairlead schedules the GIL meanwhile",
        },
    },
    "variants": [
        {"label": "", "params": {}, "modes": ["quick", "standard", "full"]},
        {"label": "scheduled", "params": {"scheduler": "interactive"}, "modes": ["standard", "full"]},
    ],
    "sizes": {
        "quick": [40, 60, 90, 130],
        "quick:<3.11": [10, 15, 20, 30],
        "standard": [50, 100, 200, 400],
        "standard:<3.11": [25, 50, 75, 100],
        "full": [100, 300, 500, 700, 900],
        "full:<3.11": [100, 150, 200, 300],
        "full:PyPy": [100, 300, 500, 700],
    },
    "timeout_s": 60,
    "pythons": ">=2.7",
}

import probe  # noqa: E402
import probe_fairlead  # noqa: E402


def measure(params):
    probe_fairlead.schedule(params["scheduler"])
    n = params["n"]
    work = probe.work(params["work"])
    items = list(range(n))
    taken = []

    def body(index):
        taken.append(items.pop())
        while items:
            work()

    threads = probe.make(n, body)
    region = probe.Region()
    region.begin()
    for thread in threads:
        thread.start()
    region.mark("region_s")
    for thread in threads:
        thread.join()
    region.end()
    if sorted(taken) != list(range(n)):
        raise probe.Failed("not every thread took one item: %d of %d were taken" % (len(set(taken)), n))
    return region.result({"taken": len(taken)}, turns=n * (n + 1) + 1)


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
