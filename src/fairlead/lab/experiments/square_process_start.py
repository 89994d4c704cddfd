"""n processes are started one after the other, while those already started keep running."""

EXPERIMENT = {
    "id": "square.process-start",
    "title": "Starting processes",
    "question": "How long does it take to fork n processes, if those already forked keep running?",
    "explanation": (
        "No GIL joins these processes: each has its own. What they share is the machine's cores, and the "
        "kernel gives them out in turns as well. The parent needs a core for every fork, and it queues for "
        "it behind the children that keep running and yielding; the k-th fork waits for a round of k turns, "
        "shared by the cores there are. So the square is no fault of Python's: a program that starts workers "
        "which run at once, while it still starts others, pays it in every language. Cores divide it, and "
        "the kernel's favour for the process that has run least may hide it. Processes are those of "
        "multiprocessing, started by a fork, and each looks at n flags in shared memory, one after another, "
        "before it yields: a turn takes a time in proportion to n as well, which the square does not need."
    ),
    "schedule": "start",
    "size_name": "processes",
    "metrics": [
        {"name": "region_s", "title": "all started", "unit": "s"},
        {"name": "per_turn", "title": "switches a turn", "unit": "ratio"},
    ],
    "claims": [
        {
            "topic": "starting processes",
            "kind": "exponent",
            "of": {},
            "more_than": 1.5,
            "says": "starting processes: time grows faster than n^1.5",
            "otherwise": "starting processes: time grows no faster than n^1.5",
        },
    ],
    "parameters": {
        "work": {
            "default": "sleep0",
            "choices": ["sleep0", "yield", "spin"],
            "help": "how those already forked keep running: time.sleep(0), sched_yield(), or Python only",
        },
    },
    "sizes": {
        "quick": [10, 15, 22, 33],
        "standard": [10, 20, 40, 60],
        "full": [10, 30, 50, 70, 90],
    },
    "timeout_s": 60,
    "pythons": ">=2.7",
}

import probe  # noqa: E402
import probe_square  # noqa: E402


def measure(params):
    n = params["n"]
    work = probe.work(params["work"])
    started = probe_square.array(n)

    def body(index):
        started[index] = True
        while not all(started):
            work()

    with probe_square.Processes(params["timeout_s"]) as family:
        before = probe.Usage.mine()
        begin = probe.clock()
        for index in range(n):
            family.start(body, index)
        metrics = {"region_s": probe.clock() - begin}
        family.wait()
        wall_s = probe.clock() - begin
        usage = probe.Usage.mine() - before + family.usage
    return probe.result(wall_s, usage, family.peaks_kb, {"taken": sum(started)}, metrics, n * (n + 1) + 1)


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
