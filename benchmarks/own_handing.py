"""Do threads that hand work to each other do so as often as under stock CPython?

    fairlead lab run benchmarks/own_handing.py --budget 2m -v
    fairlead lab run benchmarks/own_handing.py:lock benchmarks/own_handing.py:queue --beside 2 -v

The programs are those of subjects/handing.py.
"""

EXPERIMENT = {
    "id": "own.handing",
    "question": "How long does a hop take, of threads that hand work to each other?",
    "explanation": (
        "There is one item, so that no two threads ever have work at once, and a scheduler has nothing to "
        "gain. A hop is there and back, through one other thread or through three; of threads that take "
        "turns, a turn. Beside a thread that computes, each of them has to get the GIL from it."
    ),
    "size_name": "ms",
    "growth": False,
    "ways": "by",
    "base": "stock",
    "value": "hop_s",
    "metrics": [
        {"name": "hop_s", "title": "a hop", "unit": "s"},
        {"name": "cpu_s", "title": "CPU", "unit": "s"},
        {"name": "computing_share", "title": "computes", "unit": "share"},
    ],
    "parameters": {
        "by": {
            "default": "stock",
            "choices": ["stock", "interval", "fairlead"],
            "help": "how threads get the GIL: by CPython, with a switch interval of 0.5 ms, by fairlead run",
        },
    },
    "claims": [
        {"topic": "{case}", "of": {"by": "stock"}, "over": {"by": "fairlead"}, "more_than": 0.9,
         "says": "{title}: more than nine tenths as many hops under fairlead as under stock CPython",
         "otherwise": "{title}: less than nine tenths as many hops under fairlead as under stock CPython"},
        {"topic": "{case}, 0.5 ms", "of": {"by": "interval"}, "over": {"by": "fairlead"}, "more_than": 0.9,
         "says": "{title}: more than nine tenths as many hops under fairlead as with 0.5 ms",
         "otherwise": "{title}: less than nine tenths as many hops under fairlead as with 0.5 ms",
         "main": False},
    ],
    "cases": {
        "lock": "Two threads, with a lock each",
        "queue": "Two threads, with a queue.Queue each",
        "pipeline": "Three threads, with a queue before each",
        "full": "A queue with room for one item",
        "semaphore": "16 threads that take turns with a semaphore",
        "notify": "A hundred threads that wait for a condition",
        "lock-cpu": {
            "title": "Two threads, with a lock each, beside one that computes",
            "claims": [
                {"topic": "lock, computing", "metric": "computing_share",
                 "of": {"by": "stock"}, "over": {"by": "fairlead"},
                 "says": "beside two threads with locks, one computes less under fairlead than under stock",
                 "otherwise": "beside two threads with locks, one computes no less under fairlead"},
            ],
        },
        "pipeline-cpu": {
            "title": "Three threads, with a queue before each, beside one that computes",
            "claims": [
                {"topic": "pipeline, computing", "metric": "computing_share",
                 "of": {"by": "stock"}, "over": {"by": "fairlead"},
                 "says": "beside a pipeline, a thread computes less under fairlead than under stock",
                 "otherwise": "beside a pipeline, a thread computes no less under fairlead"},
            ],
        },
    },
    "sizes": {"quick": [300], "standard": [500], "full": [2000]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}  # fmt: skip

from functools import partial  # noqa: E402

import own  # noqa: E402
from processes import subject, watched  # noqa: E402


def hop(case, by, n):
    kind, _, beside = case.partition("-")
    settings = {"kind": kind, "seconds": n / 1000, "cpu_threads": int(beside != "")}
    with subject("handing", own.way(by), **settings) as (process, facts):
        figures = watched(process, facts)
    return {"computing_share": figures.pop("CPU share"), **figures} if beside else figures


if __name__ == "__main__":
    own.main(EXPERIMENT, {case: partial(hop, case) for case in EXPERIMENT["cases"]})
