"""Do requests that arrive at random stay quick in a threaded server, at every load, beside computing threads?

    fairlead lab run benchmarks/own_arrivals.py:mixed-50-0 benchmarks/own_arrivals.py:mixed-50-1 -v
    fairlead lab run benchmarks/own_arrivals.py:alike-70-0 --interpreter 3.13

A case is named by its requests (mixed: of 0.1, 1 and 20 ms; alike: of 1 ms), their load in per cent of a core
of Python work, and the computing threads beside them.
"""

EXPERIMENT = {
    "id": "own.arrivals",
    "question": "How long does a request of 1 ms take that arrives at a random instant?",
    "explanation": (
        "Requests arrive whether the server keeps up or not, and count from the instant at which they were "
        "due. The time is the 99th percentile of those that need 1 ms. Slowdown is the time over the "
        "request's own work, as the mean of all requests. What arrives when was drawn once: all samples of "
        "one length have the same arrivals, so that no way meets luckier ones, and what differs from sample "
        "to sample is the machine. Other draws have other tails. interval is sys.setswitchinterval(.0005). "
        "2 workers are two processes of the whole program at one socket, each with its computing threads. "
        "The computing share is how many cores did the threads' work (of two processes: the first's)."
    ),
    "size_name": "ms of load",
    "growth": False,
    "ways": "by",
    "base": "stock",
    "value": "p99_s",
    "metrics": [
        {"name": "p99_s", "title": "p99", "unit": "s"},
        {"name": "slowdown", "title": "slowdown", "unit": "ratio"},
        {"name": "slowdown_p99", "title": "slowdown p99", "unit": "ratio"},
        {"name": "short_p99_s", "title": "0.1 ms, p99", "unit": "s"},
        {"name": "long_p50_s", "title": "20 ms, p50", "unit": "s"},
        {"name": "computing_share", "title": "computing", "unit": "share"},
        {"name": "p50_s", "title": "p50", "unit": "s"},
        {"name": "max_s", "title": "max", "unit": "s"},
        {"name": "long_max_s", "title": "20 ms, max", "unit": "s"},
        {"name": "per_s", "title": "requests", "unit": "per s"},
        {"name": "late_s", "title": "generator, p99", "unit": "s"},
    ],
    "parameters": {
        "by": {
            "default": "stock",
            "choices": ["stock", "interval", "fairlead", "2 workers", "free-threaded"],
            "help": "how the server's threads get the GIL, or what one does instead",
        },
    },
    "claims": [
        {"topic": "{case}, stock", "of": {"by": "stock"}, "over": {"by": "fairlead"}},
        {"topic": "{case}, interval", "of": {"by": "interval"}, "over": {"by": "fairlead"}},
        {"topic": "{case}, 2 workers", "of": {"by": "2 workers"}, "over": {"by": "fairlead"}},
        {"topic": "{case}, no GIL", "of": {"by": "free-threaded"}, "over": {"by": "fairlead"}},
        {"topic": "{case}, slowdown", "of": {"by": "stock"}, "over": {"by": "fairlead"},
         "metric": "slowdown",
         "says": "the mean slowdown with {of} is higher than with {over}",
         "otherwise": "the mean slowdown with {of} is no higher than with {over}"},
    ],
    "cases": {
        "mixed-50-1": {
            "title": "Mixed requests for half a core, 1 computing thread",
            "claims": [
                {"topic": "{case}, 20 ms", "of": {"by": "fairlead"}, "over": {"by": "stock"},
                 "metric": "long_p50_s",
                 "says": "the median of 20 ms requests is higher with {of} than with {over}",
                 "otherwise": "the median of 20 ms requests is no higher with {of} than with {over}"},
                {"topic": "{case}, CPU", "of": {"by": "stock"}, "over": {"by": "fairlead"},
                 "metric": "computing_share",
                 "says": "the computing thread gets more done with {of} than with {over}",
                 "otherwise": "the computing thread gets no more done with {of} than with {over}"},
            ],
        },
        "mixed-50-0": "Mixed requests for half a core",
        "alike-70-0": "Requests all alike for 0.7 of a core",
        "mixed-50-4": "Mixed requests for half a core, 4 computing threads",
        "mixed-80-0": "Mixed requests for 0.8 of a core",
    },
    "sizes": {"quick": [500], "standard": [2000], "full": [4000]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}  # fmt: skip

from functools import partial  # noqa: E402

import arrivals  # noqa: E402
import own  # noqa: E402
from processes import steps_per_ms  # noqa: E402

MIXTURES = {"mixed": arrivals.MIXTURE, "alike": {1.0: 1.0}}
SEED = 1


def arrived(case, by, n):
    mixture, load, cpu_threads = case.split("-")
    figures = arrivals.measured(
        own.way(by),
        arrivals.requests_of(MIXTURES[mixture], int(load) / 100),
        cpu_threads=int(cpu_threads),
        rate=steps_per_ms(),
        seconds=n / 1000,
        seed=SEED,
    )
    times = {f"{part}_s": f"1 ms {part}, ms" for part in ("p50", "p99", "max")}
    times |= {"short_p99_s": "0.1 ms p99, ms", "long_p50_s": "20 ms p50, ms", "long_max_s": "20 ms max, ms"}
    others = {"slowdown": "slowdown mean", "slowdown_p99": "slowdown p99"}
    others |= {"per_s": "requests/s", "computing_share": "CPU share"}
    found = {name: figures[printed] / 1e3 for name, printed in times.items() if printed in figures}
    found |= {name: figures[printed] for name, printed in others.items() if printed in figures}
    return {**found, "late_s": figures["generator p99 late, us"] / 1e6}


if __name__ == "__main__":
    own.main(EXPERIMENT, {case: partial(arrived, case) for case in EXPERIMENT["cases"]})
