"""Does a threaded echo server stay quick beside CPU-bound threads, and do those get on?

    python benchmarks/gil_echo.py [--clients 1,16,64] [--cpu-threads 1,4] [--floors 0.3] [--go]
                                  [--free-threaded PYTHON]

For each number of clients and CPU-bound threads: stock CPython, `sys.setswitchinterval(.0005)`, `fairlead
run`, the same with each of the floors as its `--cpu-share`, two processes of the stock server (each with its
CPU-bound threads), with `--free-threaded` an interpreter without a GIL, and two yardsticks. `process` is the
same server with no CPU-bound thread inside but a CPU-bound *process* beside it: what the operating system's
own scheduler makes of the same work. `go` (with `--go`, which takes Go's compiler) is the same server in Go,
with CPU-bound goroutines, on all cores.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import (
    FIGURES,
    STOCK,
    SUBJECTS,
    Row,
    Target,
    cpu_bound_process,
    instead,
    load,
    program,
    run,
    scheduled,
    server_arguments,
    subject,
    ways,
)


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",") if part]


def go_server(directory: str) -> str:
    go = shutil.which("go")
    if go is None:
        sys.exit("gil_echo.py: --go needs Go's compiler, and there is no `go` on the PATH")
    server = str(Path(directory) / "echo_server")
    subprocess.run([go, "build", "-o", server, SUBJECTS / "echo_server.go"], check=True)
    return server


def row(clients: int, cpu_threads: int, options: argparse.Namespace, go: str | None) -> Row:
    floors, seconds = numbers(options.floors), options.seconds
    ours = {**ways(), **{f"floor {floor:g}": scheduled("--cpu-share", f"{floor:g}") for floor in floors}}
    ours |= instead(options)
    how = {"clients": clients, "seconds": seconds, "warm_up": seconds / 3}

    def take(mode: str) -> FIGURES:
        if mode == "go" and go is not None:
            with program(go, cpu_threads=cpu_threads) as (_, facts):
                return load(facts, **how)
        if mode == "process":
            with cpu_bound_process(), subject("echo_server", STOCK) as (_, facts):
                return load(facts, **how)
        with subject("echo_server", ours[mode], cpu_threads=cpu_threads) as (_, facts):
            return load(facts, **how)

    return Row(
        name=f"{clients} clients + {cpu_threads} CPU threads",
        take=take,
        modes=[*ours, "process", *(["go"] if go else [])],
        targets=[
            *targets(clients, cpu_threads),
            *(Target("CPU share", f"floor {floor:g}", at_least=floor - 0.05) for floor in floors),
        ],
    )


def targets(clients: int, cpu_threads: int) -> list[Target]:
    def rate(at_least: float, of: str = "process", plus: str | None = None, how: str = "median") -> Target:
        return Target("requests/s", "fairlead", of=of, plus=plus, at_least=at_least, how=how)

    if clients == 1 and cpu_threads > 1:
        return [rate(0.5, how="every"), Target("p99 us", "fairlead", at_most=500, how="every")]
    if clients == 1:
        efficient = rate(0.95, plus="CPU share")
        return [rate(0.6), efficient, rate(1, of="go"), Target("p99 us", "fairlead", at_most=200)]
    slow = Target("p99 us", "fairlead", of="stock", at_most=0.1)
    return [slow, rate(0.9, plus="CPU share"), *([rate(0.7, of="go")] if clients == 16 else [])]


def main() -> None:
    parser = server_arguments(__doc__ or "", rounds=5)
    parser.add_argument("--clients", default="1,16,64")
    parser.add_argument("--cpu-threads", default="1,4")
    parser.add_argument("--floors", default="0.3")
    parser.add_argument("--go", action="store_true")
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    if options.quick:
        options.clients, options.cpu_threads, options.seconds = "1,4", "1", 0.1
    with tempfile.TemporaryDirectory() as directory:
        go = go_server(directory) if options.go else None
        rows = [
            row(int(clients), int(cpu_threads), options, go)
            for clients in numbers(options.clients)
            for cpu_threads in numbers(options.cpu_threads)
        ]
        run("Does a threaded echo server stay quick beside CPU-bound threads?", rows, options)


if __name__ == "__main__":
    main()
