"""The convoy in a quarter of a minute: a server beside a thread that computes, in three ways in turns."""

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

EXPERIMENT = "gil.open-loop"
REQUESTS_PER_S = 120
SECONDS = 1
CONNECTIONS = 16
TIMEOUT_S = 20
WAYS: dict[str, dict[str, Any]] = {
    "CPython as it is": {},
    "sys.setswitchinterval(0.0005)": {"interval_ms": 0.5},
    "fairlead run": {"scheduler": "interactive"},
}


@dataclass(frozen=True, slots=True)
class WayFigures:
    """What was measured of one way so far: medians of the rounds."""

    name: str
    median_s: float
    """Half of the short requests were answered within this."""
    p99_s: float
    """99 of 100 short ones were."""
    steps_per_s: float
    """Work of the computing thread."""
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
        InterpreterFailedError: a server did not end well.
        RunInterruptedError: ``stop`` was set.
    """
    meter = Meter()
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    foreign: list[float] = []
    for _ in range(rounds):
        for name, params in WAYS.items():
            meter.begin()
            samples[name].append(_sample(name, params, stop))
            if (share := meter.end()) is not None:
                foreign.append(share)
            ways = tuple(_way(name, taken) for name, taken in samples.items() if taken)
            yield Demonstration(ways, fmean(foreign) if foreign else None)


def _sample(name: str, params: dict[str, Any], stop: Stop) -> dict[str, float]:
    asked = {
        "n": CONNECTIONS,
        "beside": "threads",
        "per_s": REQUESTS_PER_S,
        "seconds": SECONDS,
        "timeout_s": TIMEOUT_S,
        **params,
    }
    experiment = registry.catalogue()[EXPERIMENT]
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
            f"the server of {name!r} ended without a result: {said[-1] if said else outcome.ended}"
        ) from None
    return metrics


def _way(name: str, samples: list[dict[str, float]]) -> WayFigures:
    def middle(metric: str) -> float:
        return median(sample[metric] for sample in samples)

    return WayFigures(name, middle("short_s"), middle("short_p99_s"), middle("steps_per_s"), len(samples))
