"""Half of the tasks of an event loop call a client that blocks, with and without pools."""

EXPERIMENT = {
    "id": "models.blocking",
    "title": "Blocking in an event loop",
    "question": "What does a client that blocks cost in an event loop, and which pool helps?",
    "explanation": (
        "Half of the tasks wait as coroutines do, the other half call a client that blocks. Such a call stops "
        "the whole loop: the tasks that make it run one after the other, as if there were no loop, and the "
        "others wait with them. In a pool of threads the calls wait beside each other, as many as it has "
        "threads; a pool of processes does the same at a higher price."
    ),
    "size_name": "tasks",
    "smallest": 1,
    "growth": False,
    "cases": {
        "async": "Blocking calls on an event loop",
        "async-thread-pool": "Blocking calls in a thread pool of a loop",
        "async-process-pool": "Blocking calls in a process pool of a loop",
        "loops": "Blocking calls on an event loop in each of several processes",
        "async-interpreter-pool": "Blocking calls in a pool of interpreters of a loop",
        "async-fairlead-threads": "Blocking calls in fairlead's ThreadPool of a loop",
        "async-fairlead-processes": "Blocking calls in fairlead's ProcessPool of a loop",
        "async-fairlead-interpreters": "Blocking calls in fairlead's InterpreterPool of a loop",
    },
    "metrics": [
        {"name": "user_s", "title": "user", "unit": "s"},
        {"name": "system_s", "title": "system", "unit": "s"},
    ],
    "claims": [
        {
            "topic": "a blocking client",
            "of": {"case": "async"},
            "over": {"case": "async-thread-pool"},
            "more_than": 1.1,
            "says": "a blocking client in an event loop is faster in a thread pool",
            "otherwise": "a blocking client in an event loop is no faster in a thread pool",
            "main": False,
        },
        {
            "topic": "blocking, processes",
            "of": {"case": "async-process-pool"},
            "over": {"case": "async-thread-pool"},
            "more_than": 1.1,
            "says": "a blocking client takes longer in a process pool than in a thread pool",
            "otherwise": "a blocking client takes no longer in a process pool than in a thread pool",
            "main": False,
        },
        {
            "topic": "blocking, user time",
            "of": {"case": "async-process-pool"},
            "over": {"case": "async-thread-pool"},
            "metric": "user_s",
            "more_than": 1.1,
            "says": "a blocking client takes more user time in a process pool than in a thread pool",
            "otherwise": "a blocking client takes no more user time in a process pool than in a thread pool",
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
    "sizes": {"quick": [20], "standard": [60], "full": [200]},
    "timeout_s": 120,
    "pythons": ">=3.8",
}

import probe  # noqa: E402
import probe_models as models  # noqa: E402


async def blocked(work):
    models.fetch(work)


def half(make):
    return models.in_executor(models.fetch_async, make, by_turns=True)


CASES = {
    "async": models.gathered(blocked, models.fetch_async),
    "async-thread-pool": half(models.ThreadPoolExecutor),
    "async-process-pool": half(models.forked),
    "loops": models.loops(blocked, models.fetch_async),
    "async-interpreter-pool": half(models.interpreters),
    "async-fairlead-threads": half(models.fairlead("threads")),
    "async-fairlead-processes": half(models.fairlead("processes")),
    "async-fairlead-interpreters": half(models.fairlead("interpreters")),
}


def measure(params):
    return models.measure(CASES[params["case"]], models.fetch, params)


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
