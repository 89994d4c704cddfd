"""Both sides of scheduling in a third of a minute, in three ways in turns: a server beside a thread that
computes, and what such a thread computes beside one that makes short C calls."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from fairlead.errors import InterpreterFailedError
from fairlead.lab.catalogue import registry
from fairlead.lab.isolation import subprocess_runner
from fairlead.lab.isolation.other_load import Meter
from fairlead.lab.isolation.stop import Stop

SERVER, CALLS = "gil.open-loop", "gil.short-calls"
"""The experiments, of which each round takes a sample each way."""
REQUESTS_PER_S = 120
TIMEOUT_S = 20
SIZES: dict[str, dict[str, Any]] = {
    SERVER: {"n": 16, "beside": "threads", "per_s": REQUESTS_PER_S, "seconds": 1},
    CALLS: {"n": 1, "seconds": 0.2},
}
WAYS: dict[str, dict[str, Any]] = {
    "CPython as it is": {},
    "switch interval 0.5 ms": {"interval_ms": 0.5},
    "fairlead run": {"scheduler": "interactive"},
}

_Sample = dict[str, dict[str, float]]
"""Of each experiment, its metrics."""


@dataclass(frozen=True, slots=True)
class WayFigures:
    """What was measured of one way so far: medians of the rounds."""

    name: str
    median_s: float
    """Half of the short requests were answered within this."""
    p99_s: float
    """99 of 100 short ones were."""
    steps_per_s: float
    """Work of the computing thread beside the server."""
    calls_per_s: float
    """Short C calls of a thread beside one that computes."""
    steps_beside_calls_per_s: float
    """Work of that one."""
    rounds: int


@dataclass(frozen=True, slots=True)
class Demonstration:
    ways: tuple[WayFigures, ...]
    """Those that have been measured, in the order of ``WAYS``."""
    other_load: float | None
    """Share of the machine that other programs took meanwhile, on average; None: not known."""


def demonstrate(rounds: int, stop: Stop) -> Iterator[Demonstration]:
    """Measure each way once in each round; what is known after each sample.

    Raises:
        InterpreterFailedError: a program did not end well.
        RunInterruptedError: ``stop`` was set.
    """
    meter = Meter()
    samples: dict[str, list[_Sample]] = {name: [] for name in WAYS}
    foreign: list[float] = []
    for _ in range(rounds):
        for name, params in WAYS.items():
            meter.begin()
            both = {experiment: _sample(name, experiment, params, stop) for experiment in SIZES}
            samples[name].append(both)
            if (share := meter.end()) is not None:
                foreign.append(share)
            ways = tuple(_way(name, taken) for name, taken in samples.items() if taken)
            yield Demonstration(ways, fmean(foreign) if foreign else None)


def _sample(name: str, which: str, params: dict[str, Any], stop: Stop) -> dict[str, float]:
    asked = {**SIZES[which], "timeout_s": TIMEOUT_S, **params}
    experiment = registry.catalogue()[which]
    defaults = {key: parameter.default for key, parameter in experiment.parameters.items()}
    outcome = subprocess_runner.run(
        [sys.executable, str(experiment.path), json.dumps({**defaults, **asked})],
        env=subprocess_runner.clean_environment(free_threaded=False),
        timeout_s=TIMEOUT_S + 5,
        mark=secrets.token_hex(8),
        stop=stop,
    )
    stop.check("stopped")
    lines = outcome.stdout.decode(errors="replace").strip().splitlines()
    try:
        metrics: dict[str, float] = json.loads(lines[-1])["details"]["metrics"]
    except (IndexError, ValueError, KeyError):
        said = (outcome.stderr or outcome.stdout).decode(errors="replace").strip().splitlines()
        raise InterpreterFailedError(
            f"{which} of {name!r} ended without a result: {said[-1] if said else outcome.ended}"
        ) from None
    return metrics


def _way(name: str, samples: list[_Sample]) -> WayFigures:
    def middle(experiment: str, metric: str) -> float:
        return median(sample[experiment][metric] for sample in samples)

    return WayFigures(
        name,
        median_s=middle(SERVER, "short_s"),
        p99_s=middle(SERVER, "short_p99_s"),
        steps_per_s=middle(SERVER, "steps_per_s"),
        calls_per_s=middle(CALLS, "calls_per_s"),
        steps_beside_calls_per_s=middle(CALLS, "steps_per_s"),
        rounds=len(samples),
    )
