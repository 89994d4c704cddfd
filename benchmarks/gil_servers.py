"""Do real servers with a CPU-bound thread inside answer quickly, and are timers on time?

    python benchmarks/gil_servers.py [--only waitress,uvicorn,asyncio,timer] [--clients 4] [--cpu-threads 1]
                                     [--free-threaded PYTHON]

waitress: a Flask application, 8 threads. uvicorn: a Starlette application with a synchronous endpoint,
which runs in a thread of a pool. asyncio: an echo server on streams, its loop beside the CPU-bound thread.
timer: how late an asyncio loop calls what is due. Stock CPython, `sys.setswitchinterval(.0005)`, `fairlead
run`, and stock without the CPU-bound thread take turns; for asyncio also `fairlead run` with the loop in
`fairlead.gil.priority("io")`, as a loop that never sleeps owes the CPU-bound thread its share. Of a server
also two processes of the stock one, each with its CPU-bound threads, and, with `--free-threaded`, an
interpreter without a GIL. The first two need the packages of the dependency group `bench`; a row whose
packages are missing is left out, and named, and so is such an interpreter where it lacks them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import replace

from harness import FIGURES, STOCK, Row, Target, answer, instead, load, run, server_arguments, subject, ways

NEEDS = {"waitress": ("flask", "waitress"), "uvicorn": ("starlette", "uvicorn"), "asyncio": (), "timer": ()}
TITLES = {
    "waitress": "Flask under waitress",
    "uvicorn": "Starlette under uvicorn, synchronous endpoint",
    "asyncio": "asyncio echo server",
    "timer": "asyncio timer, lateness",
}


def row(name: str, options: argparse.Namespace) -> Row:
    clients, cpu_threads, seconds = options.clients, options.cpu_threads, options.seconds
    modes = {**ways(), **instead(options), "alone": STOCK}
    if name == "timer":
        del modes["2 workers"]
    if options.free_threaded and (missing := lacks(options.free_threaded, name)):
        print(f"{TITLES[name]}: without {options.free_threaded}, which lacks {missing}")
        del modes["free-threaded"]
    if name == "asyncio":
        modes["priority io"] = replace(modes["fairlead"], settings={"priority": "io"})

    def take(mode: str) -> FIGURES:
        threads = 0 if mode == "alone" else cpu_threads
        if name == "timer":
            with subject("asyncio_timer", modes[mode], cpu_threads=threads, seconds=seconds) as (process, _):
                return answer(process)
        program = "asyncio_server" if name == "asyncio" else "http_server"
        http = None if name == "asyncio" else "/"
        with subject(program, modes[mode], cpu_threads=threads, kind=name) as (_, facts):
            return load(facts, clients=clients, seconds=seconds, warm_up=seconds / 2, http=http)

    title = f"{TITLES[name]}, {cpu_threads} CPU threads" + ("" if name == "timer" else f", {clients} clients")
    return Row(title, take, list(modes), [Target("p99 us", "fairlead", of="stock", at_most=0.1)])


def lacks(python: str, name: str) -> str:
    """The packages of a row that the interpreter does not have."""
    code = "import importlib.util as u, sys; print(*(p for p in sys.argv[1:] if u.find_spec(p) is None))"
    done = subprocess.run([python, "-c", code, *NEEDS[name]], capture_output=True, text=True, check=True)
    return " and ".join(done.stdout.split())


def main() -> None:
    parser = server_arguments(__doc__ or "", rounds=5)
    parser.add_argument("--only", default=",".join(NEEDS))
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--cpu-threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    if options.quick:
        options.seconds = 0.1
    rows = []
    for name in options.only.split(","):
        if missing := lacks(sys.executable, name):
            print(f"{TITLES[name]}: left out, {missing} not installed")
        else:
            rows.append(row(name, options))
    run("Do servers with a CPU-bound thread inside answer quickly?", rows, options)


if __name__ == "__main__":
    main()
