"""A small deterministic simulation of CPython's GIL, which writes what happened as a recording and keeps
its own books.

The protocol is take_gil and drop_gil of CPython 3.2 to 3.15: who finds the GIL taken waits one switch
interval at a time, and asks for a drop when a whole interval went by without a switch; who drops on request
waits until another thread has it. Whoever a drop wakes needs some time to get onto a core, and somebody
else may take the GIL meanwhile. The books (``Simulation.truth``) are kept the plain way, by walking over
all waiting threads at every change, so that they can be held against the analysis, which goes about it in
another way.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from recordings import META, Event, RecordingWriter, whole

from fairlead.record.recording import CONTENDED, FORCED, EventType

US = 1_000
MS = 1_000_000
START = int(META["start_ns"])


class Run(NamedTuple):
    """Compute in Python for so long; lets go when asked."""

    ns: int


class Call(NamedTuple):
    """Compute in C for so long without letting go."""

    ns: int


class Block(NamedTuple):
    """Let go of the GIL for so long: I/O, sleep, C code that frees it."""

    ns: int


class Stolen(NamedTuple):
    """The kernel takes the core away for so long, in the middle of a hold."""

    ns: int


class Doze(NamedTuple):
    """Sleep for so long without letting go."""

    ns: int


Step = Run | Call | Block | Stolen | Doze


@dataclass
class Truth:
    """What really happened, in ns, by serial."""

    held: Counter[int] = field(default_factory=Counter)
    off_cpu: Counter[int] = field(default_factory=Counter)
    asleep: Counter[int] = field(default_factory=Counter)
    overrun: Counter[int] = field(default_factory=Counter)
    overrun_off_cpu: Counter[int] = field(default_factory=Counter)
    waited: Counter[int] = field(default_factory=Counter)
    acquisitions: Counter[int] = field(default_factory=Counter)
    contended: Counter[int] = field(default_factory=Counter)
    forced: Counter[int] = field(default_factory=Counter)
    blame: Counter[tuple[int, int]] = field(default_factory=Counter)
    """(waiter, holder), holder 0 when the GIL was free."""


@dataclass
class _Thread:
    serial: int
    name: str
    steps: Iterator[Step]
    step: Step | None = None
    left: int = 0
    wanted: int | None = None
    seen_switch: int = 0
    begun: int = 0
    off_cpu: int = 0
    asleep: int = 0
    off_cpu_before: int = 0
    overrun_off_cpu: int = 0
    forced_out: bool = False
    epoch: int = 0
    """Makes what was planned for an earlier state of the thread void."""


class Simulation:
    """Runs thread programs (name -> steps) until all have ended or ``until_ns`` has come."""

    def __init__(
        self,
        programs: dict[str, Iterable[Step]],
        *,
        until_ns: int,
        seed: int = 1,
        interval_ns: int = 5 * MS,
        wake_ns: int = 50 * US,
        threshold_ns: int | None = MS,
        gil: int = 0,
    ) -> None:
        self.random = random.Random(seed)
        self.interval, self.wake, self.threshold, self.gil = interval_ns, wake_ns, threshold_ns, gil
        self.until = START + until_ns
        self.threads = [_Thread(i + 1, name, iter(steps)) for i, (name, steps) in enumerate(programs.items())]
        self.events: list[Event] = []
        self.truth = Truth()
        self.now = START
        self.holder: _Thread | None = None
        self.last_holder = 0
        self.since = START
        self.switches = 0
        self.requested = False
        self.plan: list[tuple[int, int, str, _Thread, int]] = []
        self.count = 0
        for thread in self.threads:
            self._emit(EventType.THREAD_START, thread)
            self._at(START, "take", thread)
        while self.plan and self.plan[0][0] <= self.until:
            when, _, what, thread, epoch = heapq.heappop(self.plan)
            self._pass_time(when)
            if epoch == thread.epoch:
                getattr(self, "_" + what)(thread)
        self._pass_time(self.until)
        self.end = self.now

    def writer(
        self, *, events_per_block: int = 1000, wholes: bool = False, **meta: object
    ) -> RecordingWriter:
        """The recording, with an end mark."""
        threshold = None if self.threshold is None else self.threshold / 1e9
        writer = RecordingWriter().meta(
            switch_interval_s=self.interval / 1e9, wait_threshold_s=threshold, **meta
        )
        writer.threads(*((t.serial, 4711 + t.serial, t.name, self.gil) for t in self.threads))
        writer.stacks(
            {t.serial: [("work", f"{t.name}.py", 10), ("main", f"{t.name}.py", 99)] for t in self.threads}
        )
        events = whole(self.events) if wholes else self.events
        for i in range(0, len(events), events_per_block):
            writer.events(events[i : i + events_per_block])
        return writer.end(self.end)

    # -- what can happen to a thread

    def _take(self, thread: _Thread) -> None:
        if thread.step is None and not self._next_step(thread):
            self._emit(EventType.THREAD_END, thread)
        elif self.holder is None:
            self._acquire(thread)
        elif thread.wanted is None:
            thread.wanted = self.now
            self._emit(EventType.WANT, thread, other=self.holder.serial)
            self._arm(thread)
        # else: it was woken, and somebody was quicker: it goes on waiting, its timer is set

    def _arm(self, thread: _Thread) -> None:
        thread.seen_switch = self.switches
        self._at(self.now + self.interval, "timer", thread)

    def _timer(self, thread: _Thread) -> None:
        if self.holder is not None and thread.seen_switch == self.switches:
            assert thread.wanted is not None
            self._emit(EventType.REQUEST, thread, other=self.holder.serial, value=self.now - thread.wanted)
            if not self.requested:
                self.requested = True
                self.holder.off_cpu_before = self.holder.off_cpu
                if isinstance(self.holder.step, Stolen | Doze):
                    self.holder.off_cpu_before += self.now - self.holder.begun
            self._asked()
        self._arm(thread)

    def _acquire(self, thread: _Thread) -> None:
        waited = 0 if thread.wanted is None else self.now - thread.wanted
        flags = 0 if thread.wanted is None else CONTENDED
        self.truth.acquisitions[thread.serial] += 1
        self.truth.contended[thread.serial] += thread.wanted is not None
        self._emit(EventType.ACQUIRE, thread, other=self.last_holder, value=waited, flags=flags)
        if self.threshold is not None and waited >= self.threshold:
            self._emit(
                EventType.STACK_WAITER, thread, other=self.last_holder, value=waited, stack=thread.serial
            )
        if self.last_holder != thread.serial:
            self.switches += 1
        thread.wanted, thread.off_cpu, thread.asleep = None, 0, 0
        thread.off_cpu_before = thread.overrun_off_cpu = 0
        thread.epoch += 1
        self.holder, self.last_holder, self.since, self.requested = thread, thread.serial, self.now, False
        for other in self.threads:
            if other.forced_out and other is not thread:
                other.forced_out = False
                self._at(self.now, "take", other)
        self._go_on(thread)

    def _go_on(self, thread: _Thread) -> None:
        """The holder begins a step, or goes on with what is left of one."""
        if isinstance(thread.step, Block):
            self._drop(thread)
            self._at(self.now + thread.left, "take", thread)
            thread.step = None
        else:
            self._at(self.now + thread.left, "done", thread)
            thread.begun = self.now
            if self.requested:
                self._asked()

    def _done(self, thread: _Thread) -> None:
        if isinstance(thread.step, Stolen | Doze):
            thread.off_cpu += thread.left
            thread.asleep += thread.left if isinstance(thread.step, Doze) else 0
        thread.epoch += 1
        if self._next_step(thread):
            self._go_on(thread)
        else:
            self._drop(thread)
            self._emit(EventType.THREAD_END, thread)

    def _asked(self) -> None:
        """Python code lets go soon after it was asked to; C code and a thread without a core do not."""
        holder = self.holder
        assert holder is not None
        if isinstance(holder.step, Run):
            self._at(self.now + US, "forced", holder)

    def _forced(self, thread: _Thread) -> None:
        assert isinstance(thread.step, Run)
        thread.left -= self.now - thread.begun
        if thread.left <= 0:
            thread.left = US
        self._drop(thread, flags=FORCED)
        thread.forced_out = True

    def _drop(self, thread: _Thread, flags: int = 0) -> None:
        held = self.now - self.since
        if thread.off_cpu:
            self._emit(EventType.OFFCPU, thread, value=thread.off_cpu)
            self.truth.off_cpu[thread.serial] += thread.off_cpu
        if thread.asleep:
            self._emit(EventType.ASLEEP, thread, value=thread.asleep)
            self.truth.asleep[thread.serial] += thread.asleep
        if thread.off_cpu_before:
            self._emit(EventType.OFFCPU_EARLY, thread, value=thread.off_cpu_before)
        self.truth.overrun_off_cpu[thread.serial] += thread.overrun_off_cpu
        stack = 0
        for other in self.threads:
            waited = 0 if other.wanted is None else self.now - other.wanted
            if self.threshold is not None and waited >= self.threshold:
                stack = thread.serial
                self._emit(EventType.STACK_HOLDER, thread, other=other.serial, value=waited, stack=stack)
        self._emit(EventType.DROP, thread, value=held, flags=flags, stack=stack)
        self.truth.forced[thread.serial] += bool(flags & FORCED)
        thread.epoch += 1
        self.holder = None
        waiting = [t for t in self.threads if t.wanted is not None]
        if waiting:
            chosen = self.random.choice(waiting)
            self._at(self.now + self.random.randint(self.wake // 2, self.wake * 2), "take", chosen)

    # -- the machinery

    def _next_step(self, thread: _Thread) -> bool:
        thread.step = next(thread.steps, None)
        thread.left = 0 if thread.step is None else max(1, thread.step.ns)
        return thread.step is not None

    def _at(self, when: int, what: str, thread: _Thread) -> None:
        self.count += 1
        heapq.heappush(self.plan, (when, self.count, what, thread, thread.epoch))

    def _emit(
        self,
        kind: EventType,
        thread: _Thread,
        *,
        other: int = 0,
        value: int = 0,
        flags: int = 0,
        stack: int = 0,
    ) -> None:
        self.events.append(Event(self.now, thread.serial, other, value, self.gil, int(kind), flags, stack))

    def _pass_time(self, when: int) -> None:
        passed = when - self.now
        holder = 0 if self.holder is None else self.holder.serial
        if holder:
            self.truth.held[holder] += passed
            if self.requested:
                self.truth.overrun[holder] += passed
                self.holder.overrun_off_cpu += passed * isinstance(self.holder.step, Stolen | Doze)
        for thread in self.threads:
            if thread.wanted is not None:
                self.truth.waited[thread.serial] += passed
                self.truth.blame[thread.serial, holder] += passed
        self.now = when
