"""Fibonacci numbers are computed, under each model of concurrency."""

EXPERIMENT = {
    "id": "models.cpu",
    "title": "Computing",
    "question": "Which model is the fastest for tasks that compute, and which the cheapest?",
    "explanation": (
        "With a GIL only one thread computes, so threads take as long as one after the other does, and a "
        "little longer. Processes have a GIL each and use all cores, less what it costs to start them; with "
        "one core there is nothing to be gained by any. A pool starts as many as there are cores, and not "
        "one for each task."
    ),
    "size_name": "tasks",
    "smallest": 1,
    "growth": False,
    "cases": {
        "sequential": "Computing, one after the other",
        "threads": "Computing, a thread each",
        "processes": "Computing, a process each",
        "thread-pool": "Computing, in a thread pool",
        "process-pool": "Computing, in a process pool",
        "interpreter-pool": "Computing, in a pool of interpreters",
        "fairlead-threads": "Computing, in fairlead's ThreadPool",
        "fairlead-processes": "Computing, in fairlead's ProcessPool",
        "fairlead-interpreters": "Computing, in fairlead's InterpreterPool",
    },
    "metrics": [
        {"name": "user_s", "title": "user", "unit": "s"},
        {"name": "system_s", "title": "system", "unit": "s"},
    ],
    "claims": [
        {
            "topic": "CPU work, processes",
            "of": {"case": "sequential"},
            "over": {"case": "process-pool"},
            "more_than": 1.1,
            "says": "{n} computations are faster in a process pool than one after the other",
            "otherwise": "{n} computations are no faster in a process pool than one after the other",
        },
        {
            "topic": "CPU work, threads",
            "of": {"case": "sequential"},
            "over": {"case": "threads"},
            "more_than": 1.1,
            "says": "{n} computations are faster with a thread each than one after the other",
            "otherwise": "{n} computations are no faster with a thread each than one after the other",
        },
        {
            "topic": "CPU work, one core",
            "of": {"case": "sequential", "cores": "one"},
            "over": {"case": "process-pool", "cores": "one"},
            "more_than": 1.1,
            "says": "on one core {n} computations are faster in a process pool than one after the other",
            "otherwise": "on one core {n} computations are no faster in a process pool than one after the other",
            "main": False,
        },
        {
            "topic": "CPU work, cores",
            "of": {"case": "process-pool", "cores": "one"},
            "over": {"case": "process-pool", "cores": "all"},
            "more_than": 1.1,
            "says": "{n} computations are faster in a process pool on all cores than on one",
            "otherwise": "{n} computations are no faster in a process pool on all cores than on one",
            "main": False,
        },
        {
            "topic": "CPU work, workers",
            "of": {"case": "process-pool", "workers": "default"},
            "over": {"case": "process-pool", "workers": 10},
            "more_than": 1.1,
            "says": "{n} computations are faster in 10 processes than in as many as there are cores",
            "otherwise": "{n} computations are no faster in 10 processes than in as many as there are cores",
            "main": False,
        },
    ],
    "parameters": {
        "workers": {
            "default": "default",
            "choices": ["default", "cores", "4 x cores + 1", 3, 4, 5, 8, 10, 14],
            "help": "of a pool: how many threads or processes it has",
        },
        "repeat": {
            "default": 32,
            "choices": [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256],
            "help": "how often a task computes fib(24): calibrated, so that it takes 0.1 s or a little more",
        },
    },
    "variants": [
        {"label": ""},
        {"label": "two cores", "cores": "two", "modes": ["full"]},
        {"label": "one core", "cores": "one", "cases": ["sequential", "process-pool"]},
        {
            "label": "one core",
            "cores": "one",
            "modes": ["full"],
            "cases": [
                "threads",
                "processes",
                "thread-pool",
                "interpreter-pool",
                "fairlead-threads",
                "fairlead-processes",
                "fairlead-interpreters",
            ],
        },
        {"label": "14 workers", "params": {"workers": 14}, "modes": ["full"], "cases": ["thread-pool"]},
        {"label": "10 workers", "params": {"workers": 10}, "modes": ["full"], "cases": ["process-pool"]},
        {"label": "8 workers", "params": {"workers": 8}, "modes": ["full"], "cases": ["thread-pool"]},
        {"label": "5 workers", "params": {"workers": 5}, "modes": ["full"], "cases": ["thread-pool"]},
        {"label": "4 workers", "params": {"workers": 4}, "modes": ["full"], "cases": ["process-pool"]},
        {"label": "3 workers", "params": {"workers": 3}, "modes": ["full"], "cases": ["process-pool"]},
    ],
    "calibrated": {"parameter": "repeat", "seconds": 1.0, "of": {"experiment": "models.cpu-sequential"}},
    "sizes": {"quick": [10], "standard": [30], "full": [100]},
    "timeout_s": 120,
    "pythons": ">=3.8",
}

import probe  # noqa: E402
import probe_models as models  # noqa: E402

CASES = {
    "sequential": models.sequential,
    "threads": models.threads,
    "processes": models.processes,
    "thread-pool": models.pooled(models.ThreadPoolExecutor),
    "process-pool": models.pooled(models.forked),
    "interpreter-pool": models.pooled(models.interpreters),
    "fairlead-threads": models.pooled(models.fairlead("threads")),
    "fairlead-processes": models.pooled(models.fairlead("processes")),
    "fairlead-interpreters": models.pooled(models.fairlead("interpreters")),
}


def measure(params):
    return models.measure(CASES[params["case"]], models.compute, params)


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
