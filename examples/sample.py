"""A program of the catalogue under load, once: its processes, and what was seen of them.

The programs are installed from their registry into an environment of their own (in the user's cache), and are
started as their documentation says, beside a thread of the same process that computes. Requests arrive at
random times, whether they are answered or not, and latency counts from the instant at which one was due.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
APPS = HERE / "apps"
BENCHMARKS = HERE.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from environment import FAIRLEAD, Environment  # noqa: E402
from load import Requests, openloop  # noqa: E402
from processes import Way, steps_per_ms  # noqa: E402
from programs import PROGRAMS  # noqa: E402

START_S = 40


class NoAnswer(Exception):
    """A program did not start, or ended before its time; with what it printed."""


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class OneRun:
    """The processes of one sample, with ports and a directory of their own."""

    def __init__(self, name: str, way: Way, directory: Path, *, seconds: float, seed: int) -> None:
        self.program, self.way, self.directory = PROGRAMS[name], way, directory
        self.python = str(Environment().python)
        self.seconds = seconds
        self.warm_up = max(0.5, seconds / 4)
        self.port, self.port_2, self.redis_port = free_ports(3)
        self.seed = seed
        self.work = directory / "work"
        self.work.write_bytes(bytes(8 * self.program.cpu_threads))
        self.variables = {
            **os.environ,
            **FAIRLEAD,
            "PYTHONPATH": os.pathsep.join([str(APPS), str(BENCHMARKS / "subjects")]),
            "PYTHONUNBUFFERED": "1",
            "HOME": str(directory),  # what they keep of their own accord goes with it
            "TMPDIR": str(directory),
            "EXAMPLE_PORT": str(self.port),
            "EXAMPLE_PORT_2": str(self.port_2),
            "EXAMPLE_REDIS_PORT": str(self.redis_port),
            "EXAMPLE_DIRECTORY": str(directory),
            "EXAMPLE_WORK": str(self.work),
            "EXAMPLE_CPU_THREADS": str(self.program.cpu_threads),
            "EXAMPLE_STEPS_PER_MS": str(round(steps_per_ms())),
            "EXAMPLE_LOAD": json.dumps(
                {
                    "rate": self.program.load.rate,
                    "seconds": self.seconds,
                    "warm_up": self.warm_up,
                    "seed": seed,
                }
            ),
        }

    def words(self, command: str) -> list[str]:
        values = {"port": self.port, "port_2": self.port_2, "apps": APPS, "directory": self.directory}
        return shlex.split(command.format(**values))

    @contextmanager
    def process(self, command: list[str], name: str, **more: Any) -> Iterator[subprocess.Popen[str]]:
        """A process in a session of its own, which ends with all that it started. What it prints is kept for
        the message if it fails."""
        with (
            (self.directory / f"{name}.log").open("w") as log,
            subprocess.Popen(
                command,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stderr=log,
                text=True,
                start_new_session=True,
                **{"env": self.variables, "stdout": log, **more},
            ) as process,
        ):
            try:
                yield process
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    @contextmanager
    def companions(self) -> Iterator[None]:
        """What the program talks to, which is not scheduled."""
        if self.program.redis:
            command = ["redis-server", "--port", str(self.redis_port), "--bind", "127.0.0.1", "--save", ""]
            with self.process(command, "redis") as process:
                self.wait_for_port(self.redis_port, process, "redis")
                yield
        elif self.program.beside:
            with self.process([self.python, *self.words(self.program.beside)], "beside") as process:
                self.wait_for_port(self.port_2, process, "beside")
                yield
        else:
            yield

    @contextmanager
    def started(self) -> Iterator[subprocess.Popen[str]]:
        variables = dict(self.variables)
        if "switch_interval" in self.way.settings:
            variables["EXAMPLE_SWITCH_INTERVAL"] = str(self.way.settings["switch_interval"])
        options = self.program.workers if "workers" in self.way.settings else ""
        command = [*self.way.command, self.python, *self.words(f"{self.program.command} {options}")]
        load = self.program.load
        measures_itself = load.protocol == "python" and not load.program
        more = {"stdout": subprocess.PIPE} if measures_itself else {}
        with self.process(command, "program", env=variables, **more) as process:
            if load.protocol == "http":
                self.wait_for_answer(process)
            elif load.protocol == "websocket":
                self.wait_for_port(self.port, process, "program")
            yield process

    def wait_for_port(self, port: int, process: subprocess.Popen[str], name: str) -> None:
        end = time.monotonic() + START_S
        while time.monotonic() < end and process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        self.fail(name, "does not listen")

    def wait_for_answer(self, process: subprocess.Popen[str]) -> None:
        end = time.monotonic() + START_S
        while time.monotonic() < end and process.poll() is None:
            try:
                with urllib.request.urlopen(
                    f"http://127.0.0.1:{self.port}{self.program.load.path}", timeout=5
                ):
                    return
            except (OSError, urllib.error.URLError):
                time.sleep(0.05)
        self.fail("program", "does not answer")

    def fail(self, name: str, what: str) -> None:
        said = [
            f"{log.stem} printed:\n{log.read_text()[-2000:]}"
            for log in sorted(self.directory.glob("*.log"))
            if log.stat().st_size
        ]
        raise NoAnswer("\n".join([f"the {name} {what}", *said]))

    def seen(self, process: subprocess.Popen[str]) -> Any:
        """What the load has seen, by classes of requests, and what share of its time the computing threads
        worked."""
        marks: list[tuple[float, float]] = []

        def mark() -> None:
            done = memoryview(self.work.read_bytes()).cast("q")
            marks.append((time.monotonic(), sum(done) / 1e9))

        found = self.load(process, mark)
        (begun, before), (ended, after) = marks
        return {**found, "CPU share": (after - before) / (ended - begun)}

    def load(self, process: subprocess.Popen[str], mark: Any) -> Any:
        load = self.program.load
        if load.protocol != "python":
            return openloop(
                self.port,
                [Requests("requests", load.rate, 1, load.path)],
                seconds=self.seconds,
                warm_up=self.warm_up,
                seed=self.seed,
                protocol=load.protocol,
                connections=load.connections,
                at_begin=mark,
                at_end=mark,
            )
        if not load.program:
            return self.watched(process, "program", mark)
        command = [self.python, str(APPS / load.program)]
        with self.process(command, "load", stdout=subprocess.PIPE) as driver:
            return self.watched(driver, "load", mark)

    def watched(self, process: subprocess.Popen[str], name: str, mark: Any) -> Any:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith('{"start"'):
                begin = json.loads(line)["start"] + self.warm_up
                for at in (begin, begin + self.seconds):
                    time.sleep(max(0.0, at - time.monotonic()))
                    mark()
            elif line.startswith('{"classes"'):
                return json.loads(line)
        self.fail(name, "ended without an answer")
        return None
