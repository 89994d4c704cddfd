"""One measured sample, as it stands in a results file: one JSON object on one line.

A line is complete in itself, so that a file can be read by anyone, cut anywhere
and concatenated with another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

SCHEMA = 1
"""Version of the line format. A reader refuses a line with a higher one."""

Status = Literal["ok", "timeout", "crashed", "garbage", "failed", "skipped"]
"""ok: measured. timeout: killed after its time. crashed: ended by a signal or a non-zero exit.
garbage: ended well, but printed no result. failed: the experiment itself said that it failed.
skipped: not run, because this interpreter or machine cannot; ``reason`` says why."""

STATUSES: tuple[Status, ...] = get_args(Status)


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
    """machine, kernel, cores, affinity, quota, scheduling policy, load, yield probe, version of fairlead"""
    status: Status
    reason: str | None = None
    """Why it is not "ok", in one line that ends with what to do."""
    started: str | None = None
    """When the sample began, UTC, ISO 8601."""
    round: int = 0
    """Which pass over the interleaved plan the sample belongs to."""
    attempt: int = 0
    """How many noisy attempts at this sample were thrown back before this one."""
    wall_s: float | None = None
    """Wall time of the measured region, by the probe's own clock."""
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
    """Share (0..1) of all cores' time that processes other than the session took while the sample ran."""
    details: dict[str, Any] = field(default_factory=dict)
    """What else the probe printed: counts, answers, checks."""
