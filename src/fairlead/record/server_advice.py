"""What ``fairlead advise --server`` found: the pure data between the measuring and the reports.

Times are seconds, memory is KiB. ``None`` means "not measured", never zero.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

SCHEMA = 2

Goal = Literal["p99", "rate", "time"]
"""What is compared: the 99th percentile of the latency, requests a second, or how long the load took."""

GOALS: dict[Goal, str] = {"p99": "p99 latency", "rate": "requests/s", "time": "time of the load"}


@dataclass(frozen=True, slots=True)
class Setup:
    """One way of running the server; None: the command does not say."""

    scheduled: bool
    threads: int | None
    workers: int | None

    @property
    def name(self) -> str:
        """ "scheduled, 4 threads, 2 workers"."""
        parts = ["scheduled" if self.scheduled else "stock"]
        for count, what in ((self.threads, "thread"), (self.workers, "worker")):
            if count is not None:
                parts.append(f"{count} {what}{'' if count == 1 else 's'}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCandidate:
    """One way of running the server, and how it did."""

    setup: Setup
    status: Literal["measured", "failed"]
    reason: str | None = None
    """How it failed, in words."""
    rounds: tuple[tuple[int, float], ...] = ()
    """(number, cost) of each round, with a server of its own: seconds, or one over requests a second."""
    p99_s: float | None = None
    rate: float | None = None
    """Requests a second."""
    load_s: float | None = None
    """How long the load took."""
    start_s: float | None = None
    """Until the server took a connection."""
    memory_kib: float | None = None
    """Of all its processes together at the end of the load, shared pages counted once (Pss)."""
    gain: float | None = None
    """How many times as good as the first way: the median of the rounds. ``low`` and ``high`` bound it at
    95 %."""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAdvice:
    """All that was found out of one server."""

    server: str
    load: str
    made: str
    """When, ISO 8601."""
    cores: int
    environment: Mapping[str, Any]
    goal: Goal
    budget_s: float
    used_s: float
    foreign: float | None
    """The share of the cores that others took meanwhile, the load generator not counted."""
    choice: int
    """The place in ``candidates``; the first is how the server is run now."""
    loss: float | None
    """What taking the choice rather than the best of the others is expected to cost, as a share. None with
    fewer than three rounds: it is not known."""
    command: str
    """The choice as a command."""
    candidates: tuple[ServerCandidate, ...]
    reasons: tuple[str, ...]


def headline(advice: ServerAdvice) -> str:
    """ "scheduled, 4 threads: p99 latency 3.1 times lower (2.4 to 4.0)", or "Leave it as it is"."""
    chosen = advice.candidates[advice.choice]
    if advice.choice == 0 or chosen.gain is None:
        return f"Leave it as it is: {chosen.setup.name}"
    better = {
        "p99": "p99 latency {} times lower",
        "rate": "{} times the requests/s",
        "time": "the load ends {} times as soon",
    }[advice.goal]
    bounded = chosen.low is not None and chosen.high is not None
    bounds = f" ({_times(chosen.low)} to {_times(chosen.high)})" if bounded else ""
    return f"{chosen.setup.name}: {better.format(_times(chosen.gain))}{bounds}"


def _times(gain: float | None) -> str:
    assert gain is not None
    return f"{gain:.1f}" if gain < 99.95 else f"{gain:.0f}"


def dumps(advice: ServerAdvice) -> str:
    """As JSON; docs/reference/advice.md names every field."""
    return json.dumps({"schema": SCHEMA, **asdict(advice)}, indent=1, allow_nan=False) + "\n"
