"""Tasks that wait for a server and then compute, on an event loop with and without pools."""

EXPERIMENT = {
    "id": "models.mixed",
    "title": "Waiting, then computing",
    "question": "Which model is the fastest for tasks that both wait and compute, and which the cheapest?",
    "explanation": (
        "An event loop waits for all answers at once, but whatever computes in it stops all other tasks. In "
        "a thread pool the computing still takes its turns on the one GIL: the loop goes on, the whole is "
        "hardly faster. In a process pool it uses all cores."
    ),
    "size_name": "tasks",
    "smallest": 1,
    "growth": False,
    "cases": {
        "async": "Waiting and computing on an event loop",
        "async-thread-pool": "Waiting on an event loop, computing in a thread pool",
        "async-process-pool": "Waiting on an event loop, computing in a process pool",
        "loops": "Waiting and computing on an event loop in each of several processes",
        "async-interpreter-pool": "Waiting on an event loop, computing in a pool of interpreters",
        "async-fairlead-processes": "Waiting on an event loop, computing in fairlead's ProcessPool",
        "async-fairlead-interpreters": "Waiting on an event loop, computing in fairlead's InterpreterPool",
    },
    "metrics": [
        {"name": "user_s", "title": "user", "unit": "s"},
        {"name": "system_s", "title": "system", "unit": "s"},
    ],
    "claims": [
        {
            "topic": "I/O and CPU work",
            "of": {"case": "async"},
            "over": {"case": "async-process-pool"},
            "more_than": 1.1,
            "says": "an event loop is faster with a process pool for what computes",
            "otherwise": "an event loop is no faster with a process pool for what computes",
            "main": False,
        },
        {
            "topic": "I/O and CPU, threads",
            "of": {"case": "async"},
            "over": {"case": "async-thread-pool"},
            "more_than": 1.1,
            "says": "an event loop is faster with a thread pool for what computes",
            "otherwise": "an event loop is no faster with a thread pool for what computes",
            "main": False,
        },
        {
            "topic": "I/O and CPU, loops",
            "of": {"case": "async"},
            "over": {"case": "loops"},
            "more_than": 1.1,
            "says": "an event loop in each of several processes is faster than one",
            "otherwise": "an event loop in each of several processes is no faster than one",
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
        "delay_ms": {
            "default": 100,
            "choices": [5, 100],
            "help": "how long the local server waits before it answers",
        },
    },
    "variants": [
        {"label": ""},
        {"label": "two cores", "cores": "two", "modes": ["full"]},
        {"label": "one core", "cores": "one", "modes": ["full"]},
        {"label": "14 workers", "params": {"workers": 14}, "modes": ["full"], "cases": ["async-thread-pool"]},
        {
            "label": "10 workers",
            "params": {"workers": 10},
            "modes": ["full"],
            "cases": ["async-process-pool"],
        },
        {"label": "8 workers", "params": {"workers": 8}, "modes": ["full"], "cases": ["async-thread-pool"]},
        {"label": "5 workers", "params": {"workers": 5}, "modes": ["full"], "cases": ["async-thread-pool"]},
        {"label": "4 workers", "params": {"workers": 4}, "modes": ["full"], "cases": ["async-process-pool"]},
        {"label": "3 workers", "params": {"workers": 3}, "modes": ["full"], "cases": ["async-process-pool"]},
    ],
    "calibrated": {"parameter": "repeat", "seconds": 1.0, "of": {"experiment": "models.cpu-sequential"}},
    "sizes": {"quick": [10], "standard": [30], "full": [100]},
    "timeout_s": 120,
    "pythons": ">=3.8",
}

import probe  # noqa: E402
import probe_models as models  # noqa: E402


async def both(work):
    await models.fetch_async(work)
    models.compute(work)


CASES = {
    "async": models.gathered(both),
    "async-thread-pool": models.in_executor(models.fetch_async, models.ThreadPoolExecutor),
    "async-process-pool": models.in_executor(models.fetch_async, models.forked),
    "loops": models.loops(both),
    "async-interpreter-pool": models.in_executor(models.fetch_async, models.interpreters),
    "async-fairlead-processes": models.in_executor(models.fetch_async, models.fairlead("processes")),
    "async-fairlead-interpreters": models.in_executor(models.fetch_async, models.fairlead("interpreters")),
}


def measure(params):
    return models.measure(CASES[params["case"]], models.compute, params)


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
