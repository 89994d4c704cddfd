"""Programs that others published, before and after: stock, a short switch interval, fairlead run and, where a
server can start two processes, those.

    python examples/run.py --install gunicorn-flask
    fairlead lab run ./examples/own_programs.py:gunicorn-flask -v
    fairlead lab run ./examples/own_programs.py:gunicorn-flask --beside 2
    fairlead lab run ./examples/own_programs.py:gunicorn-flask --interpreter 3.14 --interpreter 3.14t

sample.py says how a program is loaded, and run.py records one.
"""

EXPERIMENT = {
    "id": "own.programs",
    "question": "Does the program stay quick beside a thread of its own that computes?",
    "explanation": (
        "The time is the 99th percentile of latency, from the instant at which a request was due. Requests "
        "arrive at random times, which were drawn once for all samples, whether they are answered or not. "
        "Under stock CPython a thread that has waited waits again for the GIL, 5 ms at a time, each time "
        "that it needs it. The computing share is the part of the time in which the computing threads work."
    ),
    "size_name": "seconds",
    "smallest": 1,
    "growth": False,
    "ways": "by",
    "base": "stock",
    "value": "p99_s",
    "metrics": [
        {"name": "p99_s", "title": "p99", "unit": "s"},
        {"name": "p50_s", "title": "p50", "unit": "s"},
        {"name": "max_s", "title": "max", "unit": "s"},
        {"name": "heartbeat_s", "title": "heartbeat", "unit": "s"},
        {"name": "answers", "title": "answers", "unit": "per s"},
        {"name": "lost", "title": "lost", "unit": "count"},
        {"name": "computing", "title": "computing", "unit": "share"},
    ],
    "parameters": {
        "by": {
            "default": "stock",
            "choices": ["stock", "interval", "fairlead"],
            "help": "how its threads get the GIL; interval: sys.setswitchinterval(.0005)",
        },
    },
    "claims": [
        {"topic": "{case}", "of": {"by": "stock"}, "over": {"by": "fairlead"},
         "says": "{title}: the p99 is lower under fairlead run",
         "otherwise": "{title}: the p99 is no lower under fairlead run"},
    ],
    "cases": {
        "gunicorn-flask": {
            "title": "Flask under gunicorn (gthread, 8 threads), two queries of 2 ms",
            "ways": ["stock", "interval", "fairlead", "2 workers"],
        },
        "waitress-flask": "Flask under waitress (8 threads), two queries of 2 ms",
        "waitress-django": "Django under waitress (8 threads), two queries of 2 ms",
        "uvicorn-fastapi-sync": {
            "title": "FastAPI under uvicorn, synchronous endpoint, two queries of 2 ms",
            "ways": ["stock", "interval", "fairlead", "2 workers"],
        },
        "uvicorn-fastapi-async": {
            "title": "FastAPI under uvicorn, asynchronous endpoint, two queries of 2 ms",
            "ways": ["stock", "interval", "fairlead", "2 workers"],
        },
        "gunicorn-work": {
            "title": "Flask under gunicorn, 2 ms of Python each, no computing thread",
            "ways": ["stock", "interval", "fairlead", "2 workers"],
            "claims": [
                {"topic": "gunicorn-work, cost", "of": {"by": "fairlead"}, "over": {"by": "stock"},
                 "says": "without a computing thread, gunicorn answers later under fairlead run",
                 "otherwise": "without a computing thread, gunicorn answers no later under fairlead run"},
            ],
        },
        "uvicorn-work": {
            "title": "FastAPI under uvicorn, synchronous endpoint, 2 ms of Python each, no computing thread",
            "ways": ["stock", "interval", "fairlead", "2 workers"],
            "claims": [
                {"topic": "uvicorn-work, cost", "of": {"by": "fairlead"}, "over": {"by": "stock"},
                 "says": "without a computing thread, uvicorn answers later under fairlead run",
                 "otherwise": "without a computing thread, uvicorn answers no later under fairlead run"},
            ],
        },
        "celery": "Celery worker with a pool of 8 threads, tasks with two queries of 2 ms",
        "dask": "Dask worker whose tasks hold the GIL; an answer of its event loop",
        "redis-py": "redis-py with a time-out of 10 ms, four threads",
        "opentelemetry": "OpenTelemetry's exporter thread, how long an export takes",
        "prometheus": "prometheus_client's endpoint",
        "websockets": "websockets.sync, echo",
        "grpcio": "gRPC server with 8 threads, two queries of 2 ms",
        "jupyter": "Jupyter kernel beside a thread that a cell started",
        "streamlit": "Streamlit's health endpoint",
        "long-c-call": "Flask under waitress beside a thread that pickles a large object",
    },
    "sizes": {"quick": [1], "standard": [4], "full": [4]},
    "timeout_s": 120,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}  # fmt: skip

import shutil  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402

import probe  # noqa: E402
import sample  # noqa: E402 - which knows where benchmarks/ is

import own  # noqa: E402 # isort: skip

SEED = 1


def loaded(name, by, n):
    program = sample.PROGRAMS[name]
    if not sample.Environment().has(program.packages):
        install = f"{sys.executable} {Path(__file__).with_name('run.py')} --install {name}"
        raise probe.Skipped(f"its packages are not installed: {install}")
    if program.redis and shutil.which("redis-server") is None:
        raise probe.Skipped("redis-server is missing: apt install redis-server")
    try:
        with tempfile.TemporaryDirectory(prefix="fairlead-example-") as directory:
            one = sample.OneRun(name, own.way(by), Path(directory), seconds=n, seed=SEED)
            with one.companions(), one.started() as process:
                seen = one.seen(process)
    except sample.NoAnswer as error:
        raise probe.Failed(str(error)) from None
    first, *others = seen["classes"].values()
    found = {f"{part}_s": first[part] / 1e3 for part in ("p50", "p99", "max")}
    found["answers"] = seen["throughput"]
    found["lost"] = sum(seen.get(what, 0) for what in ("errors", "unanswered"))
    if others:
        found["heartbeat_s"] = others[0]["p99"] / 1e3
    if program.cpu_threads:
        found["computing"] = seen["CPU share"]
    return found


if __name__ == "__main__":
    own.main(EXPERIMENT, {case: partial(loaded, case) for case in EXPERIMENT["cases"]})
