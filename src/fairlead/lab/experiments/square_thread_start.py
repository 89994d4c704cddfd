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
        {"name": "turns", "title": "turns", "unit": "ratio"},
        {"name": "per_turn", "title": "switches a turn", "unit": "ratio"},
        {"name": "quickest_s", "title": "quickest", "unit": "s"},
    ],
    "claims": [
        {
            "topic": "starting threads",
            "kind": "exponent",
            "of": {"work": "sleep0"},
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
        {
            "topic": "starts, scheduled",
            "kind": "exponent",
            "of": {"work": "sleep0", "scheduler": "interactive"},
            "more_than": 1.15,
            "says": "starting threads, GIL scheduled: time grows faster than n^1.15",
            "otherwise": "starting threads, GIL scheduled: time grows no faster than n^1.15",
            "main": False,
        },
        {
            "topic": "starting, none runs on",
            "kind": "exponent",
            "of": {"work": "stop"},
            "more_than": 1.5,
            "says": "starting threads that end at once: time grows faster than n^1.5",
            "otherwise": "starting threads that end at once: time grows no faster than n^1.5",
            "main": False,
        },
        {
            "topic": "spread without sleep",
            "of": {"work": "spin", "repeats": 5},
            "over_metric": "quickest_s",
            "more_than": 1.5,
            "says": "starting threads that compute: the slowest of 5 times takes over 1.5 times the quickest",
            "otherwise": "starting threads that compute: 5 times are within 1.5 times the quickest",
            "main": False,
        },
        {
            "topic": "starts without a GIL",
            "of": {"work": "sleep0", "gil": "on"},
            "over": {"work": "sleep0", "gil": "as built"},
            "more_than": 1.1,
            "says": "starting threads: slower with the GIL than without",
            "otherwise": "starting threads: no slower with the GIL than without",
            "main": False,
        },
    ],
    "parameters": {
        "work": {
            "default": "sleep0",
            "choices": ["sleep0", "yield", "spin", "stop"],
            "help": (
                "how those already started keep running: time.sleep(0), sched_yield(), Python only, or not "
                "at all"
            ),
        },
        "repeats": {
            "default": 1,
            "choices": [1, 5],
            "help": "how many times n threads are started; the time is that of the slowest",
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
        {
            "label": "pass for sleep(0)",
            "params": {"work": "spin", "repeats": 5},
            "modes": ["full"],
            "sizes": {"quick": [4, 6], "standard": [4, 8], "full": [4, 8, 12]},
        },
        {"label": "with the GIL", "params": {"gil": "on"}, "modes": ["full"]},
    ],
    "sizes": {
        "quick": [40, 60, 90, 130],
        "quick:<3.11": [10, 15, 20, 30],
        "standard": [50, 100, 200, 400],
        "standard:<3.11": [25, 50, 75, 100],
        "full": [100, 300, 500, 700, 900],
        "full:<3.11": [100, 150, 200, 300],
    },
    "timeout_s": 60,
    "pythons": ">=2.7",
}

import probe  # noqa: E402
import probe_fairlead  # noqa: E402
import probe_square  # noqa: E402


def measure(params):
    probe_square.set_gil(params["gil"])
    probe_fairlead.schedule(params["scheduler"])
    work = probe_square.work(params["work"])
    answers = [start(params["n"], work) for _ in range(params["repeats"])]
    slowest = max(answers, key=lambda answer: answer["wall_s"])
    if len(answers) > 1:
        slowest["details"]["metrics"]["quickest_s"] = min(answer["wall_s"] for answer in answers)
    return slowest


def start(n, work):
    """The result of starting n threads once."""
    items = list(range(n))
    taken = []
    worked = []

    def body(index):
        taken.append(items.pop())
        times = 0
        while items and work:
            work()
            times += 1
        worked.append(times)

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
    turns = n * (n + 1) + 1
    # each thread's first turn, and the starter's before the first start and after each
    answer = region.result({"taken": len(taken)}, turns=turns)
    return probe_square.with_turns(answer, worked, 2 * n + 1, turns)


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
