"""n threads pass one lock, while those already through keep running."""

EXPERIMENT = {
    "id": "square.mutex",
    "title": "Passing a lock",
    "question": "How long do n waiting threads take to pass a lock, if those already through keep running?",
    "explanation": (
        "Each release of the lock wakes exactly one waiter, and the woken thread needs the GIL before it "
        "can go on. All threads that are already through want the GIL as well, again and again, and each "
        "of them gets its turn first. So the k-th pass waits for a round of k turns, and n passes take 1 + "
        "2 + ... + n turns: a square, although every thread passes the lock only once and the lock itself "
        "is never the bottleneck. Scheduled, a thread that wakes comes before those that keep running, and "
        "n passes take a time proportional to n."
    ),
    "schedule": "pass",
    "size_name": "threads",
    "metrics": [
        {"name": "region_s", "title": "last pass", "unit": "s"},
        {"name": "turns", "title": "turns", "unit": "ratio"},
        {"name": "per_turn", "title": "switches a turn", "unit": "ratio"},
    ],
    "claims": [
        {
            "topic": "passing a lock",
            "kind": "exponent",
            "of": {"work": "sleep0"},
            "more_than": 1.5,
            "says": "passing a lock: time grows faster than n^1.5",
            "otherwise": "passing a lock: time grows no faster than n^1.5",
        },
        {
            "topic": "lock, GIL scheduled",
            "of": {"scheduler": "off"},
            "over": {"scheduler": "interactive"},
            "more_than": 1.1,
            "says": "passing a lock: faster with the GIL scheduled",
            "otherwise": "passing a lock: no faster with the GIL scheduled",
            "main": False,
        },
        {
            "topic": "passes, scheduled",
            "kind": "exponent",
            "of": {"work": "sleep0", "scheduler": "interactive"},
            "more_than": 1.15,
            "says": "passing a lock, GIL scheduled: time grows faster than n^1.15",
            "otherwise": "passing a lock, GIL scheduled: time grows no faster than n^1.15",
            "main": False,
        },
        {
            "topic": "passing, none runs on",
            "kind": "exponent",
            "of": {"work": "stop"},
            "more_than": 1.5,
            "says": "passing a lock, threads that end at once: time grows faster than n^1.5",
            "otherwise": "passing a lock, threads that end at once: time grows no faster than n^1.5",
            "main": False,
        },
        {
            "topic": "lock without a GIL",
            "of": {"work": "sleep0", "gil": "on"},
            "over": {"work": "sleep0", "gil": "as built"},
            "more_than": 1.1,
            "says": "passing a lock: slower with the GIL than without",
            "otherwise": "passing a lock: no slower with the GIL than without",
            "main": False,
        },
    ],
    "parameters": {
        "work": {
            "default": "sleep0",
            "choices": ["sleep0", "yield", "spin", "stop"],
            "help": (
                "how those already through keep running: time.sleep(0), sched_yield(), Python only, or not "
                "at all"
            ),
        },
        "gil": {
            "default": "as built",
            "choices": ["as built", "on"],
            "help": "on: a free-threaded build with its GIL switched on",
        },
        "scheduler": {
            "default": "off",
            "choices": ["off", "interactive"],
            "help": "whether fairlead schedules the GIL meanwhile",
        },
    },
    "variants": [
        {"label": ""},
        {"label": "scheduled", "params": {"scheduler": "interactive"}, "modes": ["standard", "full"]},
        {"label": "none runs on", "params": {"work": "stop"}, "modes": ["standard", "full"]},
        {"label": "with the GIL", "params": {"gil": "on"}, "modes": ["full"]},
    ],
    "sizes": {
        "quick": [50, 75, 110, 160],
        "quick:<3.11": [15, 25, 35, 50],
        "standard": [50, 100, 200, 400],
        "standard:<3.11": [25, 50, 100, 150],
        "full": [100, 300, 500, 700, 900],
        "full:<3.11": [100, 200, 300, 400],
    },
    "timeout_s": 60,
    "pythons": ">=2.7",
}

import threading  # noqa: E402

import probe  # noqa: E402
import probe_fairlead  # noqa: E402
import probe_square  # noqa: E402


def measure(params):
    probe_square.set_gil(params["gil"])
    probe_fairlead.schedule(params["scheduler"])
    n = params["n"]
    work = probe_square.work(params["work"])
    lock = threading.Lock()
    region = probe.Region()
    arrived = []
    passed = []
    blocked = []
    worked = []

    def body(index):
        arrived.append(index)
        with lock:
            if not passed:
                probe.wait_until(lambda: len(arrived) == n, "all threads have arrived")
                blocked.append(probe.wait_until_blocked(probe.other_threads))
                region.begin()
            passed.append(index)
            if len(passed) == n:
                region.mark("region_s")
        times = 0
        while len(passed) < n and work:
            work()
            times += 1
        worked.append(times)

    for thread in probe.start(n, body):
        thread.join()
    region.end()
    if sorted(passed) != list(range(n)):
        raise probe.Failed("not every thread passed exactly once: %d passes of %d" % (len(passed), n))
    turns = n * (n + 1) // 2
    answer = region.result({"passed": len(passed), "all_blocked_first": blocked[0]}, turns=turns)
    return probe_square.with_turns(answer, worked, n, turns)


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
