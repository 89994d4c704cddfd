"""How long does a thread that gives the GIL up often wait to get it back, at the worst?

    fairlead lab run benchmarks/own_stalls.py --budget 2m -v
    fairlead lab run benchmarks/own_stalls.py --beside 2 --budget 2m -v

Programs of the standard library only (subjects/stalls.py), each beside one thread that computes.
"""

EXPERIMENT = {
    "id": "own.stalls",
    "question": "How long does a thread that gives the GIL up often wait to get it back, at the worst?",
    "explanation": (
        "A thread computes all the time; others need the GIL for moments, and have to get it back from it. "
        "The time is the longest wait of a sample: medians tell little here. All samples have the same "
        "arrivals."
    ),
    "size_name": "seconds",
    "smallest": 1,
    "growth": False,
    "ways": "by",
    "base": "stock",
    "value": "longest_s",
    "metrics": [
        {"name": "longest_s", "title": "longest", "unit": "s"},
        {"name": "p99_s", "title": "p99", "unit": "s"},
        {"name": "median_s", "title": "median", "unit": "s"},
        {"name": "calls_per_s", "title": "calls", "unit": "per s"},
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
        {"topic": "{case}, longest", "of": {"by": "fairlead"}, "over": {"by": "stock"},
         "says": "{title}: the longest wait is longer under fairlead than under stock CPython",
         "otherwise": "{title}: the longest wait is no longer under fairlead than under stock CPython"},
        {"topic": "{case}, computing", "metric": "computing_share", "of": {"by": "stock"},
         "over": {"by": "fairlead"},
         "says": "{title}: the computing thread does less under fairlead than under stock CPython",
         "otherwise": "{title}: the computing thread does no less under fairlead than under stock CPython"},
        {"topic": "{case}, 0.5 ms", "of": {"by": "fairlead"}, "over": {"by": "interval"}, "main": False,
         "says": "{title}: the longest wait is longer under fairlead than with a switch interval of 0.5 ms",
         "otherwise": "{title}: the longest wait is no longer under fairlead than with 0.5 ms"},
    ],
    "cases": {
        "yielding": "A thread that yields each 5 ms, beside one that ticks",
        "workers": "Jobs of eight threads, with short sleeps",
        "locked": "A lock that a computing thread holds",
    },
    "sizes": {"quick": [1], "standard": [2], "full": [5]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}  # fmt: skip

from functools import partial  # noqa: E402

import own  # noqa: E402
from processes import steps_per_ms, subject, watched  # noqa: E402


def longest(kind, by, n):
    settings = {"kind": kind, "seconds": n, "cpu_threads": 1, "steps_per_ms": steps_per_ms()}
    with subject("stalls", own.way(by), **settings) as (process, facts):
        figures = watched(process, facts)
    return {"computing_share": figures.pop("CPU share"), **figures}


if __name__ == "__main__":
    own.main(EXPERIMENT, {case: partial(longest, case) for case in EXPERIMENT["cases"]})
