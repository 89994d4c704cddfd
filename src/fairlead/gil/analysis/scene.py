"""One GIL and the threads that share it, as findings see them; and how findings name threads and times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairlead.record.gil_summary import Blame, GilThread, StackLoss

COMPUTING_HOLD = 0.5
WORTH_A_WORD = 0.02
LATE = 0.1


@dataclass(frozen=True, slots=True)
class Scene:
    """One GIL, and the threads that share it."""

    threads: list[GilThread]
    wall: float
    interval: float
    blame: list[Blame]
    stacks: list[StackLoss]
    policy: str
    """The GIL's, "stock" where it is not scheduled."""

    @property
    def scheduled(self) -> bool:
        return self.policy != "stock"

    @property
    def waited(self) -> float:
        return sum(thread.waited_seconds for thread in self.threads)

    @property
    def held(self) -> float:
        """And made use of: not asleep meanwhile."""
        return sum(used_seconds(thread) for thread in self.threads)

    @property
    def without_core(self) -> float:
        """For how long holders wanted to go on and had no core, as far as that is known."""
        return sum(preempted_seconds(thread) for thread in self.threads)

    @property
    def waited_for_holders_core(self) -> float:
        """The part of ``waited`` that this cost, as far as waits are spread evenly over the holds."""
        return self.waited * min(1.0, self.without_core / self.held) if self.held else 0.0

    def computing(self) -> list[GilThread]:
        """Threads that hold about as long as they are let, and do not sleep, largest share first."""
        least = COMPUTING_HOLD * self.interval
        found = [t for t in self.threads if t.acquisitions and used_seconds(t) >= least * t.acquisitions]
        return sorted(found, key=lambda thread: -thread.held_seconds)

    def waited_for_core(self, thread: GilThread) -> float:
        """How long it waited while the GIL was free: it could not take it, for want of a core."""
        return sum(cell.seconds for cell in self.blame if cell.waiter == thread.serial and cell.holder == 0)


def sane(seconds: float) -> bool:
    """Whether it can be a duration: no observation lasts a thousand years."""
    return 0 <= seconds < 3e10


def used_seconds(thread: GilThread) -> float:
    return thread.held_seconds - (thread.held_asleep_seconds or 0.0)


def overrun_of(thread: GilThread) -> float:
    """How long it went on after requests, by itself: what a core that was taken away may have added is not in
    it."""
    off_cpu = thread.overrun_off_cpu_seconds
    return _by_itself(
        thread, thread.overrun_seconds, thread.held_off_cpu_seconds if off_cpu is None else off_cpu
    )


def kept_seconds(thread: GilThread) -> float:
    """How long it held, computing or asleep: without what a core that was taken away added."""
    return _by_itself(thread, thread.held_seconds, thread.held_off_cpu_seconds)


def preempted_seconds(thread: GilThread) -> float:
    """For how long it held and had no core, though it did not sleep."""
    return _preempted(thread, thread.held_off_cpu_seconds)


def _preempted(thread: GilThread, off_cpu: float | None) -> float:
    return max(0.0, (off_cpu or 0.0) - (thread.held_asleep_seconds or 0.0))


def _by_itself(thread: GilThread, seconds: float | None, off_cpu: float | None) -> float:
    return max(0.0, (seconds or 0.0) - _preempted(thread, off_cpu))


def lets_go(thread: GilThread, interval: float) -> bool:
    """Whether it does so soon after it is asked to: its victims pay the interval before a request. Else they
    pay for what comes after, a long hold."""
    after = overrun_of(thread)
    return after < LATE * kept_seconds(thread) or after < thread.forced_drops * interval


def hold_of(thread: GilThread) -> float:
    return thread.held_seconds / thread.acquisitions if thread.acquisitions else 0.0


def long_waits(thread: GilThread, interval: float) -> float:
    """How many waits took about a switch interval or longer: the bucket that the interval is in, and those
    above."""
    if thread.wait_histogram:
        bucket = max(0, math.floor(math.log2(max(1.0, interval * 1e9))))
        return sum(thread.wait_histogram[bucket:])
    mean = thread.waited_seconds / thread.contended if thread.contended else 0.0
    return thread.contended if mean >= interval / 2 else 0


def blamed(scene: Scene, waiters: Iterable[GilThread], holders: Iterable[GilThread]) -> float | None:
    if not scene.blame:
        return None
    waiting, holding = {t.serial for t in waiters}, {t.serial for t in holders}
    return sum(cell.seconds for cell in scene.blame if cell.waiter in waiting and cell.holder in holding)


def behind_any(scene: Scene, waiters: Iterable[GilThread]) -> float:
    waiting = {thread.serial for thread in waiters}
    return sum(cell.seconds for cell in scene.blame if cell.waiter in waiting and cell.holder)


def names_of(threads: Iterable[GilThread]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(thread.name for thread in threads))


def listed(threads: Sequence[GilThread]) -> str:
    names = names_of(threads)
    if len(names) <= 2:
        return " and ".join(names)
    return f"{names[0]}, {names[1]} and {len(names) - 2} more"


def verb(plural: str, threads: Sequence[GilThread]) -> str:
    return plural if len(names_of(threads)) > 1 else f"{plural}s"


def duration(seconds: float) -> str:
    """Three digits and the unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def percent(share: float, decimals: int = 0) -> str:
    return f"{share * 100:.{decimals}f} %"
