"""The GIL of an interpreter: which thread holds it, which wait, which gets it next; and in simulation."""

from __future__ import annotations

# the packages first, so that the functions of their names stand before them
import fairlead.gil.endpoint
import fairlead.gil.observe
import fairlead.gil.schedule  # noqa: F401

TYPE_CHECKING = False  # not typing's, which takes longer to import than all of this
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from os import PathLike
    from typing import Any

    from fairlead.gil.endpoint.server import Server as Server
    from fairlead.gil.observe.loop_lag import LoopLag as LoopLag
    from fairlead.gil.observe.observation import BlameMatrix as BlameMatrix
    from fairlead.gil.observe.observation import Observation as Observation
    from fairlead.gil.observe.recorder import Recorder as Recorder
    from fairlead.gil.schedule.control import Policy
    from fairlead.gil.schedule.priority import Priority
    from fairlead.gil.schedule.state import Scheduler as Scheduler
    from fairlead.gil.simulation import simulate as simulate

__all__ = [
    "BlameMatrix",
    "LoopLag",
    "Observation",
    "Recorder",
    "Scheduler",
    "Server",
    "counters",
    "observe",
    "priority",
    "record",
    "schedule",
    "scheduler",
    "serve",
    "simulate",
    "watch_loop",
]


def observe(*, wait_threshold: float | None = 0.001) -> Observation:
    """Observe the GIL of this process: which thread holds it, which wait for it, and behind which.

    >>> with fairlead.gil.observe() as seen:
    ...     serve(requests)
    >>> seen.threads[0].waited_seconds, seen.blame["io", "worker"], seen.findings

    Needs no rights and no restart, and begins at any moment. An uncontended release and retake of the GIL
    costs about 30 ns more meanwhile. Observations may overlap and be nested, eight at a time. A forked
    child of an observed process is observed afresh: its counts begin at the fork.

    Args:
        wait_threshold: seconds. Of waits at least this long the Python stack of the waiter is taken, and
            that of the thread that made it wait; from 10 ms down also that of the waiter in some shorter
            ones, at most a hundred a second. None: of none.

    Raises:
        UsageError: the threshold is not a time.
        UnsupportedInterpreterError: on ``start()`` or entry, when this interpreter's GIL cannot be observed:
            it is not a CPython that fairlead knows, or free-threaded, or not on Linux with glibc (x86-64,
            AArch64), or made in a way that fairlead does not know. Nothing has been changed then.
    """
    from fairlead.gil.observe.observation import Observation

    return Observation(wait_threshold)


def watch_loop(*, interval: float = 0.05, threshold: float = 0.01) -> LoopLag:
    """Watch how late the callbacks of the running event loop are, and what makes them late.

    >>> async def main():
    ...     with fairlead.gil.watch_loop() as lag:
    ...         await serve()
    ...     print(lag)

    A callback is scheduled every `interval`, give or take half of it: so it is in step with nothing that
    the program does. The delay of one that is late is split, without a rest, into time in the loop's own
    callbacks (computing, or blocking; the line is named), time in which the loop's thread waited for the
    GIL (with the thread that held it), and time in which it was ready to run and had no core (other
    processes, a quota). Time without a core within a wait for the GIL counts as a wait for the GIL. For
    loops of asyncio and uvloop. Costs an observation of the GIL, a second thread, and about half a
    millisecond of CPU time every interval.

    Args:
        interval: seconds between two callbacks.
        threshold: seconds; later than this is late.

    Raises:
        UsageError: an argument is out of range; or, on entry, no event loop runs here.
        UnsupportedInterpreterError: on entry: this interpreter's GIL cannot be observed; see ``observe``.
    """
    from fairlead.gil.observe.loop_lag import LoopLag

    return LoopLag(interval, threshold)


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
        UnsupportedInterpreterError, OutputError: on ``start()`` or entry; see there.
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
        fairlead_gil_held_off_cpu_seconds_total      part of it: without a core
        fairlead_gil_held_asleep_seconds_total       part of that: asleep in C code, not preempted
        fairlead_gil_waited_seconds_total            summed over threads
        fairlead_gil_overrun_seconds_total           held on to after a request to drop
        fairlead_gil_forced_drops_total              drops after a request
        fairlead_gil_voluntary_drops_total           all others
        fairlead_gil_drop_requests_total             requests to drop
        fairlead_gil_handoffs_total                  it went straight to a thread that was waiting for it
        fairlead_gil_scheduled_seconds_total         time under another policy than "stock"
        fairlead_gil_watchdog_trips_total            the scheduler gave up
        fairlead_gil_scheduler_..._total             what ``scheduler()`` counts, under its names there
        fairlead_gil_canary_kept_total               with ``fairlead run --canary``: 1 after the policy won
        fairlead_gil_canary_rejected_total           ... or the interpreter's own scheduling

    Those of the scheduler are of the main interpreter's GIL, and count while that is scheduled.

    Raises:
        UnsupportedInterpreterError: this interpreter's GIL cannot be observed.
    """
    from fairlead.gil.observe.counters import totals

    return totals()


def serve(
    address: str = "127.0.0.1:9911",
    *,
    token: str | None = None,
    stalled_after: float = 10.0,
    busy_after: float | None = None,
) -> Server:
    """Answer HTTP about the GIL of this process, from a native thread that never takes it.

    So it answers while a C call keeps the GIL, and says which thread that is. ``/healthz`` answers 200 or
    503; ``/metrics`` is for Prometheus; ``/holder`` says which thread holds the GIL since when, with its
    Python stack; ``/threads`` what each thread has held and waited. The GIL is observed as long as it goes
    on. A forked child does not serve; it may call this itself, with another port.

    >>> fairlead.gil.serve("127.0.0.1:9911", stalled_after=30)

    Args:
        address: "HOST:PORT", "[HOST]:PORT" or "PORT", the host in digits; port 0: any, see ``Server.port``.
        token: every request needs ``Authorization: Bearer TOKEN``. An address that other machines can reach
            takes one. None: only requests for names need one, which is random: ``Server.token``. Without
            it ``/holder`` and ``/threads`` answer 401, and the other two name no thread.
        stalled_after: seconds. ``/healthz`` answers 503 when one thread has kept the GIL for so long without
            using a core, or threads have waited so long for a free one.
        busy_after: seconds; the same for a thread that uses a core. None: a thread may compute for ever.

    Raises:
        UsageError: an argument is off, or this process serves already.
        OutputError: the address cannot be listened at; the message says why.
        UnsupportedInterpreterError: this interpreter's GIL cannot be observed; see ``observe``.
    """
    from fairlead.gil.endpoint.server import Server

    return Server(address, token, stalled_after, busy_after)


def schedule(
    *, policy: Policy = "interactive", cpu_share: float = 0.05, timer_slack: float | None = None
) -> None:
    """Schedule the GIL of this process, from now on; again for another policy or share, at any time.

    An I/O thread beside a CPU-bound one no longer waits a switch interval (5 ms) per call, and threads that
    start or wake one after another no longer cost a round of all the running ones each. Opt-in, and for the
    whole process: interpreters with a GIL of their own are scheduled each by itself. Forked children inherit
    it. Once switched on, the hooks stay; "stock" gives the interpreter's own behaviour back.

    Args:
        policy: "interactive": the shorter the burst of work that a thread is expected to do, the sooner it
            gets the GIL; none waits for ever; computing threads keep a share. "stock": the interpreter's own.
        cpu_share: "interactive" only: the least share of the GIL that computing threads keep, .01 to .95, of
            the time in which they want it. What the others leave comes on top.
        timer_slack: seconds. How late the kernel may let timers be, to wake a core for several at once: those
            of the calling thread and of threads that it starts from now on. None leaves that as it is, on
            Linux 50 us. With 1 us, ``sleep(0)`` takes a quarter of its time, and a thread that polls so polls
            that much more often: compare only programs with the same.

    Raises:
        UsageError: an argument is out of range.
        UnsupportedInterpreterError: this interpreter's GIL cannot be scheduled; see ``observe``. Nothing
            has been changed then.
    """
    # the other parts now, and not as a thread asks for one while another thread forks
    from fairlead.gil.schedule import priority, state  # noqa: F401
    from fairlead.gil.schedule.control import switch

    switch(policy, cpu_share, timer_slack)


def scheduler() -> Scheduler:
    """The policy in force and what it has done, for the main interpreter's GIL.

    Raises:
        UnsupportedInterpreterError: this interpreter's GIL cannot be scheduled.
    """
    from fairlead.gil.schedule.state import state

    return state()


def priority(level: Priority) -> AbstractContextManager[None]:
    """Give the current thread a priority for the time of a ``with`` block, which may be nested.

    >>> with fairlead.gil.priority("background"):
    ...     rebuild_the_index()

    Means something only while the GIL is scheduled. On free-threaded builds, which have none, "background"
    sets the thread's nice value to 10 and takes it back, "io" sets it to -5, where the system allows that.

    Args:
        level: "io": always as if it came from a wait. "background": after all others, but not never.
            "normal": by what the thread does.

    Raises:
        UsageError: there is no such level (on entry).
    """
    from fairlead.gil.schedule.priority import prioritised

    return prioritised(level)


_LAZY = {
    "BlameMatrix": "fairlead.gil.observe.observation",
    "LoopLag": "fairlead.gil.observe.loop_lag",
    "Observation": "fairlead.gil.observe.observation",
    "Recorder": "fairlead.gil.observe.recorder",
    "Scheduler": "fairlead.gil.schedule.state",
    "Server": "fairlead.gil.endpoint.server",
    "simulate": "fairlead.gil.simulation",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
