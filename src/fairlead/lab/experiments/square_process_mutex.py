"""n processes pass one lock, while those already through keep running."""

EXPERIMENT = {
    "id": "square.process-mutex",
    "title": "Passing a lock between processes",
    "question": "How long do n waiting processes take to pass a lock, if those already through keep running?",
    "explanation": (
        "The lock is a semaphore of the kernel's, and no GIL joins the processes: what the woken process "
        "queues for is a core. Under real-time round robin (SCHED_RR) every process of equal priority gets "
        "a turn before it, so the k-th pass waits for a round of k turns, divided by the cores: a square, "
        "the same as with threads and the GIL. The default policy is kinder. It keeps account of how long "
        "each has run, and a process that slept is let in front of those that kept running, so that the "
        "time grows in proportion to n as long as that credit lasts, and bends up where it ends. The time "
        "is that until all processes are joined; CPU time and switches are those of passing alone, without "
        "the forks, the arrivals and the exits."
    ),
    "schedule": "pass",
    "size_name": "processes",
    "metrics": [
        {"name": "region_s", "title": "last pass", "unit": "s"},
        {"name": "per_turn", "title": "switches a turn", "unit": "ratio"},
    ],
    "claims": [
        {
            "topic": "process lock, 1 core",
            "kind": "exponent",
            "of": {"policy": "other", "cores": "one"},
            "more_than": 1.5,
            "says": "passing a lock between processes, 1 core: time grows faster than n^1.5",
            "otherwise": "passing a lock between processes, 1 core: time grows no faster than n^1.5",
        },
        {
            "topic": "process lock, SCHED_RR",
            "kind": "exponent",
            "of": {"policy": "rr", "cores": "one"},
            "more_than": 1.5,
            "says": "passing a lock between processes, SCHED_RR: time grows faster than n^1.5",
            "otherwise": "passing a lock between processes, SCHED_RR: time grows no faster than n^1.5",
            "main": False,
        },
        {
            "topic": "process lock to 200",
            "of": {"policy": "other", "cores": "one", "n": 200},
            "over": {"policy": "other", "cores": "one", "n": 40},
            "more_than": 5,
            "says": "passing a lock between processes, 1 core: to n = 200 time grows faster than n",
            "otherwise": "passing a lock between processes, 1 core: to n = 200 time grows no faster than n",
            "main": False,
        },
        {
            "topic": "process lock from 200",
            "of": {"policy": "other", "cores": "one", "n": 360},
            "over": {"policy": "other", "cores": "one", "n": 200},
            "more_than": 1.8,
            "says": "passing a lock between processes, 1 core: from n = 200 time grows faster than n",
            "otherwise": "passing a lock between processes, 1 core: from n = 200 time grows no faster than n",
            "main": False,
        },
    ],
    "parameters": {
        "work": {
            "default": "sleep0",
            "choices": ["sleep0", "yield", "spin"],
            "help": "how those already through keep running: time.sleep(0), sched_yield(), or Python only",
        },
    },
    "variants": [
        {"label": "default policy, 1 core", "cores": "one"},
        {"label": "default policy, all cores", "modes": ["standard", "full"]},
        {
            "label": "SCHED_RR, 1 core",
            "params": {"work": "yield"},
            "policy": "rr",
            "cores": "one",
            "sizes": {
                "quick": [40, 60, 90, 130],
                "standard": [80, 160, 240, 320],
                "full": [40, 120, 200, 280, 360],
            },
        },
        {
            "label": "SCHED_RR, all cores",
            "params": {"work": "yield"},
            "modes": ["standard", "full"],
            "policy": "rr",
            "sizes": {"standard": [80, 160, 240, 320], "full": [40, 120, 200, 280, 360]},
        },
    ],
    "sizes": {
        "quick": [20, 35, 55, 80],
        "quick:<3.11": [6, 10, 16, 24],
        "standard": [40, 80, 120, 160],
        "standard:<3.11": [10, 20, 30, 40],
        "full": [40, 120, 200, 280, 360],
        "full:<3.11": [10, 20, 40, 60],
    },
    "timeout_s": 60,
    "pythons": ">=2.7",
}

import os  # noqa: E402

import probe  # noqa: E402
import probe_square  # noqa: E402

BEGIN, END, OWN = 0, 1, 2
"""Places in the shared numbers: two times; from OWN on five of each process, its id and what it used."""


def measure(params):
    n = params["n"]
    work = probe.work(params["work"])
    lock = process_lock()
    spare = process_lock()
    active = probe_square.array(n)
    passed = probe.Flags(n)
    numbers = probe.Numbers(OWN + 5 * n)
    blocked = probe.Flags(1)

    def own(index):
        return OWN + 5 * index

    def others(mine):
        pids = [int(numbers.get(own(index))[0]) for index in range(n) if index != mine]
        return ["/proc/%d" % pid for pid in pids]

    def body(index):
        # Do all of it once: a forked process pays for its first touch of a page, which is no part of passing.
        with spare:
            any(active)
        work()
        numbers.put(own(index), os.getpid())
        active[index] = True
        used = probe.Usage.mine()
        with lock:
            if passed.none_is_set():
                probe.wait_until(lambda: all(active), "all processes have arrived")
                if probe.wait_until_blocked(lambda: others(index)):
                    blocked.add(0)
                used = probe.Usage.mine()
                numbers.put(BEGIN, probe.clock())
            passed.add(index)
            active[index] = False
            if not any(active):
                numbers.put(END, probe.clock())
        while any(active):
            work()
        # the way to the lock and the end of the process are no part of passing it
        numbers.put(own(index) + 1, *(probe.Usage.mine() - used).values)

    with probe_square.Processes(params["timeout_s"]) as family:
        for index in range(n):
            family.start(body, index)
        family.wait()
        joined = probe.clock()
    if passed.values() != [1] * n:
        raise probe.Failed("not every process passed exactly once")
    usage = probe.Usage()
    for index in range(n):
        usage += probe.Usage(numbers.get(own(index) + 1, 4))
    begin, end = numbers.get(BEGIN, 2)
    details = {"passed": n, "all_blocked_first": blocked.all_are_set()}
    metrics = {"region_s": end - begin}
    return probe.result(joined - begin, usage, family.peaks_kb, details, metrics, n * (n + 1) // 2)


def process_lock():
    try:
        return probe_square.context().Lock()
    except (ImportError, OSError) as error:
        raise probe.Skipped("multiprocessing.Lock is not to be had here: %s" % error)


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
