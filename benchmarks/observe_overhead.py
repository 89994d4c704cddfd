"""What does it cost a program to have its GIL observed?

    python benchmarks/observe_overhead.py [--rounds 20] [--block 0.4] [--work echo-1,echo-4,cpu-1,cpu-4]

For each work one process, in which blocks alternate: nothing observed, counting
(``fairlead.gil.observe()``), and recording every event (``fairlead.gil.record()``) into a file on disk; the
order turns round from one round to the next. Work: ``echo-1`` and ``echo-4``, a threaded server that
answers one byte with one byte to so many clients, which are another process; ``cpu-1`` and ``cpu-4``,
threads that compute in Python.
Prints the work done per second relative to the block without observation of the same round: median and
quartiles. ``idle`` is the first block of all, before fairlead has touched anything, relative to the later
ones without observation. Targets: counting no measurable change, recording within 3 %.
"""

from __future__ import annotations

import argparse
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import fairlead.gil
from fairlead.lab.isolation.other_load import Meter

MODES = ("nothing", "counting", "recording")


class Work:
    """Threads that do something over and over, and count it."""

    def __init__(self, name: str) -> None:
        self.stop = False
        self.client: subprocess.Popen[bytes] | None = None
        if name.startswith("echo-"):
            clients = int(name.removeprefix("echo-"))
            listener = socket.create_server(("127.0.0.1", 0))
            self.client = subprocess.Popen(
                [sys.executable, __file__, "--client", str(listener.getsockname()[1]), str(clients)]
            )
            connections = [listener.accept()[0] for _ in range(clients)]
            bodies = [self.answering(connection) for connection in connections]
        else:
            bodies = [self.computing for _ in range(int(name.removeprefix("cpu-")))]
        self.counts = [[0] for _ in bodies]
        self.threads = [
            threading.Thread(target=body, args=(count,))
            for body, count in zip(bodies, self.counts, strict=True)
        ]
        for thread in self.threads:
            thread.start()

    def answering(self, connection: socket.socket) -> Callable[[list[int]], None]:
        def body(count: list[int]) -> None:
            with connection:
                while not self.stop and (data := connection.recv(1)):
                    connection.send(data)
                    count[0] += 1

        return body

    def computing(self, count: list[int]) -> None:
        while not self.stop:
            for _ in range(100):
                pass
            count[0] += 1

    def rates(self, seconds: float) -> tuple[float, float]:
        """Work per second, and per second of this process's CPU time, in the next so many seconds."""
        before, begun, used = sum(count[0] for count in self.counts), time.perf_counter(), time.process_time()
        time.sleep(seconds)
        done, ended = sum(count[0] for count in self.counts) - before, time.perf_counter()
        return done / (ended - begun), done / (time.process_time() - used)

    def end(self) -> None:
        self.stop = True
        for thread in self.threads:
            thread.join()
        if self.client is not None:
            self.client.wait()


def client(port: int, clients: int) -> None:
    """Send a byte on every connection that has answered, until the server hangs up."""
    selector = selectors.DefaultSelector()
    for _ in range(clients):
        connection = socket.create_connection(("127.0.0.1", port))
        selector.register(connection, selectors.EVENT_READ)
        connection.send(b"x")
    while selector.get_map():
        for key, _ in selector.select():
            assert isinstance(key.fileobj, socket.socket)
            try:
                if key.fileobj.recv(1):
                    key.fileobj.send(b"x")
                    continue
            except ConnectionError:
                pass
            selector.unregister(key.fileobj)


def observed(mode: str, directory: str) -> AbstractContextManager[Any]:
    if mode == "counting":
        return fairlead.gil.observe()
    if mode == "recording":
        return fairlead.gil.record(Path(directory) / "overhead.flrec")
    return nullcontext()


def measure(name: str, rounds: int, block: float) -> None:
    work = Work(name)
    ratios: dict[str, list[tuple[float, float]]] = {mode: [] for mode in MODES[1:]}
    plain: list[tuple[float, float]] = []
    meter = Meter()
    meter.begin()
    with tempfile.TemporaryDirectory(dir=os.curdir) as directory:
        time.sleep(block)
        untouched = work.rates(block)[0]
        for number in range(rounds):
            rates = {}
            for mode in (*MODES[number % 3 :], *MODES[: number % 3]):
                with observed(mode, directory):
                    rates[mode] = work.rates(block)
            by_clock, by_cpu = rates["nothing"]
            plain.append(rates["nothing"])
            for mode, found in ratios.items():
                found.append((rates[mode][0] / by_clock, by_cpu / rates[mode][1]))
    work.end()
    foreign = meter.end() or 0.0
    usual = median(rate for rate, _ in plain)
    print(
        f"{name:6} {usual:11,.0f}/s, {1e6 / median(rate for _, rate in plain):.2f} us of CPU time each",
        end="",
    )
    for mode, found in ratios.items():
        done, used = ([pair[which] for pair in found] for which in (0, 1))
        print(f"  {mode}: done {spread(done)}, CPU time {spread(used)}", end="")
    others = "the echo's clients among it" if name.startswith("echo-") else "other processes"
    print(f"  idle {usual / untouched:.3f}  (foreign {foreign:.0%}, {others})")


def spread(ratios: list[float]) -> str:
    low, _, high = quantiles(ratios, n=4)
    return f"{median(ratios):.3f} [{low:.3f} {high:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--block", type=float, default=0.4)
    parser.add_argument("--work", default="echo-1,echo-4,cpu-1,cpu-4")
    parser.add_argument("--client", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        client(*options.client)
        return
    for name in options.work.split(","):
        measure(name, options.rounds, options.block)


if __name__ == "__main__":
    main()
