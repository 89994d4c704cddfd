"""A client that blocks is called from coroutines, on an event loop with and without pools."""

EXPERIMENT = {
    "id": "models.blocking",
    "title": "Blocking in an event loop",
    "question": "What does a client that blocks cost in an event loop, and which pool helps?",
    "explanation": (
        "A call that blocks stops the whole loop: coroutines that make it run one after the other, as if "
        "there were no loop. In a pool of threads the calls wait beside each other, as many as it has "
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
    ],
    "parameters": {
        "workers": {
            "default": "default",
            "choices": ["default", "cores", "4 x cores + 1"],
            "help": "of a pool: how many threads or processes it has",
        },
        "delay_ms": {
            "default": 100,
            "choices": [5, 100],
            "help": "how long the local server waits before it answers",
        },
    },
    "variants": [
        {"label": "", "params": {}, "modes": ["quick", "standard", "full"]},
        {"label": "two cores", "params": {}, "cores": "two", "modes": ["full"]},
        {"label": "one core", "params": {}, "cores": "one", "modes": ["full"]},
    ],
    "sizes": {"quick": [10], "standard": [30], "full": [100]},
    "timeout_s": 120,
    "pythons": ">=3.8",
}

import probe  # noqa: E402
import probe_models as models  # noqa: E402


async def blocked(address):
    models.fetch(address)


CASES = {
    "async": models.gathered(blocked),
    "async-thread-pool": models.in_executor(None, models.ThreadPoolExecutor),
    "async-process-pool": models.in_executor(None, models.forked),
    "loops": models.loops(blocked),
    "async-interpreter-pool": models.in_executor(None, models.interpreters),
    "async-fairlead-threads": models.in_executor(None, models.fairlead("threads")),
    "async-fairlead-processes": models.in_executor(None, models.fairlead("processes")),
    "async-fairlead-interpreters": models.in_executor(None, models.fairlead("interpreters")),
}


def measure(params):
    return models.measure(CASES[params["case"]], models.fetch, params)


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
