"""A published web server under load for minutes or hours, stock and scheduled at once, while it is disturbed.

    python tools/serve_soak.py [--minutes 30] [--rate 60] [--cpu-threads 1] [--only reload]
                                [--seed 1] [--add FILE]

gunicorn with two processes of eight threads serves a Flask application, once as it is and once under
`fairlead run`. Both get the same load (open loop) at the same time. In the first half of the run, once in
each round of 20 s, one of these happens to both at the same moment: a worker process is killed, all are
reloaded, they may use one core only and then all again, or `fairlead ctl` switches the scheduler off and on.
In the second half only the last two do, and what the processes have (private memory, descriptors, threads) is
held against that of stock: from the third quarter of the run to the last it may not rise by more.

With --add the run is added to those in FILE, and all of them together are judged: so hours add up.

A round in which stock leaves one request of twenty unanswered is overloaded: what is left then says how much
of the cores each server got, and not that an answer was lost. Of such rounds is told how much CPU time each
server got, and how many requests it answered for a second of it.

Exit status 0: the scheduled server left no more requests unanswered than stock did, within what chance makes
of such counts, its watchdog never tripped, nothing grew, and most rounds were not overloaded.
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
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "examples"), str(HERE.parent / "benchmarks")]

from environment import FAIRLEAD, Environment  # noqa: E402
from load import Requests, openloop, program  # noqa: E402
from processes import steps_per_ms  # noqa: E402
from programs import PROGRAMS  # noqa: E402
from sample import APPS, BENCHMARKS, free_ports  # noqa: E402

ROUND_S = 20
GROWTH_KIB = 2048
"""More than that, less stock's, is growth of memory: allocators of two processes differ by that much."""
OVERLOADED = 0.05
"""Share of a round's requests that stock leaves, above which there was more load than cores."""
Run = dict[str, Any]
"""Its settings, what happened in each round, the rounds of each server, and trips of the watchdog."""
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
        self.rounds: list[dict[str, float]] = []
        self.trips = 0

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
        before = self.cpu_s()
        seen = openloop(self.port, classes, seconds=ROUND_S, seed=seed, drain=5)
        asked = sum(one["requests"] for one in seen["classes"].values())
        left = seen["errors"] + seen["unanswered"]
        self.rounds.append(
            {"answered": asked - seen["unanswered"], "left": left, "cpu s": self.cpu_s() - before}
            | {"p99 ms": seen["classes"]["orders"]["p99"]}
        )

    def cpu_s(self) -> float:
        """CPU time of all its processes, those that have ended included."""
        ticks = 0
        for pid in (self.process.pid, *self.workers()):
            with suppress(OSError):
                times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]
                ticks += sum(map(int, times))
        return ticks / os.sysconf("SC_CLK_TCK")

    def look(self) -> None:
        """What its processes have."""
        found = {"private KiB": 0, "descriptors": 0, "threads": 0}
        for pid in (self.process.pid, *self.workers()):
            with suppress(OSError):
                rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                found["private KiB"] += sum(int(line.split()[1]) for line in rollup if "Private_" in line)
                found["descriptors"] += len(list(Path(f"/proc/{pid}/fd").iterdir()))
                found["threads"] += len(list(Path(f"/proc/{pid}/task").iterdir()))
        self.rounds[-1] |= found
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


def play(servers: list[Server], number: int, half: int, options: argparse.Namespace, seed: int) -> str:
    """A round: the load, and what happens meanwhile; its name."""
    chance = random.Random(seed * 10_000 + number)
    happens = EVENTS[options.only or chance.choice(list(EVENTS)[2 * (number >= half) :])]
    at = chance.uniform(2, ROUND_S / 3)
    load = threading.Thread(
        target=together, args=(servers, lambda server: server.load(options, seed * 10_000 + number))
    )
    load.start()
    time.sleep(at)
    together(servers, happens)
    load.join()
    together(servers, Server.wait)
    together(servers, Server.look)
    return happens.__name__


class Round(NamedTuple):
    event: str
    stock: dict[str, float]
    scheduled: dict[str, float]

    def overloaded(self) -> bool:
        return self.stock["left"] > OVERLOADED * (self.stock["answered"] + self.stock["left"])


def judged(runs: list[Run]) -> tuple[list[str], list[str]]:
    """What is to be said of all runs, and what is wrong with the scheduled server."""
    rounds = [
        Round(*one)
        for run in runs
        for one in zip(run["happened"], run["stock"], run["scheduled"], strict=True)
    ]
    counted = [one for one in rounds if not one.overloaded()]
    stock, scheduled = total(counted, "left")
    hours, asked = len(rounds) * ROUND_S / 3600, total(counted, "answered")[0] + stock
    said = [
        *by_event(counted),
        f"{hours:.2f} hours of load in {len(runs)} runs; {asked:,.0f} requests to each server, without answer"
        f" {stock:.0f} of stock's and {scheduled:.0f} of the scheduled one's",
    ]
    wrong = []
    if scheduled > stock + 3 * math.sqrt(stock + scheduled + 1):
        wrong.append("more requests had no answer than of stock's")
    if len(counted) < len(rounds):
        said.append(overload([one for one in rounds if one.overloaded()]))
    if len(counted) < len(rounds) / 2:
        wrong.append("most rounds were overloaded: repeat them at a lower --rate")
    if trips := sum(run["trips"] for run in runs):
        wrong.append(f"the watchdog tripped {trips} times")
    for what, most in (("private KiB", GROWTH_KIB), ("descriptors", 2), ("threads", 2)):
        for run in runs:
            ours, others = rise(run["scheduled"], what), rise(run["stock"], what)
            if ours - others > most:
                wrong.append(f"{what} rose by {ours:,.0f} in a run, stock's by {others:,.0f}")
    return said, wrong


def total(rounds: list[Round], what: str) -> tuple[float, float]:
    return sum(one.stock[what] for one in rounds), sum(one.scheduled[what] for one in rounds)


def overload(rounds: list[Round]) -> str:
    cpu, answered = total(rounds, "cpu s"), total(rounds, "answered")
    each = (
        f"{name} had {seconds:.0f} s of CPU time and answered {count / seconds:.0f} requests for each"
        for name, seconds, count in zip(("stock", "scheduled"), cpu, answered, strict=True)
    )
    return f"{len(rounds)} rounds were overloaded: {'; '.join(each)}"


def by_event(rounds: list[Round]) -> Iterator[str]:
    """A line for each thing that happened: the median p99 of its rounds."""
    for event in dict.fromkeys(one.event for one in rounds):
        p99 = [(one.stock["p99 ms"], one.scheduled["p99 ms"]) for one in rounds if one.event == event]
        stock, scheduled = (statistics.median(one[place] for one in p99) for place in (0, 1))
        higher = sum(ours > others for others, ours in p99)
        yield (
            f"{event}, {len(p99)} rounds: median p99 stock {stock:.0f} ms, scheduled {scheduled:.0f} ms;"
            f" scheduled was higher in {higher} rounds"
        )


def rise(rounds: list[dict[str, float]], what: str) -> float:
    quarter = max(1, len(rounds) // 4)
    third = [one[what] for one in rounds[-2 * quarter : -quarter]]
    return statistics.median(one[what] for one in rounds[-quarter:]) - statistics.median(third)


def soak(options: argparse.Namespace, seed: int) -> Run:
    python = prepared()
    number_of_rounds = max(4, round(options.minutes * 60 / (ROUND_S + 6)))
    with tempfile.TemporaryDirectory(prefix="fairlead-soak-") as place, ExitStack() as stack:
        stock, scheduled = (Server(name, python, options, Path(place)) for name in ("stock", "scheduled"))
        servers = [stock, scheduled]
        for server in servers:
            stack.enter_context(server.running())
        happened: list[str] = []
        for number in range(number_of_rounds):
            happened.append(play(servers, number, number_of_rounds // 2, options, seed))
            counts = "; ".join(
                f"{one.name}: {now['answered']:,} answered, {now['left']} not, p99 {now['p99 ms']:.0f} ms,"
                f" {now['private KiB'] // 1024} MiB"
                for one in servers
                for now in one.rounds[-1:]
            )
            print(f"{number + 1}/{number_of_rounds} {happened[-1]}: {counts}", flush=True)
        return {
            "settings": [options.rate, options.cpu_threads],
            "happened": happened,
            "stock": stock.rounds,
            "scheduled": scheduled.rounds,
            "trips": scheduled.trips,
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=float, default=60, help="requests a second, of each server")
    parser.add_argument("--cpu-threads", type=int, default=1, help="computing threads in each worker")
    parser.add_argument("--only", choices=EVENTS, help="what happens in every round")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--add", type=Path, metavar="FILE", help="add the run to those in this file")
    options = parser.parse_args()
    runs: list[Run] = []
    if options.add and options.add.exists():
        runs = json.loads(options.add.read_text())
        if any(run["settings"] != [options.rate, options.cpu_threads] for run in runs):
            raise SystemExit(
                f"{options.add} has runs with another --rate or --cpu-threads: name another file"
            )
    runs.append(soak(options, options.seed + len(runs)))
    if options.add:
        options.add.write_text(json.dumps(runs, indent=1))
    said, wrong = judged(runs)
    print("\n".join(said))
    print("\n".join(wrong) or "no more unanswered than stock's, no trip of the watchdog, and nothing grew")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
