"""One measured sample, as it stands in a results file: one JSON object on one line.

A line is complete in itself, so that a file can be read by any program, cut anywhere
and concatenated with another. Keys that this version does not know are ignored: a later
version may add what an earlier one can do without, and raises ``SCHEMA`` when it may not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal, TypeGuard, get_args

from fairlead.errors import RecordError

SCHEMA = 2
"""Version of the line format. A reader refuses a line with a higher one, and converts a lower one: in
version 1 the time of some squares ended before their threads did, and ``details["tail_s"]`` held the rest."""

SampleStatus = Literal["ok", "timeout", "crashed", "garbage", "failed", "skipped"]
"""ok: measured. timeout: killed after its time. crashed: ended by a signal or a non-zero exit.
garbage: ended well, but printed no result. failed: the experiment itself said that it failed.
skipped: not run, because this interpreter or machine cannot; ``reason`` says why."""

STATUSES: tuple[SampleStatus, ...] = get_args(SampleStatus)

DISTURBED = 0.10
"""A sample is disturbed when others took more than this share of its time: nothing is settled by it."""

SHORTEST = 1e-12
LONGEST = 1e12
"""No measured time is shorter or longer than these many seconds; arithmetic on what lies between is safe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One run of one experiment with one set of parameters on one interpreter, in a session of its own.

    Times are seconds, memory is KiB. ``None`` means "not measured here", never zero.
    """

    experiment: str
    params: dict[str, Any]
    """All parameters that the probe was given, ``n`` (the size) among them."""
    interpreter: dict[str, Any]
    """``Interpreter.as_record()``: name, path, implementation, version, build, gil ..."""
    environment: dict[str, Any]
    """hostname, machine, kernel, cores, affinity, quota, policy, load, yield probe, fairlead's version ...
    Those that ``results.FINGERPRINT`` lists say where a sample may be compared with another."""
    status: SampleStatus
    reason: str | None = None
    """Why it is not "ok", in one line that ends with what to do."""
    started: str | None = None
    """When the sample began, UTC, ISO 8601."""
    run: str | None = None
    """The run that it belongs to, ``Plan.run``; None where that was not recorded."""
    round: int = 0
    """Which pass over the interleaved plan of its run the sample belongs to."""
    attempt: int = 0
    """How many disturbed attempts at this sample were rejected before this one."""
    elapsed_s: float | None = None
    """Wall time of the whole process, from its start to its end: what the sample cost the run."""
    wall_s: float | None = None
    """Wall time of the measured region, by the probe's own clock. Above zero when ``status`` is "ok"."""
    user_s: float | None = None
    """User CPU time of the measured region, children included."""
    sys_s: float | None = None
    """System CPU time of the measured region, children included."""
    cpu_percent: float | None = None
    """(user_s + sys_s) / wall_s * 100; 200 is two cores busy throughout."""
    max_rss_kb: int | None = None
    """Peak resident set of the largest process of the session."""
    sum_rss_kb: int | None = None
    """Sum of the peaks of all processes of the session; equals ``max_rss_kb`` when there is only one."""
    ctx_voluntary: int | None = None
    """Voluntary context switches in the measured region, children included."""
    ctx_involuntary: int | None = None
    """Involuntary context switches in the measured region, children included."""
    foreign_share: float | None = None
    """Share (0..1) of the time of all cores the run may use that other processes took while the sample ran,
    stolen time included; for samples under half a second, in the half second up to its end."""
    stolen_share: float | None = None
    """Of that, the share that the host of a virtual machine gave to other machines while the sample ran."""
    throttled_s: float | None = None
    """How long a CPU quota kept the sample from running."""
    spin_s: float | None = None
    """CPU time of a fixed piece of Python code, run by the lab just before: how fast the core was."""
    details: dict[str, Any] = field(default_factory=dict)
    """What else the probe printed: counts, answers, checks. ``metrics`` among them are its further figures, a
    number each."""

    def metric(self, name: str) -> float | None:
        """One of the further figures; None where the probe gave none of that name, or no finite number."""
        metrics = self.details.get("metrics")
        value = metrics.get(name) if isinstance(metrics, dict) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value) if abs(value) <= LONGEST else None

    @property
    def disturbed(self) -> float:
        """The share of its time that others took, as far as it is known: other processes, a host, or a quota,
        whichever took most."""
        throttled = (self.throttled_s or 0.0) / max(self.elapsed_s or self.wall_s or 0.0, SHORTEST)
        return max(self.foreign_share or 0.0, self.stolen_share or 0.0, min(1.0, throttled))

    def to_json(self) -> dict[str, Any]:
        """The sample as a JSON object, ``schema`` first.

        Raises:
            RecordError: it holds something that ``from_json`` would refuse, so that no line is
                written which cannot be read back; names the field.
        """
        data = {"schema": SCHEMA, **{name: getattr(self, name) for name in _FIELDS}}
        Sample.from_json(data)
        return data

    @classmethod
    def from_json(cls, data: object) -> Sample:
        """Check a JSON object field by field and make a sample of it. Unknown keys are ignored.

        Raises:
            RecordError: it is of a newer schema, or a field is missing, of the wrong type or out of
                range; names the field.
        """
        if not isinstance(data, dict):
            raise RecordError("not a JSON object")
        schema = data.get("schema")
        if not _is_whole(schema) or schema < 1:
            raise RecordError("schema is not a version number")
        if schema > SCHEMA:
            raise RecordError(
                f"schema {schema} is newer than this fairlead reads (up to {SCHEMA}); "
                "upgrade fairlead to read it"
            )
        known = {name: data[name] for name in _FIELDS if name in data}
        for name in _REQUIRED:
            if name not in known:
                raise RecordError(f"{name} is missing")
        for name, value in known.items():
            fault = _fault(name, value)
            if fault:
                raise RecordError(f"{name} {fault}")
        if known["status"] == "ok" and (known.get("wall_s") or 0) < SHORTEST:
            raise RecordError('wall_s of a sample whose status is "ok" is missing or too short to be a time')
        if "n" not in known["params"] and known["status"] != "skipped":
            raise RecordError("params holds no n")
        return cls(**(_until_joined(known) if schema < 2 else known))


def _until_joined(known: dict[str, Any]) -> dict[str, Any]:
    """Convert a line of version 1: the time until all threads were joined, and not the measured part alone.

    What the rest used of the processor was not recorded, so that there is no CPU time of the whole.
    """
    details, wall_s = known.get("details") or {}, known.get("wall_s")
    tail_s = details.get("tail_s")
    if wall_s is None or isinstance(tail_s, bool) or not isinstance(tail_s, int | float) or tail_s < 0:
        return known
    rest = {name: value for name, value in details.items() if name != "tail_s"}
    return known | {
        "details": rest | {"metrics": {"region_s": wall_s}},
        "wall_s": wall_s + tail_s,
        "user_s": None,
        "sys_s": None,
        "cpu_percent": None,
    }


def parse(text: str | bytes) -> Any:
    """Parse strict JSON: what Python's parser adds to the standard (NaN, Infinity) is refused.

    Raises:
        ValueError: it is not JSON, not UTF-8, or nested too deeply.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_FIELDS = tuple(f.name for f in fields(Sample))
_REQUIRED = ("experiment", "params", "interpreter", "environment", "status")
_OBJECTS = frozenset({"params", "interpreter", "environment", "details"})
_COUNTERS = frozenset({"round", "attempt"})
_COUNTS = frozenset({"max_rss_kb", "sum_rss_kb", "ctx_voluntary", "ctx_involuntary"})
_SHARES = frozenset({"foreign_share", "stolen_share"})
_MEASURES = _SHARES | {"elapsed_s", "wall_s", "user_s", "sys_s", "cpu_percent", "throttled_s", "spin_s"}


def _fault(name: str, value: Any) -> str | None:
    """What is wrong with the value of one field, as the rest of a sentence that begins with its name."""
    if name in _OBJECTS:
        if not isinstance(value, dict):
            return "is not an object"
        if name == "params" and "n" in value and not (_is_count(value["n"]) and value["n"] >= 1):
            return "holds an n that is not a whole number from 1"
        return _not_json(value)
    if name == "experiment":
        return None if isinstance(value, str) and value else "is not a name"
    if name == "status":
        return None if value in STATUSES else f"is not one of {', '.join(STATUSES)}"
    if name in _COUNTERS:
        return None if _is_count(value) else "is not a whole number from 0"
    if value is None:
        return None
    if name in ("reason", "run"):
        return None if isinstance(value, str) else "is not text"
    if name == "started":
        return None if _is_time(value) else "is not a time in ISO 8601"
    if name in _COUNTS:
        return None if _is_count(value) else "is not a whole number from 0"
    assert name in _MEASURES, name
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST:
        return "is not a finite number from 0"
    return "is not a share from 0 to 1" if name in _SHARES and value > 1 else None


def _not_json(value: object) -> str | None:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return "holds a number that is not finite"
    except TypeError as error:
        return f"cannot be written as JSON: {error}"
    except RecursionError:
        return "is nested too deeply"
    return None


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: object) -> TypeGuard[int]:
    return _is_whole(value) and 0 <= value < 2**63


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(datetime.fromisoformat(value))
    except ValueError:
        return False
