"""A published web server under load for minutes or hours, stock and scheduled at once, while it is disturbed.

    python tools/serve_soak.py [--minutes 30] [--rate 60] [--cpu-threads 1] [--only reload]
                                [--seed 1] [--json FILE]

gunicorn with two processes of eight threads serves a Flask application, once as it is and once under
`fairlead run`. Both get the same load (open loop) at the same time. In the first half of the run, once in
each round of 20 s, one of these happens to both at the same moment: a worker process is killed, all are
reloaded, they may use one core only and then all again, or `fairlead ctl` switches the scheduler off and on.
In the second half only the last two do, and what the processes have (private memory, descriptors, threads) is
held against that of stock: from the third quarter of the run to the last it may not rise by more.

Exit status 0: the scheduled server left no more requests unanswered than stock did, within what chance makes
of such counts, its watchdog never tripped, and nothing grew.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "examples"), str(HERE.parent / "benchmarks")]

from environment import FAIRLEAD, Environment  # noqa: E402
from gil_open_loop import steps_per_ms  # noqa: E402
from load import Requests, openloop, program  # noqa: E402
from programs import PROGRAMS  # noqa: E402
from run import APPS, BENCHMARKS, free_ports  # noqa: E402

ROUND_S = 20
GROWTH_KIB = 2048
"""More than that, less stock's, is growth of memory: allocators of two processes differ by that much."""
COMMAND = ["fairlead", "run", "--children", "--"]


class Server:
    def __init__(
        self, name: str, python: str, options: argparse.Namespace, directory: Path, *further: str
    ) -> None:
        [self.port] = free_ports(1)
        self.name, self.directory = name, directory
        self.log = directory / f"{name}.log"
        work = directory / f"{name}.work"
        work.write_bytes(bytes(8 * options.cpu_threads))
        self.variables = {
            **os.environ,
            **FAIRLEAD,
            "PYTHONPATH": os.pathsep.join([str(APPS), str(BENCHMARKS / "subjects")]),
            "EXAMPLE_WORK": str(work),
            "EXAMPLE_CPU_THREADS": str(options.cpu_threads),
            "EXAMPLE_STEPS_PER_MS": str(round(steps_per_ms())),
        }
        fairlead = [str(Path(sys.executable).with_name(COMMAND[0])), *COMMAND[1:]]
        gunicorn = [python, "-m", "gunicorn", "--worker-class", "gthread", "--threads", "8", "--workers", "2"]
        place = ["--bind", f"127.0.0.1:{self.port}", "--chdir", str(APPS), "flask_app:app"]
        self.command = [*(fairlead if name == "scheduled" else []), *gunicorn, *further, *place]
        self.answered = self.unanswered = self.trips = 0
        self.p99: list[float] = []
        self.census: list[dict[str, int]] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        with (
            self.log.open("w") as log,
            subprocess.Popen(
                self.command, env=self.variables, stdout=log, stderr=log, start_new_session=True
            ) as self.process,
        ):
            try:
                self.wait()
                if self.name == "scheduled":
                    self.check()
                yield
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(self.process.pid, signal.SIGKILL)

    def wait(self) -> None:
        while self.process.poll() is None:
            with suppress(OSError, urllib.error.URLError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/orders", timeout=5).close()
                return
            time.sleep(0.1)
        raise SystemExit(f"{self.name} ended:\n{self.log.read_text()[-2000:]}")

    def check(self) -> None:
        """Ends this program unless the workers are scheduled."""
        for pid in self.workers():
            done = control(pid, "status")
            if "interactive" not in done.stdout:
                raise SystemExit(f"worker {pid} is not scheduled: {done.stdout}{done.stderr}")

    def workers(self) -> list[int]:
        pid = self.process.pid
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def load(self, options: argparse.Namespace, seed: int) -> None:
        classes = [
            Requests("orders", options.rate / 2, 0.2, "/orders"),
            Requests("work", options.rate / 2, 2, "/work"),
        ]
        seen = openloop(self.port, classes, seconds=ROUND_S, seed=seed, drain=5)
        self.answered += sum(one["requests"] for one in seen["classes"].values())
        self.unanswered += seen["errors"] + seen["unanswered"]
        self.p99.append(seen["classes"]["orders"]["p99"])

    def look(self) -> None:
        """What its processes have, largest first: two workers of different age are not told apart."""
        found = {"private KiB": 0, "descriptors": 0, "threads": 0}
        for pid in (self.process.pid, *self.workers()):
            with suppress(OSError):
                rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                found["private KiB"] += sum(int(line.split()[1]) for line in rollup if "Private_" in line)
                found["descriptors"] += len(list(Path(f"/proc/{pid}/fd").iterdir()))
                found["threads"] += len(list(Path(f"/proc/{pid}/task").iterdir()))
        self.census.append(found)
        self.trips = self.log.read_text().count("did not wake up for it")


def prepared() -> str:
    """The Python that has the server; the load generator is there, too."""
    environment = Environment()
    environment.install(PROGRAMS["gunicorn-flask"].packages)
    program()  # compiled before two ask for it at once
    return str(environment.python)


def control(pid: int, order: str) -> subprocess.CompletedProcess[str]:
    fairlead = str(Path(sys.executable).with_name("fairlead"))
    return subprocess.run([fairlead, "ctl", "--pid", str(pid), order], capture_output=True, text=True)


def kill(server: Server) -> None:
    with suppress(ProcessLookupError):
        os.kill(server.workers()[0], signal.SIGKILL)


def reload(server: Server) -> None:
    os.kill(server.process.pid, signal.SIGHUP)


def use_one_core(server: Server) -> None:
    every = os.sched_getaffinity(0)
    for cores in ({min(every)}, every):
        for pid in (server.process.pid, *server.workers()):
            for thread in Path(f"/proc/{pid}/task").glob("*"):
                with suppress(OSError):
                    os.sched_setaffinity(int(thread.name), cores)
        time.sleep(ROUND_S / 4)


def switch(server: Server) -> None:
    if server.name == "scheduled":
        for order in ("stock", "interactive"):
            for pid in server.workers():
                control(pid, order)
            time.sleep(1)


EVENTS = {event.__name__: event for event in (kill, reload, use_one_core, switch)}


def together(servers: list[Server], what: Any) -> None:
    threads = [threading.Thread(target=what, args=(server,)) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def play(servers: list[Server], number: int, half: int, options: argparse.Namespace) -> str:
    """A round: the load, and what happens meanwhile; its name."""
    chance = random.Random(options.seed * 10_000 + number)
    happens = EVENTS[options.only or chance.choice(list(EVENTS)[2 * (number >= half) :])]
    at = chance.uniform(2, ROUND_S / 3)
    load = threading.Thread(
        target=together, args=(servers, lambda server: server.load(options, options.seed + number))
    )
    load.start()
    time.sleep(at)
    together(servers, happens)
    load.join()
    together(servers, Server.wait)
    together(servers, Server.look)
    return happens.__name__


def by_event(servers: list[Server], happened: list[str]) -> Iterator[str]:
    """A line for each thing that happened: the median p99 of its rounds."""
    for event in dict.fromkeys(happened):
        rounds = [number for number, name in enumerate(happened) if name == event]
        medians = (f"{one.name} {statistics.median(one.p99[n] for n in rounds):.0f} ms" for one in servers)
        higher = sum(servers[1].p99[n] > servers[0].p99[n] for n in rounds)
        yield (
            f"{event}, {len(rounds)} rounds: median p99 {', '.join(medians)};"
            f" {servers[1].name} was higher in {higher} rounds"
        )


def rise(server: Server, what: str) -> float:
    quarter = max(1, len(server.census) // 4)
    third = [one[what] for one in server.census[-2 * quarter : -quarter]]
    return statistics.median(one[what] for one in server.census[-quarter:]) - statistics.median(third)


def verdict(stock: Server, scheduled: Server) -> list[str]:
    wrong = []
    spread = 3 * math.sqrt(stock.unanswered + scheduled.unanswered + 1)
    if scheduled.unanswered > stock.unanswered + spread:
        wrong.append(f"{scheduled.unanswered} requests had no answer, stock's {stock.unanswered}")
    if scheduled.trips:
        wrong.append(f"the watchdog tripped {scheduled.trips} times")
    for what, most in (("private KiB", GROWTH_KIB), ("descriptors", 2), ("threads", 2)):
        if rise(scheduled, what) - rise(stock, what) > most:
            wrong.append(f"{what} rose by {rise(scheduled, what):,.0f}, stock's by {rise(stock, what):,.0f}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=float, default=60, help="requests a second, of each server")
    parser.add_argument("--cpu-threads", type=int, default=1, help="computing threads in each worker")
    parser.add_argument("--only", choices=EVENTS, help="what happens in every round")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="where the counts go, round by round")
    options = parser.parse_args()
    python = prepared()
    rounds = max(4, round(options.minutes * 60 / (ROUND_S + 6)))
    with tempfile.TemporaryDirectory(prefix="fairlead-soak-") as place, ExitStack() as stack:
        servers = [Server(name, python, options, Path(place)) for name in ("stock", "scheduled")]
        for server in servers:
            stack.enter_context(server.running())
        happened = []
        for number in range(rounds):
            happened.append(play(servers, number, rounds // 2, options))
            counts = "; ".join(
                f"{one.name}: {one.answered:,} answered, {one.unanswered} not, p99 {one.p99[-1]:.0f} ms,"
                f" {one.census[-1]['private KiB'] // 1024} MiB"
                for one in servers
            )
            print(f"{number + 1}/{rounds} {happened[-1]}: {counts}", flush=True)
        print("\n".join(by_event(servers, happened)))
        wrong = verdict(*servers)
        if options.json:
            counted = {
                one.name: {"answered": one.answered, "unanswered": one.unanswered, "p99 ms": one.p99}
                | {"census": one.census, "trips": one.trips}
                for one in servers
            }
            options.json.write_text(json.dumps(counted, indent=1))
    print("\n".join(wrong) or "no more unanswered than stock's, no trip of the watchdog, and nothing grew")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
