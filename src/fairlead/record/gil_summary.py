"""What an observation of the GIL says: the pure data between ``fairlead.gil.observe``, its analysis, and
the reports.

``GilThread`` and ``Finding`` are also what ``seen.threads`` and ``seen.findings`` hold. Times are seconds,
and cumulative over the observation. ``None`` means "not measured", never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from fairlead.record.recording import Frames

HISTOGRAM_BUCKETS = 40
"""Bucket k counts durations of [2^k, 2^(k+1)) ns, bucket 0 also those under 1 ns, the last also all longer
ones (9 minutes on)."""

SERIALS_OF_A_PROCESS = 1 << 20
"""Between the numbers of two processes' threads in a summary: more than a process has in its life."""

FindingKind = Literal[
    "convoy", "thread-start", "import", "switch-interval", "long-hold", "destruction", "collection",
    "callback", "lock", "lock-square", "switch-storm", "starvation", "no-core", "saturation", "unexplained",
    "not-the-gil",
]  # fmt: skip
"""docs/explanation/judge.md has the evidence of each. convoy: threads that need the GIL for moments wait a
switch interval for it each time; thread-start, import: they start threads or import meanwhile;
switch-interval: the program has set a long one. long-hold: C code that does not let go when it is asked to.
destruction: a large structure is destroyed, at one instruction.
collection: the garbage collector runs meanwhile. callback: one of an event loop keeps the others waiting.
lock: threads wait for a lock of the program's, and not for the GIL.
lock-square: threads woken together each wait behind all that run. switch-storm: the GIL is passed round
faster than work gets done. starvation: one thread waits far longer than its peers. no-core: threads could not
take a free GIL, or go on holding it, for want of a core. saturation: more threads compute than one GIL can
carry. unexplained: threads waited for the GIL, and no cause is clear. not-the-gil: waiting for the GIL is not
what costs the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GilThread:
    """What one thread did with one GIL."""

    serial: int
    """Of the thread, in its process: given once, never to another."""
    name: str
    native_id: int
    gil: int = 0
    """Index of the GIL: 0 is the main interpreter's. A thread that uses two has two records."""
    acquisitions: int = 0
    contended: int = 0
    """Acquisitions that had to wait."""
    held_seconds: float = 0.0
    held_off_cpu_seconds: float | None = None
    """The part of ``held_seconds`` in which it had no core, as far as that was looked at: no thread got on
    meanwhile."""
    held_asleep_seconds: float | None = None
    """The part of ``held_off_cpu_seconds`` in which it slept by itself, in C code that waits for something
    without letting go; in the rest the kernel had taken the core away. Looked at in holds that went on for
    4 ms after a request."""
    waited_seconds: float = 0.0
    max_wait_seconds: float = 0.0
    max_held_seconds: float = 0.0
    overrun_seconds: float | None = None
    """Time it went on holding after the first request to drop: the part of its holds that kept others out
    against their asking."""
    overrun_off_cpu_seconds: float | None = None
    """The part of ``overrun_seconds`` for which it may have had no core: of each hold that it was asked to
    end, the time that it had none, before the request or after."""
    max_overrun_seconds: float | None = None
    forced_drops: int = 0
    voluntary_drops: int = 0
    requests: int = 0
    """Requests to drop that it sent to the holder."""
    handoffs: int = 0
    """Times it named its successor at a drop."""
    wait_histogram: tuple[int, ...] = ()
    """Contended waits by duration, ``HISTOGRAM_BUCKETS`` of them or none."""
    held_histogram: tuple[int, ...] = ()

    @classmethod
    def from_counters(cls, counters: Mapping[str, Any]) -> GilThread:
        """Make a record from exact counters: the same names, with ``_ns`` (integers) in the place of
        ``_seconds``.

        Missing keys have the defaults of the record; unknown ones are passed over.
        """
        values: dict[str, Any] = {}
        for name in cls.__dataclass_fields__:
            key = name.replace("_seconds", "_ns")
            if counters.get(key) is not None:
                values[name] = counters[key] / 1e9 if key != name else counters[key]
        for name in ("wait_histogram", "held_histogram"):
            values[name] = tuple(values.get(name, ()))
        values["name"] = values.get("name") or f"thread {values['serial']}"
        return cls(**values)

    def as_record(self) -> dict[str, Any]:
        """What a JSON report keeps of it."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """How long one thread waited while another held the GIL, and what that did meanwhile."""

    gil: int
    waiter: int
    """Serial of the thread that waited."""
    holder: int
    """Serial of the thread that held the GIL meanwhile; 0 when none did (it was free, and on its way to
    the next)."""
    seconds: float
    asked_seconds: float = 0.0
    """The part behind holds that did not end before they were asked to: until they were."""
    late_seconds: float = 0.0
    """... and from then on: the holder ran code that does not look for requests, or did not run."""
    asleep_seconds: float = 0.0
    """The part of ``late_seconds`` in which the holder slept, by itself."""
    collecting_seconds: float = 0.0
    """... in which it collected garbage."""
    coreless_seconds: float = 0.0
    """... in which it had no core; with no holder, the part in which the GIL stood free for a millisecond or
    longer while this thread waited, which had no core then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackLoss:
    """Waiting that was caught in the act: what the holder and the waiter were doing in waits over the
    threshold.

    Without frames it is what is left: waits shorter than the threshold, per waiter and holder.
    """

    gil: int
    waiter: int
    """Serial."""
    holder: int
    """Serial; 0 when no thread held the GIL."""
    holder_frames: Frames
    """(function, file, line), innermost first; empty when no stack was taken."""
    waiter_frames: Frames
    seconds: float
    """The part of the waits during which this holder held the GIL."""
    waits: int
    """How many waits it had a part in; 0 when it was not counted, for want of stacks."""
    max_seconds: float
    """The longest stretch within one wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrun:
    """Holds that went on after a request, for other reasons than a collection or a core that was taken away:
    calls that do not let go, of one thread at one place."""

    gil: int
    holder: int
    """Serial."""
    frames: Frames
    """What it was doing, innermost first; empty when no stack was taken."""
    holds: int
    seconds: float
    """Others' waiting behind them, from the request on."""
    asleep_seconds: float
    """The part in which the holder slept."""
    max_seconds: float
    """The longest of them, from the request on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Runs of the garbage collector in one thread, of one generation, begun at one place."""

    thread: int
    """Serial."""
    generation: int
    frames: Frames
    """What the thread was doing, innermost first; empty when no stack was taken."""
    runs: int
    seconds: float
    max_seconds: float


Doing = Literal["else", "run", "lock", "poll", "read", "write", "sleep", "child"]
"""What a thread does that neither holds a GIL nor waits for one, in the order of their numbers in a
recording: another system call, or not known; runs, in C code; is in a futex: waits for a lock, or for
another thread's word; waits for several descriptors; reads, receives or accepts; writes, sends, connects or
waits for the disk; sleeps; waits for a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleLook:
    """What a thread was seen to do, ten times a second, while it had nothing to do with a GIL."""

    thread: int
    """Serial."""
    doing: Doing
    frames: Frames
    """Innermost first; empty when they could not be read."""
    seconds: float
    """Each time that it was seen stands for the time since the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that the numbers say, with what to do about it."""

    kind: FindingKind
    title: str
    """It all in a few words: which threads wait, and for what."""
    threads: tuple[str, ...]
    """Names of the threads concerned, those to change first."""
    summary: str
    """One sentence for a reader who knows the program but not the GIL."""
    evidence: dict[str, float | int | str]
    """The numbers behind it, by a name with its unit."""
    advice: str
    cost_seconds: float
    """Time that threads waited because of it: findings are given dearest first."""
    waiters: tuple[tuple[str, float], ...] = ()
    """Names of the threads that waited, and for how many seconds each, dearest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopDelays:
    """How late the callbacks of an event loop were that ``fairlead.gil.watch_loop`` watched."""

    name: str
    """Of its thread."""
    beats: int
    """Callbacks of the watch."""
    late: int
    """... and of these, how many were later than its threshold."""
    own_seconds: float
    """Of the delays of these: spent in the loop's own callbacks, computing or blocking."""
    gil_seconds: float
    """... waiting for the GIL."""
    core_seconds: float
    """... ready to run, without a core."""
    overdue_seconds: float
    """How late the next callback was when this was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GilTotals:
    """One GIL over the whole observation."""

    gil: int
    wall_seconds: float
    held_seconds: float
    waited_seconds: float
    """Summed over threads: more than the wall time when several wait at once."""
    acquisitions: int
    switches: int
    """Acquisitions by another thread than the one before."""
    forced_drops: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GilProcess:
    """One of several processes of a summary."""

    meta: dict[str, Any]
    """Its recording's META, and ``source`` (the file)."""
    gils: tuple[int, ...]
    """The GILs that are its, by their numbers in the summary."""
    start_seconds: float
    """When its recording began, since the first one did."""
    wall_seconds: float
    held_seconds: float
    waited_seconds: float

    @property
    def name(self) -> str:
        return f"pid {self.meta['pid']}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """How far an observation trusts itself."""

    complete: bool
    """Nothing lost, nothing damaged, nothing against the rules of a lock."""
    lost_events: int
    lost_seconds: float
    """Time within which events were lost."""
    clock_resolution_seconds: float
    held_off_cpu_share: float | None
    """Share of the held time in which the kernel is known to have taken the core away from the holder; None
    when that was not measured."""
    blame_coverage: float
    """Share of the waited time for which the holder of the GIL is known, or that there was none."""
    statement: str
    """All this in words, one to three sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GilSummary:
    """Everything a report says in numbers; the timeline is apart."""

    process: dict[str, Any]
    """The recording's META, and ``source`` (the file); of the first process where there are several."""
    wall_seconds: float
    events: int
    gils: tuple[GilTotals, ...]
    threads: tuple[GilThread, ...]
    """Dearest (held + waited) first."""
    blame: tuple[Blame, ...]
    stacks: tuple[StackLoss, ...]
    findings: tuple[Finding, ...]
    trust: Trust
    overruns: tuple[Overrun, ...] = ()
    collections: tuple[Collection, ...] = ()
    looks: tuple[IdleLook, ...] = ()
    """Dearest first."""
    excluded: tuple[str, ...] = ()
    """What it was not, each with its number."""
    policies: tuple[str, ...] = ()
    """By which the main interpreter's GIL was scheduled, one after another; empty: not recorded."""
    watchdog_tripped: bool = False
    """The scheduler has given up: threads did not take the GIL that was granted to them."""
    other_load: float | None = None
    """Share of the machine's cores that other processes used; None: not recorded."""
    cores: int | None = None
    """The machine's."""
    loops: tuple[LoopDelays, ...] = ()
    """The event loops that were watched."""
    callbacks: tuple[tuple[str, float], ...] = ()
    """Seconds by which callbacks of these loops made others late, dearest first: "function (file:line)"."""
    problems: tuple[str, ...] = field(default=())
    """Damage, and violations of the rules of a lock, one line each."""
    processes: tuple[GilProcess, ...] = field(default=())
    """Where several were recorded, in the order of their starts. GILs and threads are then numbered anew, so
    that no two processes have a number in common."""

    def process_of(self, gil: int) -> GilProcess | None:
        """The one of several processes whose GIL it is; None where there is one process only."""
        return next((process for process in self.processes if gil in process.gils), None)

    def gil_name(self, gil: int) -> str:
        """What to call it among all others of the summary."""
        process = self.process_of(gil)
        if process is None:
            return f"GIL {gil}"
        several = len(process.gils) > 1
        return process.name + (f", GIL {gil - process.gils[0]}" if several else "")
