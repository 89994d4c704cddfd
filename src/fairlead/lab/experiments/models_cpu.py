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
            "main": False,
        },
    ],
    "parameters": {
        "workers": {
            "default": "default",
            "choices": ["default", "cores", "4 x cores + 1"],
            "help": "of a pool: how many threads or processes it has",
        },
    },
    "variants": [
        {"label": "", "params": {}, "modes": ["quick", "standard", "full"]},
        {"label": "two cores", "params": {}, "cores": "two", "modes": ["full"]},
        {"label": "one core", "params": {}, "cores": "one", "modes": ["full"]},
    ],
    "sizes": {"quick": [12], "standard": [24], "full": [96]},
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
