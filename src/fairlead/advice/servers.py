"""A whole server under load, stock and scheduled, with other thread counts and worker processes.

One round starts every setup that is still in the running once, each with a new server, waits until it takes
a connection, runs the load against it, and ends it. After each round the worse half is given up, never the
first, which is how the server is run now. The choice is by expected loss (``loss``), as that among pools is.
"""

from __future__ import annotations

import itertools
import os
import shlex
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median

from fairlead import machine
from fairlead.advice import load_output
from fairlead.advice.loss import error, expected_loss, gain, versus
from fairlead.errors import NOTE, AdviceError, UsageError
from fairlead.lab.isolation import other_load, subprocess_runner
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run.environment import environment
from fairlead.lab.run.runner import RunProgress
from fairlead.measure.ratio import FEWEST_ROUNDS
from fairlead.record.server_advice import Goal, ServerAdvice, ServerCandidate, Setup

START_LIMIT_S = 30.0
"""For the server to take a connection."""
POLL_S = 0.02
LOAD_LIMIT_S = 3600.0
MOST_ROUNDS = 10
SETTLED = 0.005
"""An expected loss below this needs no further round."""
AFFORDABLE = 0.05
"""The expected loss that a cheaper setup may have."""
UNKNOWN = 0.1
"""The standard error that a choice is made with where too few rounds tell it."""
WORTH = 1.15
"""The least gain that is worth a change."""
KEPT_RATE = 0.95
"""A setup that serves less than this share of the first one's requests is not chosen for its latency."""


@dataclass(frozen=True, slots=True)
class Service:
    """A server and its load, as commands with {port}, {threads} and {workers} in them."""

    server: str
    load: str
    threads: Sequence[int] = ()
    workers: Sequence[int] = ()
    port: int | None = None
    """Where the server listens, if its command has no {port}."""
    goal: Goal | None = None
    """None: the p99 latency if the load prints it, else its rate, else its time."""

    def setups(self) -> list[Setup]:
        """The first is how the server is run now: stock, with the first of the counts.

        Raises:
            UsageError: counts have no place in the command, or a place has no counts, or no port is known.
        """
        for name, counts in (("threads", self.threads), ("workers", self.workers)):
            if bool(counts) != (f"{{{name}}}" in self.server):
                raise UsageError(
                    f"--{name} goes with {{{name}}} in the server's command: each needs the other"
                )
            if any(count < 1 for count in counts):
                raise UsageError(f"--{name} must be at least 1")
        if ("{port}" in self.server) == (self.port is not None):
            raise UsageError("say where the server listens: {port} in its command, or --port NUMBER")
        places = itertools.product(self.workers or (None,), self.threads or (None,), (False, True))
        return [Setup(scheduled, threads, workers) for workers, threads, scheduled in places]

    def command(self, setup: Setup, port: int | str) -> list[str]:
        """The server's, with everything filled in."""
        words = [_filled(word, setup, port) for word in shlex.split(self.server)]
        if not words:
            raise UsageError("--server names no command")
        return ["fairlead", "run", "--children", "--", *words] if setup.scheduled else words


@dataclass
class _Standing:
    setup: Setup
    reason: str | None = None
    costs: dict[int, float] = field(default_factory=dict)
    """By round."""
    loads: list[load_output.Loaded] = field(default_factory=list)
    loads_s: list[float] = field(default_factory=list)
    starts_s: list[float] = field(default_factory=list)
    memory_kib: list[float] = field(default_factory=list)

    @property
    def cost(self) -> float:
        return median(self.costs.values())

    @property
    def rate(self) -> float | None:
        rates = [one.rate for one in self.loads if one.rate is not None]
        return median(rates) if rates else None

    @property
    def p99_s(self) -> float | None:
        latencies = [one.p99_s for one in self.loads if one.p99_s is not None]
        return median(latencies) if latencies else None


class Servers:
    """One measuring of a service.

    Raises:
        UsageError: the budget is none, or the commands do not fit the counts.
    """

    def __init__(
        self, service: Service, budget_s: float, report: Callable[[RunProgress], None] | None = None
    ) -> None:
        if not 1.0 <= budget_s < float("inf"):
            raise UsageError(f"the budget must be at least 1 s, not {budget_s:g}")
        self._service = service
        self._budget_s = budget_s
        self._report = report
        self._mark = f"{os.getpid()}-{uuid.uuid4().hex}"
        self._standings = [_Standing(setup) for setup in service.setups()]
        self._foreign: list[float] = []
        self._done = 0
        self._goal: Goal | None = service.goal

    def run(self) -> ServerAdvice:
        """Measure, and say which.

        Raises:
            AdviceError: the server as it is run now does not start, its load fails, or takes too long.
            RunInterruptedError: it was stopped from outside; nothing of the server is left.
        """
        self._begin = time.monotonic()
        meter = other_load.Meter()
        running = list(self._standings)
        with Stop() as stop:
            for number in range(1, MOST_ROUNDS + 1):
                for one in running if number % 2 else running[::-1]:
                    if number > 1 and self._used() + _takes(one) > self._budget_s:
                        continue
                    self._tell(one, number)
                    meter.begin()
                    self._measure(one, number, stop)
                    foreign = meter.end()
                    self._foreign += [] if foreign is None else [foreign]
                    if one is self._standings[0]:
                        self._first(one, number)
                running = self._survivors(number)
                if self._used() + min(map(_takes, running)) > self._budget_s or self._settled(running):
                    break
        return self._advice()

    def _first(self, one: _Standing, number: int) -> None:
        if one.reason is not None:
            raise AdviceError(f"{self._service.server}: {one.reason}")
        needed = _takes(one) * len(self._standings)
        if number == 1 and needed > 2 * self._budget_s:
            raise AdviceError(
                f"one load takes {_takes(one):.1f} s, and {len(self._standings)} setups some {needed:.0f} s: "
                "give a --budget of that, a shorter load, or fewer counts"
            )

    def _measure(self, one: _Standing, number: int, stop: Stop) -> None:
        port = self._service.port or _free_port()
        with tempfile.TemporaryFile() as said:
            command = self._service.command(one.setup, port)
            if one.setup.scheduled:
                command[:1] = [sys.executable, "-m", "fairlead"]
            try:
                with subprocess_runner.background(command, mark=self._mark, output=said.fileno()) as process:
                    begin = time.monotonic()
                    if not _takes_connections(port, process.poll, stop):
                        stop.check("stopped: nothing is left of the server")
                        ended = process.poll()
                        how = "takes no connection" if ended is None else f"ended with status {ended}"
                        said.seek(0)
                        one.reason = f"the server {how}{_last_line(said.read())}"
                        return
                    one.starts_s.append(time.monotonic() - begin)
                    self._load(one, number, port, stop)
                    memory = subprocess_runner.memory_kib(self._mark)
                    one.memory_kib += [] if memory is None else [memory]
            except OSError as error:
                one.reason = f"the server cannot be started: {error.strerror or error}"

    def _load(self, one: _Standing, number: int, port: int, stop: Stop) -> None:
        argv = [_filled(word, one.setup, port) for word in shlex.split(self._service.load)]
        mark = f"load-{self._mark}"
        try:
            outcome = subprocess_runner.run(
                argv, env=dict(os.environ), timeout_s=LOAD_LIMIT_S, mark=mark, stop=stop
            )
        except (OSError, IndexError) as error:
            raise AdviceError(f"the load {self._service.load!r} cannot be started: {error}") from error
        stop.check("stopped: nothing is left of the server")
        if outcome.returncode != 0:
            one.reason = f"its load ended with status {outcome.returncode}{_last_line(outcome.stderr)}"
            return
        found = load_output.read(outcome.stdout.decode(errors="replace"))
        if self._goal is None:
            self._goal = "p99" if found.p99_s is not None else "rate" if found.rate is not None else "time"
        if found.errors:
            one.reason = f"{found.errors} {'request' if found.errors == 1 else 'requests'} failed"
            return
        costs = {
            "p99": found.p99_s,
            "rate": None if found.rate is None else 1 / found.rate,
            "time": outcome.elapsed_s,
        }
        cost = costs[self._goal]
        if cost is None:
            raise AdviceError(
                f"the load prints no {'p99 latency' if self._goal == 'p99' else 'requests/s'}: see the "
                "reference for what is understood, or choose another --goal"
            )
        one.costs[number] = cost
        one.loads.append(found)
        one.loads_s.append(outcome.elapsed_s)

    def _survivors(self, number: int) -> list[_Standing]:
        first, *others = self._standings
        ranked = sorted((one for one in others if one.reason is None and number in one.costs), key=_cost)
        return [first, *ranked[: max(2, -(-len(ranked) // 2))]]

    def _settled(self, running: Sequence[_Standing]) -> bool:
        if len(running) == 1:
            return True
        if any(len(one.costs) < FEWEST_ROUNDS for one in running):
            return False
        best, *others = sorted(running, key=_cost)
        return max(self._loss(best, one) for one in others) < SETTLED

    def _used(self) -> float:
        return time.monotonic() - self._begin

    def _tell(self, one: _Standing, number: int) -> None:
        if self._report is not None:
            left = max(0.0, self._budget_s - self._used())
            doing = f"round {number}: {one.setup.name}"
            self._report(
                RunProgress(
                    doing=doing, round=number, done=self._done, to_come=0,
                    used_s=self._budget_s - left, left_s=left,
                )
            )  # fmt: skip
        self._done += 1

    # the choice

    def _advice(self) -> ServerAdvice:
        assert self._goal is not None
        first = self._standings[0]
        usable = [one for one in self._standings if one.reason is None and one.costs]
        if self._goal == "p99" and first.rate is not None:
            least = first.rate * KEPT_RATE
            usable = [one for one in usable if one.rate is None or one.rate >= least]
        fastest = min(usable, key=_cost)
        # setups stand in the order of what they cost: fewer workers, fewer threads, stock before scheduled
        chosen = next(one for one in usable if one is fastest or self._loss(one, fastest) <= AFFORDABLE)
        if first.cost / chosen.cost < WORTH:
            chosen = first
        return ServerAdvice(
            server=self._service.server,
            load=self._service.load,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            cores=machine.cores().usable,
            environment=environment(),
            goal=self._goal,
            budget_s=self._budget_s,
            used_s=self._used(),
            foreign=median(self._foreign) if self._foreign else None,
            choice=self._standings.index(chosen),
            loss=self._expected(chosen, [one for one in usable if one is not chosen]),
            command=shlex.join(self._service.command(chosen.setup, self._service.port or "{port}")),
            candidates=tuple(self._candidate(one) for one in self._standings),
            reasons=tuple(self._reasons(first, chosen, usable)),
        )

    def _loss(self, one: _Standing, other: _Standing) -> float:
        off = error(one.costs, other.costs, self._standings[0].costs)
        return expected_loss(one.cost / other.cost, UNKNOWN if off is None else off)

    def _expected(self, chosen: _Standing, others: Sequence[_Standing]) -> float | None:
        """What the choice is expected to cost; None where one or two rounds do not tell."""
        if others and min(len(chosen.costs), len(self._standings[0].costs)) < FEWEST_ROUNDS:
            return None
        return max((self._loss(chosen, one) for one in others), default=0.0)

    def _candidate(self, one: _Standing) -> ServerCandidate:
        if not one.costs:
            reason = one.reason or "not measured within the budget"
            return ServerCandidate(setup=one.setup, status="failed", reason=reason)
        first = self._standings[0]
        ratio = versus(first.costs, one.costs)
        gained = gain(first.costs, one.costs)
        alone = one is first
        return ServerCandidate(
            setup=one.setup,
            status="measured" if one.reason is None else "failed",
            reason=one.reason,
            rounds=tuple(sorted(one.costs.items())),
            p99_s=one.p99_s,
            rate=one.rate,
            load_s=median(one.loads_s),
            start_s=median(one.starts_s),
            memory_kib=median(one.memory_kib) if one.memory_kib else None,
            gain=gained,
            low=1.0 if alone else min(ratio.low, gained) if ratio else None,
            high=1.0 if alone else max(ratio.high, gained) if ratio else None,
        )

    def _reasons(self, first: _Standing, chosen: _Standing, usable: Sequence[_Standing]) -> Iterator[str]:
        if chosen is first:
            yield f"no other setup is expected to gain {(WORTH - 1) * 100:.0f} % or more"
        elif chosen.memory_kib and first.memory_kib:
            more = (median(chosen.memory_kib) - median(first.memory_kib)) / 1024
            if abs(more) >= 1:
                yield f"it takes {abs(more):.0f} MB {'more' if more > 0 else 'less'}"
        slower = [one for one in self._standings if one.reason is None and one.costs and one not in usable]
        for one in slower:
            yield f"{one.setup.name} serves fewer requests: it is not chosen for its latency"
        if self._goal == "rate":
            yield "the load prints no p99 latency, or --goal says rate: only throughput was compared"


def _cost(one: _Standing) -> float:
    return one.cost


def _takes(one: _Standing) -> float:
    """Seconds of one more measurement of it."""
    return median(one.loads_s or [0.0]) + median(one.starts_s or [0.0])


def _filled(word: str, setup: Setup, port: int | str) -> str:
    for name, value in (("port", port), ("threads", setup.threads), ("workers", setup.workers)):
        if value is not None:
            word = word.replace(f"{{{name}}}", str(value))
    return word


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number: int = listener.getsockname()[1]
        return number


def _takes_connections(port: int, ended: Callable[[], int | None], stop: Stop) -> bool:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and ended() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except OSError:
            if stop.wait(POLL_S):
                return False
        else:
            return True
    return False


def _last_line(said: bytes) -> str:
    lines = [line.strip() for line in said.decode(errors="replace").splitlines()]
    told = [line for line in lines if line and not line.startswith(NOTE)]
    return f": {told[-1][:200]}" if told else ""
