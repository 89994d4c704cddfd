"""What joblib's calls cost over fairlead, against loky, which is joblib's own backend.

    fairlead lab run benchmarks/own_joblib.py --quick

joblib comes with pip install --group ecosystem.
"""

EXPERIMENT = {
    "id": "own.joblib",
    "title": "joblib's calls",
    "question": "What do joblib's calls cost besides their own work, with each backend?",
    "explanation": (
        "Two workers, which are up, do calls of 100 us in one Parallel(). The time is wall time besides "
        "what the calls take on two cores. Memory is that of this process and the workers, beyond what it "
        "was without."
    ),
    "size_name": "calls",
    "growth": False,
    "ways": "backend",
    "value": "besides_s",
    "metrics": [
        {"name": "besides_s", "title": "besides", "unit": "s"},
        {"name": "own_s", "title": "own CPU", "unit": "s"},
        {"name": "of_the_work", "title": "of the work", "unit": "ratio"},
        {"name": "memory_kib", "title": "memory", "unit": "KiB"},
    ],
    "parameters": {
        "backend": {"default": "loky", "choices": ["loky", "fairlead"], "help": "who carries the calls out"},
    },
    "claims": [
        {"topic": "joblib, besides", "of": {"backend": "loky"}, "over": {"backend": "fairlead"},
         "says": "joblib costs less over fairlead than over loky",
         "otherwise": "joblib costs no less over fairlead than over loky"},
        {"topic": "joblib, memory", "of": {"backend": "loky"}, "over": {"backend": "fairlead"},
         "metric": "memory_kib",
         "says": "joblib takes less memory over fairlead than over loky",
         "otherwise": "joblib takes no less memory over fairlead than over loky"},
    ],
    "sizes": {"quick": [5000], "standard": [10000], "full": [10000]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}  # fmt: skip

import os  # noqa: E402

import probe  # noqa: E402
from subjects.calls import busy  # noqa: E402

WORKERS = 2
CALL_S = 100e-6


def measure(params):
    try:
        import joblib
        from joblib.externals.loky import get_reusable_executor

        import fairlead.pools.joblib  # noqa: F401 - which makes it a backend
        from fairlead import machine
        from fairlead.lab.isolation.subprocess_runner import proportional_kib
        from fairlead.pools import shared_pool
    except ImportError as error:
        raise probe.Skipped(f"needs fairlead and joblib in this interpreter: {error}") from None
    calls = params["n"]
    before = proportional_kib([os.getpid()])
    region = probe.Region()
    with joblib.parallel_config(backend=params["backend"], n_jobs=WORKERS):
        joblib.Parallel()(joblib.delayed(busy)(CALL_S) for _ in range(10 * WORKERS))
        region.begin()
        joblib.Parallel()(joblib.delayed(busy)(CALL_S) for _ in range(calls))
        region.end()
        memory = proportional_kib(machine.family(os.getpid())) - before
    if params["backend"] == "loky":
        get_reusable_executor().shutdown(wait=True)
    else:
        shared_pool("processes", WORKERS).shutdown(wait=True)
    answer = region.result({})
    own = calls * CALL_S / WORKERS
    answer["details"]["metrics"] = {
        "besides_s": answer["wall_s"] - own,
        "own_s": answer["user_s"] + answer["sys_s"],
        "of_the_work": answer["wall_s"] / own,
        "memory_kib": memory,
    }
    return answer


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
