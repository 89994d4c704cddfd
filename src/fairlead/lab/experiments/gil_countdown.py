"""A fixed number of steps of pure Python is shared among n threads."""

EXPERIMENT = {
    "id": "gil.countdown",
    "title": "Counting down in n threads",
    "question": "How long does a fixed amount of pure Python work take, shared among n threads?",
    "explanation": (
        "Only the thread that holds the GIL runs Python code, so n threads take as long for the whole as one "
        "does: the curve is flat, whatever the number of cores. It is not steeper either, because threads "
        "that all compute switch only once in a switch interval; with one of microseconds what they spend on "
        "switching shows. Without a GIL the time falls with the "
        "number of threads, down to the number of cores."
    ),
    "size_name": "threads",
    "smallest": 1,
    "growth": False,
    "metrics": [{"name": "steps_per_s", "title": "steps", "unit": "per s"}],
    "claims": [
        {
            "topic": "threads that compute",
            "of": {"interval_ms": 5, "n": 1},
            "over": {"interval_ms": 5, "n": 2},
            "more_than": 1.1,
            "says": "2 threads count down faster than one",
            "otherwise": "2 threads count down no faster than one",
        },
        {
            "topic": "8 threads that compute",
            "of": {"interval_ms": 5, "n": 1},
            "over": {"interval_ms": 5, "n": 8},
            "more_than": 1.1,
            "says": "8 threads count down faster than one",
            "otherwise": "8 threads count down no faster than one",
            "main": False,
        },
        {
            "topic": "counting, scheduled",
            "of": {"interval_ms": 5, "scheduler": "interactive"},
            "over": {"interval_ms": 5, "scheduler": "off"},
            "more_than": 1.02,
            "says": "{n} threads count down more slowly with the GIL scheduled",
            "otherwise": "{n} threads count down no more slowly with the GIL scheduled",
            "main": False,
        },
        {
            "topic": "counting, switch 10 us",
            "of": {"interval_ms": 0.01, "n": 2},
            "over": {"interval_ms": 5, "n": 2},
            "more_than": 1.1,
            "says": "2 threads count down more slowly with setswitchinterval(0.00001)",
            "otherwise": "2 threads count down no more slowly with setswitchinterval(0.00001)",
            "main": False,
        },
    ],
    "parameters": {
        "steps": {
            "default": 5000000,
            "choices": [50000, 5000000, 20000000, 100000000],
            "help": "the number of steps that all threads share",
        },
        "interval_ms": {
            "default": 5,
            "choices": [0.001, 0.01, 0.1, 0.5, 1, 5, 10, 50, 100],
            "help": "the switch interval in milliseconds, sys.setswitchinterval",
        },
        "scheduler": {
            "default": "off",
            "choices": ["off", "interactive"],
            "help": "whether fairlead schedules the GIL meanwhile",
        },
    },
    "variants": [
        {"label": "", "modes": ["quick", "standard"]},
        {"label": "100 million steps", "params": {"steps": 100000000}, "modes": ["full"]},
        {"label": "one core", "cores": "one", "modes": ["standard"]},
        {
            "label": "100 million steps, one core",
            "params": {"steps": 100000000},
            "cores": "one",
            "modes": ["full"],
        },
        {"label": "0.5 ms", "params": {"interval_ms": 0.5}, "modes": ["standard"]},
        {"label": "10 us", "params": {"interval_ms": 0.01}, "modes": ["quick", "standard"]},
        {
            "label": "100 million steps, 10 us",
            "params": {"steps": 100000000, "interval_ms": 0.01},
            "modes": ["full"],
        },
        {"label": "scheduled", "params": {"scheduler": "interactive"}, "modes": ["standard", "full"]},
    ],
    "sizes": {"quick": [1, 2], "standard": [1, 2, 4, 8], "full": [1, 2, 4, 8]},
    "timeout_s": 120,
    "pythons": ">=2.7",
}

import probe  # noqa: E402
import probe_fairlead  # noqa: E402


def measure(params):
    probe.switch(params["interval_ms"])
    probe_fairlead.schedule(params["scheduler"])
    n, steps = params["n"], params["steps"]
    shares = [steps // n + (index < steps % n) for index in range(n)]
    counted = []

    def body(index):
        left = shares[index]
        while left > 0:
            left -= 1
        counted.append(shares[index] - left)

    region = probe.together(n, body)
    if sum(counted) != steps:
        raise probe.Failed("%d steps of %d were counted" % (sum(counted), steps))
    answer = region.result({"counted": len(counted)})
    answer["details"]["metrics"] = {"steps_per_s": steps / answer["wall_s"]}
    return answer


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
