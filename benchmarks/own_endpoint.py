"""How soon does the endpoint answer while the program has no time?

    fairlead lab run benchmarks/own_endpoint.py --budget 2m -v
    fairlead lab run benchmarks/own_endpoint.py:threads --beside 4 --budget 30s -v

What the endpoint costs is the question of own_observed.py.
"""

EXPERIMENT = {
    "id": "own.endpoint",
    "question": "How long does a client wait for /metrics at the worst, while the program has no time?",
    "explanation": (
        "A client asks ten times a second. The time is its longest wait of a sample. With cores: without the "
        "time in which the client, or the endpoint's thread, was ready to run and had no core. The aim is "
        "50 ms."
    ),
    "size_name": "seconds",
    "smallest": 1,
    "growth": False,
    "ways": "case",
    "value": "worst_s",
    "metrics": [
        {"name": "worst_s", "title": "worst", "unit": "s"},
        {"name": "with_cores_s", "title": "with cores", "unit": "s"},
        {"name": "median_s", "title": "median", "unit": "s"},
        {"name": "aim_s", "title": "aim", "unit": "s"},
    ],
    "claims": [
        {"topic": "{case}", "over_metric": "aim_s", "more_than": 1,
         "says": "{title}: the worst of the answers takes more than 50 ms",
         "otherwise": "{title}: the worst of the answers takes less than 50 ms"},
    ],
    "cases": {
        "c-call": "A C call keeps the GIL",
        "convoy": "Eight threads compute",
        "quick": "Eight threads drop the GIL all the time",
        "threads": "1,000 threads wait",
        "fork": "The program forks all the time",
        "exec": "The program starts programs all the time",
    },
    "sizes": {"quick": [1], "standard": [3], "full": [30]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}  # fmt: skip

from functools import partial  # noqa: E402

import own  # noqa: E402
from processes import subject  # noqa: E402

AIM_S = 0.05


def worst(situation, n):
    own.gil()
    with subject("endpoint", situation=situation, seconds=n) as (_, figures):
        return {**figures, "aim_s": AIM_S}


if __name__ == "__main__":
    own.main(EXPERIMENT, {case: partial(worst, case) for case in EXPERIMENT["cases"]})
