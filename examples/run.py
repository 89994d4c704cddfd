"""Programs that others published, before and after: stock, a short switch interval, fairlead run and, of a
server that can start two processes, those, in turns.

    python examples/run.py gunicorn-flask [--rounds 3] [--seconds 4] [--foreign 2]
    python examples/run.py long-c-call --record
    python examples/run.py --list
    python examples/run.py --install [NAME ...]

The programs are installed from their registry into an environment of their own (in the user's cache), and are
started as their documentation says, beside a thread of the same process that computes. Requests arrive at
random times, whether they are answered or not, and latency counts from the instant at which one was due.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
APPS = HERE / "apps"
BENCHMARKS = HERE.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from environment import FAIRLEAD, Environment  # noqa: E402
from harness import (  # noqa: E402
    FIGURES,
    MachineShares,
    Row,
    Target,
    Way,
    arguments,
    run,
    ways,
)
from load import Requests, openloop  # noqa: E402
from processes import steps_per_ms  # noqa: E402
from programs import PROGRAMS, Program  # noqa: E402

START_S = 40
PR_SET_CHILD_SUBREAPER = 36


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Example:
    """A program of the catalogue under load, in one mode after another."""

    def __init__(self, name: str, modes: dict[str, Way], options: argparse.Namespace) -> None:
        self.name, self.options = name, options
        self.program: Program = PROGRAMS[name]
        self.modes = {mode: way for mode, way in modes.items() if mode != "2 workers" or self.program.workers}
        self.environment = Environment()
        self.taken = 0
        self.steps = 0.0

    def row(self) -> Row:
        targets = [
            Target("p99, ms", mode, of="stock", at_most=1.1) for mode in self.modes if mode == "fairlead"
        ]
        return Row(f"{self.name}: {self.program.title}", self.take, list(self.modes), targets)

    def take(self, mode: str) -> FIGURES:
        turn, first = divmod(self.taken, len(self.modes))
        if first == 0:
            self.steps = steps_per_ms()
        self.taken += 1
        with tempfile.TemporaryDirectory(prefix="fairlead-example-") as directory:
            sample = OneRun(self, self.modes[mode], Path(directory), seed=self.options.seed + turn)
            with sample.companions(), sample.started() as process:
                return sample.figures(process)


class OneRun:
    """The processes of one sample, with ports and a directory of their own."""

    def __init__(self, example: Example, way: Way, directory: Path, seed: int) -> None:
        self.program, self.way, self.directory = example.program, way, directory
        self.python = str(example.environment.python)
        self.seconds: float = example.options.seconds
        self.warm_up = max(0.5, self.seconds / 4)
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
            "EXAMPLE_STEPS_PER_MS": str(round(example.steps)),
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
                with suppress(ChildProcessError):
                    while True:  # its children, which are ours now
                        os.waitpid(-process.pid, 0)

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
        raise SystemExit("\n".join([f"the {name} {what}", *said]))

    def figures(self, process: subprocess.Popen[str]) -> FIGURES:
        marks: list[tuple[float, float]] = []
        shares: list[MachineShares] = []
        machine: FIGURES = {}

        def mark() -> None:
            done = memoryview(self.work.read_bytes()).cast("q")
            marks.append((time.monotonic(), sum(done) / 1e9))
            if not shares:
                shares.append(MachineShares())
            else:
                machine.update(shares[0].figures())

        seen = self.load(process, mark)
        figures: FIGURES = {}
        for name, one in seen["classes"].items():
            prefix = f"{name}: " if len(seen["classes"]) > 1 else ""
            figures |= {f"{prefix}{part}, ms": one[part] for part in ("p50", "p99", "max") if one["requests"]}
        figures["requests/s"] = seen["throughput"]
        if self.program.cpu_threads:
            (begun, before), (ended, after) = marks
            figures["CPU share"] = (after - before) / (ended - begun)
        figures |= {name: seen[name] for name in ("errors", "unanswered", "queued") if seen.get(name)}
        return {**figures, **machine}

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


def record(name: str, options: argparse.Namespace) -> str:
    """What `fairlead record` and `fairlead report` say of the program under its load."""
    fairlead = str(Path(sys.executable).with_name("fairlead"))
    with tempfile.TemporaryDirectory(prefix="fairlead-example-") as directory:
        recording = Path(directory) / f"{name}.flrec"
        way = Way((fairlead, "record", "-o", str(recording), "--"))
        example = Example(name, {"recorded": way}, options)
        example.steps = steps_per_ms()
        sample = OneRun(example, way, Path(directory), seed=options.seed)
        with sample.companions(), sample.started() as process:
            sample.figures(process)
            end(process)
        recordings = sorted(Path(directory).glob("*.flrec*"))  # one of each process
        shown = subprocess.run([fairlead, "report", *recordings], capture_output=True, text=True, check=True)
        return shown.stdout


def end(process: subprocess.Popen[str]) -> None:
    """As a terminal does; a Jupyter kernel takes Ctrl-C for the end of a cell."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(timeout=START_S / 4)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=START_S)


def main() -> None:
    parser = arguments(__doc__ or "", rounds=3)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs of the catalogue (see --list)")
    parser.add_argument("--list", action="store_true", help="say which programs there are")
    parser.add_argument("--install", action="store_true", help="install the programs' packages, and end")
    parser.add_argument("--record", action="store_true", help="say what `fairlead record` finds instead")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in PROGRAMS]
    if options.list or unknown or not (options.names or options.install):
        for name, program in PROGRAMS.items():
            print(f"{name:<22} {program.title}")
        if not options.list:
            parser.error(
                f"no such program: {', '.join(unknown)}" if unknown else "name a program of this list"
            )
        return
    environment = Environment()
    names = options.names or list(PROGRAMS)
    talk_to_redis = [name for name in names if PROGRAMS[name].redis]
    if talk_to_redis and not options.install and shutil.which("redis-server") is None:
        raise SystemExit(f"{' and '.join(talk_to_redis)}: redis-server is missing: apt install redis-server")
    for name in names:
        environment.install(PROGRAMS[name].packages)
    if options.install:
        return
    if options.quick:
        options.seconds = 0.5
    if options.record:
        for name in names:
            print(record(name, options))
        return
    # A server's workers outlive it and become our children: else what they used would count as other load.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    modes = {**ways(), "2 workers": Way(settings={"workers": 2})}
    rows = [Example(name, modes, options).row() for name in names]
    packages = dict.fromkeys(package for name in names for package in PROGRAMS[name].packages)
    versions = environment.versions(list(packages))
    run(
        "Do other people's programs stay quick beside a thread that computes?",
        rows,
        options,
        versions=versions,
    )
    print("\n" + ", ".join(f"{name} {version}" for name, version in versions.items()))


if __name__ == "__main__":
    main()
