"""The GIL of an interpreter: who holds it, who waits, who blocked whom; and the GIL in simulation."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import fairlead.gil.observe  # noqa: F401 - the package first, so that the function of its name stands before it

if TYPE_CHECKING:
    from fairlead.gil.observe.observation import BlameMatrix as BlameMatrix
    from fairlead.gil.observe.observation import Observation as Observation
    from fairlead.gil.observe.recorder import Recorder as Recorder
    from fairlead.gil.simulation import simulate as simulate


def observe(*, wait_threshold: float | None = 0.001) -> Observation:
    """Observe the GIL of this process: who holds it, who waits for it, who makes whom wait.

    >>> with fairlead.gil.observe() as seen:
    ...     serve(requests)
    >>> seen.threads[0].waited_seconds, seen.blame["io", "worker"], seen.findings

    Needs no rights and no restart, and begins at any moment. An uncontended release and retake of the GIL
    costs about 30 ns more meanwhile. Observations may overlap and be nested, eight at a time. A forked
    child of an observed process is observed afresh: its counts begin at the fork.

    Args:
        wait_threshold: seconds. Of waits at least this long the Python stack of the waiter is taken, and
            that of the thread that made it wait; None: of none.

    Raises:
        UsageError: the threshold is not a time.
        UnsupportedInterpreter: on ``start()`` or entry, when this interpreter's GIL cannot be observed:
            it is not CPython 3.11 to 3.15, or free-threaded, or not on Linux with glibc (x86-64, AArch64),
            or made in a way that fairlead does not know. Nothing has been changed then.
    """
    from fairlead.gil.observe.observation import Observation

    return Observation(wait_threshold)


def record(
    path: str | PathLike[str],
    *,
    wait_threshold: float | None = 0.001,
    events: bool = True,
    counters_interval: float = 1.0,
) -> Recorder:
    """Record what happens to the GIL of this process; ``fairlead report`` reads the file.

    >>> with fairlead.gil.record("app.flrec"):
    ...     serve(requests)

    Memory is bounded: events that come faster than they can be written are counted, and the file says how
    many are missing, and between which times.

    Args:
        path: the file; an existing one is replaced.
        wait_threshold: seconds; of waits at least this long the stacks are recorded, None: of none.
        events: record every single take and drop; False: only the counters.
        counters_interval: seconds between two snapshots of the counters in the file.

    Raises:
        UsageError: the threshold or the interval is not a time.
        UnsupportedInterpreter, OutputError: on ``start()`` or entry; see there.
    """
    from fairlead.gil.observe.recorder import Recorder

    return Recorder(path, wait_threshold, events, counters_interval)


def counters() -> dict[str, float]:
    """Everything that observations of this process have counted, summed over all threads and GILs.

    Made for Prometheus and OpenTelemetry: names end in ``_total``, times are seconds, and no value ever
    falls, whatever threads and interpreters end and whatever observations begin and end. A forked child
    begins at zero. Counting goes on only while something observes, so a service keeps one observation for
    its whole life: ``fairlead.gil.observe().start()``.

        fairlead_gil_observed_seconds_total          time under observation: what to divide by
        fairlead_gil_acquisitions_total              the GIL was taken
        fairlead_gil_contended_acquisitions_total    ... and had to be waited for
        fairlead_gil_held_seconds_total              at most the observed time, for each GIL
        fairlead_gil_held_off_cpu_seconds_total      part of it: the kernel had taken the core away
        fairlead_gil_waited_seconds_total            summed over threads
        fairlead_gil_overrun_seconds_total           held on to after a request to drop
        fairlead_gil_forced_drops_total              drops after a request
        fairlead_gil_voluntary_drops_total           all others
        fairlead_gil_drop_requests_total             requests to drop
        fairlead_gil_handoffs_total                  it went straight to a thread that was waiting for it

    Raises:
        UnsupportedInterpreter: this interpreter's GIL cannot be observed.
    """
    from fairlead.gil.observe.counters import totals

    return totals()


_LAZY = {
    "BlameMatrix": "fairlead.gil.observe.observation",
    "Observation": "fairlead.gil.observe.observation",
    "Recorder": "fairlead.gil.observe.recorder",
    "simulate": "fairlead.gil.simulation",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
