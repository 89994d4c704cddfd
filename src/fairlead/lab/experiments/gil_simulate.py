"""The squares in the simulator of threads, cores and the GIL: the same program under three protocols.

Like gil.trace it needs fairlead in the interpreter that is measured, which simulates.
"""

EXPERIMENT = {
    "id": "gil.simulate",
    "title": "The square, simulated",
    "question": "How many turns do n threads take under the old GIL, today's, and fairlead's scheduler?",
    "explanation": (
        "The simulator plays cores, kernel and the protocol of taking and dropping the GIL, so that every "
        "switch can be counted. The GIL before Python 3.2 (a release every 100 instructions) and today's "
        "(a request after a switch interval) give each running thread a turn before the next can come "
        "through: 1 + 2 + ... + n turns. The scheduler lets the threads through first that have just been "
        "woken, and the number of turns grows with n alone. It is the same code that schedules a real "
        "interpreter."
    ),
    "size_name": "threads",
    "smallest": 1,
    "value": "simulated_s",
    "metrics": [
        {"name": "simulated_s", "title": "simulated", "unit": "s"},
        {"name": "turns", "title": "turns", "unit": "count"},
        {"name": "forced_drops", "title": "forced", "unit": "count"},
        {"name": "context_switches", "title": "on cores", "unit": "count"},
    ],
    "parameters": {
        "program": {
            "default": "thread-start",
            "choices": ["thread-start", "mutex", "semaphore"],
            "help": "which of the squares",
        },
        "protocol": {
            "default": "stock",
            "choices": ["old", "stock", "interactive"],
            "help": "CPython to 3.1, CPython since 3.2, or fairlead's scheduler",
        },
    },
    "variants": [
        {"label": "thread-start, before 3.2", "params": {"protocol": "old"}, "modes": ["standard", "full"]},
        {"label": "thread-start"},
        {"label": "thread-start, scheduled", "params": {"protocol": "interactive"}},
        {"label": "mutex", "params": {"program": "mutex"}, "modes": ["standard", "full"]},
        {
            "label": "mutex, scheduled",
            "params": {"program": "mutex", "protocol": "interactive"},
            "modes": ["standard", "full"],
        },
        {"label": "semaphore", "params": {"program": "semaphore"}, "modes": ["full"]},
        {
            "label": "semaphore, scheduled",
            "params": {"program": "semaphore", "protocol": "interactive"},
            "modes": ["full"],
        },
    ],
    "sizes": {
        "quick": [25, 50, 100],
        "standard": [50, 100, 200, 400],
        "full": [100, 200, 400, 800, 1600],
    },
    "timeout_s": 120,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}

import os  # noqa: E402

import probe  # noqa: E402


def measure(params):
    try:
        from fairlead.gil import simulation
    except ImportError:
        raise probe.no_fairlead()
    programs = {
        "thread-start": simulation.square_thread_start,
        "mutex": simulation.square_mutex,
        "semaphore": simulation.square_semaphore,
    }
    # a seed of its own for each sample, so that their spread is that of the simulated kernel
    seed = os.getpid()
    program = programs[params["program"]](params["n"])
    region = probe.Region()
    region.begin()
    run = simulation.simulate(program, policy=params["protocol"], seed=seed)
    region.end()
    if run.status != "finished":
        raise probe.Failed("the simulated program did not finish: %s" % run.status)
    return region.result(
        {
            "threads": params["n"],
            "seed": seed,
            "metrics": {
                "simulated_s": run.elapsed_seconds,
                "turns": run.switches,
                "forced_drops": run.forced_drops,
                "context_switches": run.context_switches,
            },
        }
    )


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
