"""What does it cost a program to have its GIL counted, served or recorded?

    python benchmarks/observe_overhead.py [--rounds 300] [--block 0.2] [--work echo-1,echo-4,cpu-1,cpu-4]

For each work one process, in which blocks alternate: nothing observed, nothing once more (``again``), the GIL
counted (``fairlead.gil.observe()``), an endpoint that is scraped (``fairlead.gil.serve()``, ``/metrics`` ten
times a second), and every event recorded (``fairlead.gil.record()``) into a file on disk. Each round has one
block of each, in an order that ``--seed`` draws.

Work: ``echo-1`` and ``echo-4``, a threaded server that answers one byte with one byte to so many clients,
which are another process and count the answers; ``cpu-1`` and ``cpu-4``, threads that compute in Python and
count what they have done. One more process asks for ``/metrics`` all the time, and is refused in the blocks
in which nothing serves.

Printed are the work done per second and the process's CPU time for it, relative to the block of ``nothing``
of the same round: the median over the rounds, with its 95 % interval by bootstrap. ``again`` tells what the
machine can resolve: its interval must cover 1. Targets: counting and the endpoint within 5 %, recording
within 10 %.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import mmap
import os
import random
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from statistics import median

from harness import origin

import fairlead.gil
from fairlead.lab.analysis.statistics import describe
from fairlead.lab.isolation.other_load import Meter

NOTHING = "nothing"
AT_LEAST = {"counting": 0.95, "scraped": 0.95, "recording": 0.90}
SETTLE_S = 0.02
SCRAPE_S = 0.1


class Work:
    """Threads that do something over and over, and what counts it."""

    def __init__(self, name: str) -> None:
        self.stop = False
        self.client: subprocess.Popen[bytes] | None = None
        kind, number = name.split("-")
        self.counts = [[0] for _ in range(int(number))]
        if kind == "echo":
            bodies = self.serve(len(self.counts))
        else:
            bodies = [partial(self.compute, count) for count in self.counts]
        self.threads = [threading.Thread(target=body) for body in bodies]
        for thread in self.threads:
            thread.start()

    def serve(self, clients: int) -> list[Callable[[], None]]:
        listener = socket.create_server(("127.0.0.1", 0))
        with tempfile.TemporaryFile() as file:
            file.truncate(8)
            self.answers = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")
            self.client = beside("--client", listener.getsockname()[1], clients, file.fileno())
            return [partial(self.answer, listener.accept()[0]) for _ in range(clients)]

    def answer(self, connection: socket.socket) -> None:
        with connection:
            while not self.stop and (data := connection.recv(1)):
                connection.send(data)

    def compute(self, count: list[int]) -> None:
        while not self.stop:
            for _ in range(100):
                pass
            count[0] += 1

    def done(self) -> int:
        return self.answers[0] if self.client else sum(count[0] for count in self.counts)

    def rates(self, seconds: float) -> tuple[float, float]:
        """Work per second, and CPU seconds of this process for each piece of it, from now on."""
        before, begun, used = self.done(), time.perf_counter(), time.process_time()
        done = 0
        while not done:  # a busy machine may give the clients no time in a short block
            if self.client and self.client.poll() is not None:
                raise SystemExit("the clients have ended")
            time.sleep(seconds)
            done = self.done() - before
        return done / (time.perf_counter() - begun), (time.process_time() - used) / done

    def end(self) -> None:
        self.stop = True
        for thread in self.threads:
            thread.join()
        if self.client is not None:
            self.client.wait()


def beside(*arguments: str | int) -> subprocess.Popen[bytes]:
    """This script in another role, in a process of its own. The last argument is a file that it inherits."""
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.Popen(command, pass_fds=[int(arguments[-1])], stdout=subprocess.PIPE)


def client(port: int, clients: int, file: int) -> None:
    """Send a byte on every connection that has answered, and count the answers, until the server hangs up."""
    answers = memoryview(mmap.mmap(file, 8)).cast("Q")
    connections: dict[int, socket.socket] = {}
    poll = select.epoll()
    for _ in range(clients):
        connection = socket.create_connection(("127.0.0.1", port))
        connections[connection.fileno()] = connection
        poll.register(connection, select.EPOLLIN)
        connection.send(b"x")
    while connections:
        for number, _ in poll.poll():
            try:
                if connections[number].recv(1):
                    answers[0] += 1
                    connections[number].send(b"x")
                    continue
            except ConnectionError:
                pass
            poll.unregister(number)
            connections.pop(number).close()


def scrape(port: int, stop: int) -> None:
    """Ask for /metrics ten times a second until the pipe is closed; print how often it answered."""
    answered = 0
    while not select.select([stop], [], [], SCRAPE_S)[0]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/metrics")
            answered += bool(connection.getresponse().read())
        except OSError:
            pass  # nothing serves in this block
        finally:
            connection.close()
    print(answered)


def measure(name: str, options: argparse.Namespace) -> dict[str, list[tuple[float, float]]]:
    """Of each mode, in the order of the rounds: work per second, and CPU seconds for each piece of it."""
    with fairlead.gil.serve("0") as server:
        port = server.port
    stop, stopped = os.pipe()
    meter = Meter()
    meter.begin()
    with tempfile.TemporaryDirectory(dir=os.curdir) as directory:
        modes: dict[str, Callable[[], AbstractContextManager[object]]] = {
            NOTHING: nullcontext,
            "again": nullcontext,
            "counting": fairlead.gil.observe,
            "scraped": partial(fairlead.gil.serve, f"127.0.0.1:{port}"),
            "recording": partial(fairlead.gil.record, Path(directory) / "overhead.flrec"),
        }
        found: dict[str, list[tuple[float, float]]] = {mode: [] for mode in modes}
        scraper, work = beside("--scrape", port, stop), Work(name)
        orders = random.Random(options.seed)
        try:
            for _ in range(options.rounds):
                for mode in orders.sample(list(modes), len(modes)):
                    with modes[mode]():
                        time.sleep(SETTLE_S)
                        found[mode].append(work.rates(options.block))
        finally:
            work.end()
            os.close(stopped)
            scrapes = int(scraper.communicate()[0])
            os.close(stop)
    report(name, found, scrapes, meter.end() or 0.0)
    return found


def report(name: str, found: dict[str, list[tuple[float, float]]], scrapes: int, foreign: float) -> None:
    done, used = (median(block[figure] for block in found[NOTHING]) for figure in (0, 1))
    print(
        f"{name}: {done:,.0f}/s, {used * 1e6:.2f} us of CPU time each; {len(found[NOTHING])} rounds,"
        f" {scrapes} scrapes answered, other processes had {foreign:.1%} of the cores"
    )
    for mode, blocks in found.items():
        if mode == NOTHING:
            continue
        pairs = list(zip(blocks, found[NOTHING], strict=True))
        work, low, high = middle([mine[0] / theirs[0] for mine, theirs in pairs])
        cpu, least, most = middle([mine[1] / theirs[1] for mine, theirs in pairs])
        print(
            f"    {mode:10} done {work:.4f} [{low:.4f} {high:.4f}]"
            f"   CPU time {cpu:.4f} [{least:.4f} {most:.4f}]   {verdict(mode, low, high)}"
        )


def middle(ratios: Sequence[float]) -> tuple[float, float, float]:
    """With an interval that few rounds do not bound."""
    found = describe(ratios)
    assert found.median is not None
    return (
        found.median,
        0.0 if found.low is None else found.low,
        math.inf if found.high is None else found.high,
    )


def verdict(mode: str, low: float, high: float) -> str:
    if mode not in AT_LEAST:
        return "covers 1" if low <= 1 <= high else "does NOT cover 1: do not trust the other intervals"
    bound = AT_LEAST[mode]
    word = "met" if low >= bound else "MISSED" if high < bound else "open"
    return f"done must be >= {bound}: {word}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--block", type=float, default=0.2, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", default="echo-1,echo-4,cpu-1,cpu-4")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all blocks there")
    parser.add_argument("--client", type=int, nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--scrape", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        client(*options.client)
    elif options.scrape:
        scrape(*options.scrape)
    else:
        print(origin())
        blocks = {name: measure(name, options) for name in options.work.split(",")}
        if options.json:
            options.json.write_text(json.dumps(blocks))


if __name__ == "__main__":
    main()
