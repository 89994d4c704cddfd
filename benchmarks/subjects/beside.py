"""A fixed computation beside threads that call something over and over; how long it takes, and their calls.

Settings: kinds (of KINDS, one thread each), apart (the others run in a process of their own), steps (of the
computation), frames (parts that it comes in, 5 ms of sleep between them). Prints a line when all is ready,
and then what was seen.
"""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import os
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial

import subject
from steps import count_to

Call = Callable[[], object]


def digest() -> Call:
    data = bytes(16_384)
    return lambda: hashlib.sha256(data).digest()


def log() -> Call:
    logger = logging.Logger("beside")
    logger.addHandler(logging.StreamHandler(tempfile.TemporaryFile("w")))  # noqa: SIM115
    return lambda: logger.warning("a line of a log file, number %d", 5)


def database() -> Call:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("create table t (a)")
    connection.executemany("insert into t values (?)", [(i,) for i in range(200)])
    return lambda: connection.execute("select sum(a) from t where a > 3").fetchall()


def remote() -> Call:
    """A client of Redis; it starts the server, which ends with its standard input."""
    port = socket.create_server(("127.0.0.1", 0)).getsockname()[1]
    command = ["redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    SERVERS.append(server)
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port))
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    replies = connection.makefile("rb")

    def increment() -> None:
        connection.sendall(b"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n")
        int(replies.readline()[1:])

    return increment


def chat() -> Call:
    """Much Python code between two calls."""

    call = partial(os.stat, "/")

    def some_code_and_a_call() -> None:
        count_to(500)
        call()

    return some_code_and_a_call


KINDS: dict[str, Callable[[], Call]] = {
    "sha256": digest,
    "stat": lambda: partial(os.stat, "/"),
    "log": log,
    "sqlite": database,
    "redis": remote,
    "nap": lambda: lambda: time.sleep(0.001),
    "chat": chat,
}
SERVERS: list[subprocess.Popen[bytes]] = []


class Callers:
    """Threads that call until they are told to stop."""

    def __init__(self, kinds: list[str]) -> None:
        self.stopped = False
        self.counts = [0] * len(kinds)
        calls = [KINDS[kind]() for kind in kinds]
        self.threads = [threading.Thread(target=self._run, args=one) for one in enumerate(calls)]
        for thread in self.threads:
            thread.start()

    def _run(self, place: int, call: Call) -> None:
        counts = self.counts
        while not self.stopped:
            call()
            counts[place] += 1

    def read(self) -> tuple[float, int]:
        return time.monotonic(), sum(self.counts)

    def stop(self) -> None:
        self.stopped = True
        for thread in self.threads:
            thread.join()
        for server in SERVERS:
            server.terminate()
            server.wait()


def elsewhere(kinds: list[str], pipe: multiprocessing.connection.Connection) -> None:
    """The callers of a process of their own: each message asks for their counts, None ends them."""
    callers = Callers(kinds)
    while pipe.recv() is not None:
        pipe.send(callers.read())
    callers.stop()


def compute(steps: int, frames: int) -> list[float]:
    """How long each part took."""
    took = []
    for number in range(frames):
        begin = time.perf_counter()
        count_to(steps // frames)
        took.append(time.perf_counter() - begin)
        if number + 1 < frames:
            time.sleep(0.005)
    return took


def main() -> None:
    kinds: list[str] = subject.SETTINGS["kinds"]
    if subject.SETTINGS.get("apart"):
        context = multiprocessing.get_context("fork")
        pipe, theirs = context.Pipe()
        process = context.Process(target=elsewhere, args=(kinds, theirs))
        process.start()

        def read() -> tuple[float, int]:
            pipe.send(True)
            answer: tuple[float, int] = pipe.recv()
            return answer

        def stop() -> None:
            pipe.send(None)
            process.join()
    else:
        callers = Callers(kinds)
        read, stop = callers.read, callers.stop
    subject.say()
    time.sleep(0.2)  # until they are under way
    began, before = read()
    took = compute(subject.SETTINGS["steps"], subject.SETTINGS["frames"])
    ended, calls = read()
    stop()
    subject.say(computation_s=sum(took), longest_s=max(took), calls_per_s=(calls - before) / (ended - began))


subject.set_switch_interval()
main()
