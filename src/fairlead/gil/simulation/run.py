"""The front of the simulator: settings in, a frozen record out."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from fairlead import _native
from fairlead.errors import SimulationError, UsageError
from fairlead.gil.simulation.program import Compiled, Program
from fairlead.gil.simulation.result import (
    CLASSES,
    Events,
    Names,
    Simulation,
    Threads,
    group_statistics,
)

SimulatedPolicy = Literal["old", "stock", "interactive", "early", "queued", "patient"]
POLICIES: tuple[SimulatedPolicy, ...] = get_args(SimulatedPolicy)
SHARE_ONE = 1024
_GIL = {"old": 0, "stock": 1, "interactive": 2, "early": 1, "queued": 1, "patient": 1}
_QUEUED = ("queued", "patient")
_RETURN_DIVISOR = {"early": 50, "patient": 50}
_RUN_FOREVER = 2**62
_STATUS = ("running", "finished", "time-up", "deadlock", "lost", "two", "stalled", "no-time", "no-thread")
_BROKEN = {
    "lost": "a thread that wants the GIL sleeps for ever",
    "two": "two threads held the GIL at once",
    "stalled": "the GIL was free and wanted for longer than the policy allows",
}
_FAULTY = {
    "deadlock": "the program's threads wait for each other for ever; look at its semaphores",
    "no-time": "the program loops without using time; put a Run into the loop",
    "no-thread": "the program starts more threads than a group has; raise the group's number of threads",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """The simulated operating system; the defaults are a Linux server as measured from Python.
    Nanoseconds."""

    run_queue: Literal["fair", "fifo"] = "fair"
    """Threads that wait for a core: by run time used, or first-in first-out (SCHED_RR)."""
    preempt: bool = True
    """A woken thread takes the core of one that is further ahead (fair only)."""
    slice_ns: int = 3_000_000
    granularity_ns: int = 500_000
    """Preempt only a thread that is ahead by more than this."""
    credit_ns: int = 0
    """A thread that wakes is put at most this far ahead of the others (fair only): half a slice makes it
    CFS, 0 the earliest-deadline scheduler of Linux 6.6 and later, which gives sleepers none."""
    switch_ns: int = 1_500
    """What a core needs to change threads."""
    resume_ns: int = 3_000
    """What a sleep costs the sleeper: the way into the kernel, and out again."""
    wake_ns: int = 3_000
    """From a wake-up to the woken being runnable; up to ``wake_jitter_ns`` more."""
    wake_jitter_ns: int = 3_000
    idle_exit_ns: int = 30_000
    """A core that has been idle for ``idle_after_ns`` needs this much longer."""
    idle_after_ns: int = 100_000
    call_ns: int = 1_500
    """What waking another costs."""
    slack_ns: int = 50_000
    """Timers fire this late. 0: ``Yield`` is a ``sched_yield()``, which sleeps not at all."""


IDEAL = Kernel(
    run_queue="fifo",
    preempt=False,
    slice_ns=1_000_000_000,
    granularity_ns=0,
    credit_ns=0,
    switch_ns=0,
    resume_ns=0,
    wake_ns=0,
    wake_jitter_ns=0,
    idle_exit_ns=0,
    idle_after_ns=0,
    call_ns=0,
    slack_ns=0,
)
"""A kernel that costs nothing and runs threads in the order in which they became runnable."""


def simulate(
    program: Program,
    *,
    policy: SimulatedPolicy = "interactive",
    cores: int = 2,
    seed: int = 0,
    cpu_share: float = 0.05,
    interval_seconds: float = 0.005,
    until_seconds: float | None = None,
    events: int = 0,
    kernel: Kernel | None = None,
    constants: Mapping[str, int] | None = None,
    take_ns: int = 150,
    check_ns: int = 1_000,
    lost_wakes: int = 0,
) -> Simulation:
    """Run a program on simulated cores under a GIL, and say which thread ran when.

    Deterministic: the same arguments give the same run to the nanosecond.

    Args:
        program: what the threads do.
        policy: "old" (CPython to 3.1: every 100 ticks), "stock" (CPython since 3.2: the switch interval),
            this package's scheduler, "interactive", run by the code that schedules a real interpreter, or
            stock with one of the changes that upstream/ proposes: "early" (A: a thread that dropped the GIL
            of its own accord asks after a fiftieth of the interval), "queued" (B: a queue of waiters, with
            hand-over on request) and "patient" (both).
        cores: 1 to 1024.
        seed: of the kernel's jitter and of the programs'.
        cpu_share: the least share of the GIL that computing threads keep ("interactive"), .01 to .95.
        interval_seconds: the switch interval; for "old" the time of 100 ticks.
        until_seconds: stop then. None: run until every thread that is not a daemon has ended.
        events: record the first so many events, 24 bytes each.
        kernel: the simulated operating system, see ``Kernel``; None for its defaults.
        constants: other values for constants of the scheduling policy; names as in ``policy_constants()``.
        take_ns: what taking the GIL costs.
        check_ns: bytecode looks for drop requests at least this often.
        lost_wakes: fault injection: so many in a million wake-ups of a thread that was granted the GIL never
            arrive.

    Raises:
        UsageError: the program cannot run, deadlocks, loops without using time, or an argument is out of
            range.
        SimulationError: the run broke a promise (lost wake-up, two holders, a free GIL that is never taken).
            The message has the command that repeats it.
    """
    if until_seconds is not None and not 0 < until_seconds < _RUN_FOREVER / 1e9:
        raise UsageError(f"until_seconds is a time after the start, not {until_seconds}")
    kernel = kernel if kernel is not None else Kernel()
    arguments = {
        "policy": policy,
        "cores": cores,
        "seed": seed,
        "cpu_share": cpu_share,
        "interval_seconds": interval_seconds,
        "until_seconds": until_seconds,
        "events": events,
        "constants": dict(constants or {}),
        "take_ns": take_ns,
        "check_ns": check_ns,
        "lost_wakes": lost_wakes,
    }
    spec = json.dumps({"program": program.as_data(), "kernel": dataclasses.asdict(kernel), **arguments})
    compiled = Compiled(program)
    until = _RUN_FOREVER if until_seconds is None else round(until_seconds * 1e9)
    try:
        code, totals, threads, requests, log = _native.simulate(
            _settings(kernel, arguments),
            compiled.ops,
            compiled.groups,
            compiled.counters,
            compiled.semaphores,
            until,
        )
    except (ValueError, OverflowError) as error:
        raise UsageError(f"this cannot be simulated: {error}") from error
    status = _STATUS[code]
    if status in _BROKEN:
        raise SimulationError(
            f"{_BROKEN[status]}; repeat with: python -m fairlead.gil.simulation {shlex.quote(spec)}"
        )
    if status in _FAULTY:
        raise UsageError(_FAULTY[status])
    names = Names(tuple((name, group.threads) for name, group in program.groups.items()))
    return Simulation(
        status="finished" if status == "finished" else "time-up",
        elapsed_seconds=totals["elapsed_ns"] / 1e9,
        passes=totals["passes"],
        switches=totals["switches"],
        context_switches=totals["context_switches"],
        wakeups=totals["wakeups"],
        requests_sent=totals["asked"],
        forced_drops=totals["forced"],
        direct_handovers=totals["direct_handovers"],
        dropped_unclaimed=totals["dropped_unclaimed"],
        woken_early=totals["woken_early"],
        steps=totals["steps"],
        free_wanted_seconds=totals["free_wanted_ns"] / 1e9,
        max_wait_seconds=dict(
            zip(
                CLASSES,
                (ns / 1e9 for ns in totals["max_wait_ns"]),
                strict=True,
            )
        ),
        watchdog_tripped=totals["tripped"],
        threads=Threads(threads, names),
        groups=group_statistics(names, threads, requests),
        events=Events(log, names),
        events_dropped=totals["logged"] - len(log) // 24 if events else 0,
        spec=spec,
    )


def replay(spec: str) -> Simulation:
    """The run that a ``Simulation.spec`` describes, again. Raises UsageError for anything else."""
    try:
        data = json.loads(spec)
        program = Program.from_data(data.pop("program"))
        kernel = Kernel(**data.pop("kernel"))
        return simulate(program, kernel=kernel, **data)
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"not a simulation's spec: {error!r}") from error


def policy_constants() -> dict[str, int]:
    """The scheduling policy's constants by name, with their defaults (ns, where the name says so)."""
    return _native.policy_constants()


def _settings(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, int]:
    policy, share = arguments["policy"], arguments["cpu_share"]
    if policy not in POLICIES:
        raise UsageError(f"no policy {policy!r}; it is one of {', '.join(POLICIES)}")
    if not 0.01 <= share <= 0.95:
        raise UsageError(f"cpu_share is from .01 to .95, not {share}")
    constants = policy_constants()
    for name, value in arguments["constants"].items():
        if name not in constants:
            raise UsageError(f"no constant {name!r}; see fairlead.gil.simulation.policy_constants()")
        constants[name] = value
    settings = {
        **constants,
        **{name: value for name, value in dataclasses.asdict(kernel).items() if name.endswith("_ns")},
        "fair": int(kernel.run_queue == "fair"),
        "preempt": int(kernel.preempt),
        "gil": _GIL[policy],
        "mode": int(policy == "interactive"),
        "queued": int(policy in _QUEUED),
        "return_divisor": _RETURN_DIVISOR.get(policy, 1),
        "share": round(share * SHARE_ONE),
        "interval_ns": round(arguments["interval_seconds"] * 1e9),
        "log_limit": arguments["events"],
    }
    return settings | {
        name: arguments[name] for name in ("seed", "cores", "take_ns", "check_ns", "lost_wakes")
    }
