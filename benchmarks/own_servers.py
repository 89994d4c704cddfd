"""Do servers with computing threads inside answer quickly, are timers on time, and do those threads get on?

    fairlead lab run benchmarks/own_servers.py --quick --budget 8m -v
    fairlead lab run benchmarks/own_servers.py:asyncio --beside 2

echo-16-4 is a threaded echo server with 16 clients and 4 computing threads; the other servers have 4 clients
and one such thread. Flask and Starlette come with pip install --group bench, which the free-threaded
interpreter needs, too; go needs Go's compiler.
"""

EXPERIMENT = {
    "id": "own.servers",
    "question": "How quickly does a server with a thread for each client answer beside computing threads?",
    "explanation": (
        "Each client sends its next request when the last is answered. The time is the 99th percentile of "
        "the answers, or of how late the timer is. interval is sys.setswitchinterval(.0005), floor 0.3 "
        "fairlead run --cpu-share .3. 2 workers are two processes of the whole program at one socket, each "
        "with its computing threads. alone is stock CPython without those. process has a computing process "
        "beside the server in their place: what the kernel makes of the same work. go is the same server in "
        "Go, with computing goroutines, on all cores. The computing share is how many cores did the threads' "
        "work (of two processes: the first's)."
    ),
    "size_name": "ms of load",
    "growth": False,
    "ways": "by",
    "base": "stock",
    "value": "p99_s",
    "metrics": [
        {"name": "p99_s", "title": "p99", "unit": "s"},
        {"name": "p50_s", "title": "p50", "unit": "s"},
        {"name": "max_s", "title": "max", "unit": "s"},
        {"name": "per_s", "title": "requests", "unit": "per s"},
        {"name": "computing_share", "title": "computing", "unit": "share"},
        {"name": "floor", "title": "floor", "unit": "share"},
    ],
    "parameters": {
        "by": {
            "default": "stock",
            "choices": [
                "stock", "interval", "fairlead", "floor 0.3", "2 workers", "free-threaded", "process", "go",
            ],
            "help": "how the computing threads get the GIL, or what one does instead",
        },
    },
    "claims": [
        {"topic": "{case}, stock", "of": {"by": "stock"}, "over": {"by": "fairlead"}, "more_than": 10,
         "says": "{of} takes more than ten times as long as {over}"},
        {"topic": "{case}, interval", "of": {"by": "interval"}, "over": {"by": "fairlead"}},
        {"topic": "{case}, 2 workers", "of": {"by": "2 workers"}, "over": {"by": "fairlead"}},
        {"topic": "{case}, no GIL", "of": {"by": "free-threaded"}, "over": {"by": "fairlead"}},
        {"topic": "{case}, CPU", "of": {"by": "stock"}, "over": {"by": "fairlead"},
         "metric": "computing_share",
         "says": "the computing threads get more done with {of} than with {over}",
         "otherwise": "the computing threads get no more done with {of} than with {over}"},
        {"topic": "{case}, process", "of": {"by": "fairlead"}, "over": {"by": "process"}, "metric": "per_s",
         "more_than": 0.6,
         "says": "{of} answers more than 60 % of the requests that are answered beside a {over}",
         "otherwise": "{of} answers at most 60 % of the requests that are answered beside a {over}"},
        {"topic": "{case}, go", "of": {"by": "fairlead"}, "over": {"by": "go"}, "metric": "per_s",
         "more_than": 0.7,
         "says": "{of} answers more than 70 % of the requests that the same server in Go answers",
         "otherwise": "{of} answers at most 70 % of the requests that the same server in Go answers"},
        {"topic": "{case}, floor", "of": {"by": "floor 0.3"}, "metric": "computing_share",
         "over_metric": "floor", "more_than": 0.8, "main": False,
         "says": "--cpu-share .3 gives the computing threads more than 80 % of that share",
         "otherwise": "--cpu-share .3 gives the computing threads at most 80 % of that share"},
    ],
    # in this order a budget that is too small for all settles them
    "cases": {
        "asyncio": {
            "title": "An echo server of asyncio",
            "question": "How quickly does an event loop answer beside a thread that computes?",
            "ways": ["stock", "interval", "fairlead", "2 workers", "free-threaded", "alone", "priority io"],
        },
        "waitress": {
            "title": "Flask under waitress",
            "question": "How quickly does Flask answer, in 8 threads of waitress beside one that computes?",
            "ways": ["stock", "interval", "fairlead", "2 workers", "free-threaded", "alone"],
        },
        "uvicorn": {
            "title": "Starlette under uvicorn",
            "question": "How quickly does a synchronous endpoint answer, in uvicorn's threads?",
            "ways": ["stock", "interval", "fairlead", "2 workers", "free-threaded", "alone"],
        },
        "timer": {
            "title": "A timer of asyncio",
            "question": "How late does an event loop call what is due every 2 ms?",
            "ways": ["stock", "interval", "fairlead", "free-threaded", "alone"],
        },
        "echo-1-1": "1 client and 1 computing thread",
        "echo-16-1": "16 clients and 1 computing thread",
        "echo-64-1": "64 clients and 1 computing thread",
        "echo-1-4": "1 client and 4 computing threads",
        "echo-16-4": "16 clients and 4 computing threads",
        "echo-64-4": "64 clients and 4 computing threads",
    },
    "sizes": {"quick": [500], "standard": [1000], "full": [2000]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}  # fmt: skip

import shutil  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
from contextlib import ExitStack  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402

import own  # noqa: E402
import probe  # noqa: E402
from processes import SUBJECTS, cpu_bound_process, load, program, subject, watched  # noqa: E402

SERVERS = {
    "waitress": ("http_server", "/", ["flask", "waitress"]),
    "uvicorn": ("http_server", "/", ["starlette", "uvicorn"]),
    "asyncio": ("asyncio_server", None, []),
    "echo": ("echo_server", None, []),
}
"""The program, what is asked for, and the packages that it takes."""


def go_server(directory):
    go = shutil.which("go")
    if go is None:
        raise probe.Skipped("needs Go's compiler: there is no go on the PATH")
    server = str(Path(directory) / "echo_server")
    subprocess.run([go, "build", "-o", server, SUBJECTS / "echo_server.go"], check=True)
    return server


def served(case, by, n):
    kind, *numbers = case.split("-")
    clients, cpu_threads = map(int, numbers or (4, 1))
    name, path, packages = SERVERS[kind]
    with ExitStack() as stack:
        if by == "process":
            stack.enter_context(cpu_bound_process())
        if by == "go":
            server = go_server(stack.enter_context(tempfile.TemporaryDirectory()))
            started = program(server, cpu_threads=cpu_threads)
        else:
            inside = 0 if by in ("alone", "process") else cpu_threads
            started = subject(name, own.way(by, *packages), cpu_threads=inside, kind=kind)
        _, facts = stack.enter_context(started)
        figures = load(facts, clients=clients, seconds=n / 1000, warm_up=n / 3000, http=path)
    return metrics(figures) | ({"floor": own.FLOOR} if by == "floor 0.3" else {})


def timer(by, n):
    settings = {"seconds": n / 1000, "cpu_threads": int(by != "alone")}
    with subject("asyncio_timer", own.way(by), **settings) as (process, facts):
        return metrics(watched(process, facts))


def metrics(figures):
    times = {f"{part}_s": figures[f"{part} us"] / 1e6 for part in ("p50", "p99", "max")}
    others = {"per_s": "requests/s", "computing_share": "CPU share"}
    return times | {name: figures[printed] for name, printed in others.items() if printed in figures}


if __name__ == "__main__":
    own.main(EXPERIMENT, {case: partial(served, case) for case in EXPERIMENT["cases"]} | {"timer": timer})
