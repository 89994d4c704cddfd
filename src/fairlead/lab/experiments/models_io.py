"""Documents of a local server that answers late are fetched, under each model of concurrency."""

EXPERIMENT = {
    "id": "models.io",
    "title": "Waiting for a server",
    "question": "Which model is the fastest for tasks that wait, and which the cheapest?",
    "explanation": (
        "A task that waits for an answer needs no core and no GIL meanwhile, so all models that have many "
        "tasks under way at once take about as long as one answer does. They differ in what it costs to "
        "have a task under way: a process costs most, a thread little, and a task of an event loop next to "
        "nothing. A pool with fewer workers than tasks makes the rest queue up."
    ),
    "size_name": "tasks",
    "smallest": 1,
    "growth": False,
    "cases": {
        "sequential": "Waiting, one after the other",
        "threads": "Waiting, a thread each",
        "processes": "Waiting, a process each",
        "thread-pool": "Waiting, in a thread pool",
        "process-pool": "Waiting, in a process pool",
        "async": "Waiting, tasks of an event loop",
        "async-one-by-one": "Waiting, tasks awaited one by one",
        "loops": "Waiting, an event loop in each of several processes",
        "interpreter-pool": "Waiting, in a pool of interpreters",
        "fairlead-threads": "Waiting, in fairlead's ThreadPool",
        "fairlead-processes": "Waiting, in fairlead's ProcessPool",
        "fairlead-interpreters": "Waiting, in fairlead's InterpreterPool",
        "fairlead-async": "Waiting, in fairlead's AsyncPool",
    },
    "metrics": [
        {"name": "user_s", "title": "user", "unit": "s"},
        {"name": "system_s", "title": "system", "unit": "s"},
    ],
    "claims": [
        {
            "topic": "I/O, asyncio",
            "of": {"case": "sequential"},
            "over": {"case": "async"},
            "more_than": 1.1,
            "says": "{n} requests are faster on an event loop than one after the other",
            "otherwise": "{n} requests are no faster on an event loop than one after the other",
        },
        {
            "topic": "I/O, threads",
            "of": {"case": "sequential"},
            "over": {"case": "threads"},
            "more_than": 1.1,
            "says": "{n} requests are faster with a thread each than one after the other",
            "otherwise": "{n} requests are no faster with a thread each than one after the other",
        },
        {
            "topic": "I/O, one by one",
            "of": {"case": "sequential"},
            "over": {"case": "async-one-by-one"},
            "more_than": 1.1,
            "says": "{n} requests that a loop awaits one by one are faster than those of no loop",
            "otherwise": "{n} requests that a loop awaits one by one are no faster than those of no loop",
            "main": False,
        },
        {
            "topic": "I/O, together",
            "of": {"case": "async-one-by-one"},
            "over": {"case": "async"},
            "more_than": 1.1,
            "says": "{n} requests awaited one by one take longer than those awaited together",
            "otherwise": "{n} requests awaited one by one take no longer than those awaited together",
            "main": False,
        },
        {
            "topic": "I/O, processes",
            "of": {"case": "processes"},
            "over": {"case": "threads"},
            "more_than": 1.1,
            "says": "{n} requests take longer with a process each than with a thread each",
            "otherwise": "{n} requests take no longer with a process each than with a thread each",
            "main": False,
        },
        {
            "topic": "I/O, processor time",
            "of": {"case": "processes"},
            "over": {"case": "threads"},
            "metric": "user_s",
            "more_than": 1.1,
            "says": "{n} requests take more user time with a process each than with a thread each",
            "otherwise": "{n} requests take no more user time with a process each than with a thread each",
            "main": False,
        },
        {
            "topic": "I/O, process pool",
            "of": {"case": "process-pool"},
            "over": {"case": "thread-pool"},
            "more_than": 1.1,
            "says": "{n} requests take longer in a process pool than in a thread pool",
            "otherwise": "{n} requests take no longer in a process pool than in a thread pool",
            "main": False,
        },
        {
            "topic": "I/O, workers",
            "of": {"case": "thread-pool", "workers": 5},
            "over": {"case": "thread-pool", "workers": 14},
            "more_than": 1.1,
            "says": "{n} requests are faster in a pool of 14 threads than in one of 5",
            "otherwise": "{n} requests are no faster in a pool of 14 threads than in one of 5",
            "main": False,
        },
        {
            "topic": "I/O, loops",
            "of": {"case": "async"},
            "over": {"case": "loops"},
            "more_than": 1.1,
            "says": "{n} requests are faster on a loop in each of several processes than on one loop",
            "otherwise": "{n} requests are no faster on a loop in each of several processes than on one loop",
            "main": False,
        },
    ],
    "parameters": {
        "workers": {
            "default": "default",
            "choices": ["default", "cores", "4 x cores + 1", 3, 4, 5, 8, 10, 14],
            "help": "of a pool: how many threads or processes it has",
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
        {"label": "14 workers", "params": {"workers": 14}, "modes": ["full"], "cases": ["thread-pool"]},
        {"label": "10 workers", "params": {"workers": 10}, "modes": ["full"], "cases": ["process-pool"]},
        {"label": "8 workers", "params": {"workers": 8}, "modes": ["full"], "cases": ["thread-pool"]},
        {"label": "5 workers", "params": {"workers": 5}, "modes": ["full"], "cases": ["thread-pool"]},
        {"label": "4 workers", "params": {"workers": 4}, "modes": ["full"], "cases": ["process-pool"]},
        {"label": "3 workers", "params": {"workers": 3}, "modes": ["full"], "cases": ["process-pool"]},
    ],
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
    "async": models.gathered(models.fetch_async),
    "async-one-by-one": models.one_by_one(models.fetch_async),
    "loops": models.loops(models.fetch_async),
    "interpreter-pool": models.pooled(models.interpreters),
    "fairlead-threads": models.pooled(models.fairlead("threads")),
    "fairlead-processes": models.pooled(models.fairlead("processes")),
    "fairlead-interpreters": models.pooled(models.fairlead("interpreters")),
    "fairlead-async": models.pooled_async,
}


def measure(params):
    return models.measure(CASES[params["case"]], models.fetch, params)


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
