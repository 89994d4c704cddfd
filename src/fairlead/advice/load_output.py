"""What a load generator printed, read: latency, rate and failed requests.

Understood are a line of JSON with ``p99_ms`` or ``p99_s``, ``requests_per_s`` and ``errors`` (each optional),
and the summaries of wrk, wrk2 and hey. Of anything else, how long the load took is all that is known.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "secs": 1.0, "m": 60.0}
_P99 = re.compile(r"^\s*99(?:\.0+)?%(?:\s+in)?\s+([0-9.]+)\s*(us|ms|secs|s|m)\b", re.MULTILINE)
_RATE = re.compile(r"^\s*Requests/sec:\s+([0-9.]+)", re.MULTILINE)
_ERRORS = re.compile(r"Non-2xx or 3xx responses:\s+(\d+)|Socket errors:([^\n]*)")


@dataclass(frozen=True, slots=True)
class Loaded:
    """None: it was not printed."""

    p99_s: float | None
    rate: float | None
    errors: int


def read(text: str) -> Loaded:
    """The last line of JSON, or else a summary that is known."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                return _of_json(found)
    p99, rate = _P99.search(text), _RATE.search(text)
    errors = 0
    for match in _ERRORS.finditer(text):
        errors += sum(map(int, re.findall(r"\d+", match[1] or match[2])))
    return Loaded(
        float(p99[1]) * _SECONDS[p99[2]] if p99 else None, _positive(float(rate[1])) if rate else None, errors
    )


def _of_json(found: dict[str, object]) -> Loaded:
    p99 = _number(found.get("p99_s"))
    if p99 is None and (in_ms := _number(found.get("p99_ms"))) is not None:
        p99 = in_ms / 1e3
    errors = found.get("errors")
    return Loaded(
        p99, _number(found.get("requests_per_s")), errors if isinstance(errors, int) and errors > 0 else 0
    )


def _number(thing: object) -> float | None:
    return _positive(float(thing)) if isinstance(thing, int | float) and not isinstance(thing, bool) else None


def _positive(number: float) -> float | None:
    return number if number > 0 and math.isfinite(number) else None
