"""What the judge may know of a process, and the sums that its causes are decided by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fairlead.record import places
from fairlead.record.gil_summary import Blame, Collection, GilThread, IdleLook, LoopDelays, Overrun, StackLoss
from fairlead.record.recording import Frames

WORTH_A_WORD = 0.02
COMPUTING_HOLD = 0.5
"""A thread computes if it mostly holds the GIL for so much of a switch interval or longer."""
SHORT_HOLD = 0.1
COMPUTING_SHARE = 0.1
"""... or if it has so much of the time, in holds that are not shorter than that, and half of what would be
its part by what it asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that was measured of one process. What is empty was not measured, or did not happen."""

    threads: tuple[GilThread, ...]
    """One record for each thread and GIL."""
    wall_seconds: float
    switch_interval: float
    """The program's, while it was observed."""
    blame: tuple[Blame, ...] = ()
    stacks: tuple[StackLoss, ...] = ()
    overruns: tuple[Overrun, ...] = ()
    collections: tuple[Collection, ...] = ()
    looks: tuple[IdleLook, ...] = ()
    command: str = "COMMAND"
    """The program's, to be run again."""
    loops: tuple[LoopDelays, ...] = ()
    callbacks: tuple[tuple[str, float], ...] = ()
    threads_at_once: int = 0
    """How many of the threads were alive at the same time, at most; 0: not known."""
    policy: str = "stock"
    """By which the GIL was scheduled."""

    @property
    def scheduled(self) -> bool:
        return self.policy != "stock"


class Gil:
    """One GIL of the process. Its waiting is split by what it was for: behind which thread, and why that went
    on."""

    def __init__(self, evidence: Evidence, index: int) -> None:
        self.evidence = evidence
        self.threads = [thread for thread in evidence.threads if thread.gil == index]
        self.by_serial = {thread.serial: thread for thread in self.threads}
        self.cells = [cell for cell in evidence.blame if cell.gil == index]
        self.stacks = [loss for loss in evidence.stacks if loss.gil == index]
        self.overruns = [overrun for overrun in evidence.overruns if overrun.gil == index] or self._overruns()
        self.free_seconds = {cell.waiter: cell.coreless_seconds for cell in self.cells if cell.holder == 0}
        """By waiter: while it waited, the GIL stood free for a millisecond or longer."""
        self._asked: defaultdict[int, float] = defaultdict(float)
        self._lost: defaultdict[int, float] = defaultdict(float)
        for cell in self.cells:
            self._asked[cell.waiter] += convoyed(cell)
            self._lost[cell.waiter] += cell.coreless_seconds

    def _overruns(self) -> list[Overrun]:
        """Where no hold was looked at by itself, as in ``top``: by thread, from the blame."""
        late: defaultdict[int, float] = defaultdict(float)
        asleep: defaultdict[int, float] = defaultdict(float)
        for cell in self.cells:
            late[cell.holder] += cell.late_seconds - cell.collecting_seconds - cell.coreless_seconds
            asleep[cell.holder] += cell.asleep_seconds
        return [
            Overrun(
                gil=thread.gil,
                holder=thread.serial,
                frames=(),
                holds=thread.forced_drops,
                seconds=late[thread.serial],
                asleep_seconds=asleep[thread.serial],
                max_seconds=min(thread.max_overrun_seconds or 0.0, late[thread.serial]),
            )
            for thread in self.threads
            if thread.serial in late
        ]

    @property
    def wall(self) -> float:
        return self.evidence.wall_seconds

    @property
    def interval(self) -> float:
        return self.evidence.switch_interval

    @property
    def schedule(self) -> str:
        """What to do where threads that compute keep others waiting."""
        return f"Run it under: fairlead run -- {self.evidence.command}"

    @property
    def waited(self) -> float:
        return sum(thread.waited_seconds for thread in self.threads)

    @property
    def held(self) -> float:
        """Without what holders slept."""
        return sum(map(used_seconds, self.threads))

    def computes(self, thread: GilThread) -> bool:
        """Whether it holds the GIL for about as long as it may, and does not sleep meanwhile; or has about
        its part of it, in holds that are not short."""
        if thread.acquisitions == 0:
            return False
        used = used_seconds(thread)
        hold = used / thread.acquisitions
        return hold >= COMPUTING_HOLD * self.interval or (
            hold >= SHORT_HOLD * self.interval
            and used >= COMPUTING_SHARE * self.wall
            and used * (self.held + self.waited) >= self.held * _demand(thread) / 2
        )

    def computing(self) -> list[GilThread]:
        """The threads that do, by the time for which they held the GIL."""
        found = [thread for thread in self.threads if self.computes(thread)]
        return sorted(found, key=lambda thread: -thread.held_seconds)

    def named(self, serial: int) -> str:
        thread = self.by_serial.get(serial)
        return thread.name if thread else f"thread {serial}"

    def behind(self, waiters: Iterable[GilThread], waited: Callable[[Blame], float]) -> dict[int, float]:
        """By holder: how long these waited for it, by this measure of a cell."""
        waiting = {thread.serial for thread in waiters}
        found: defaultdict[int, float] = defaultdict(float)
        for cell in self.cells:
            if cell.holder and cell.waiter in waiting:
                found[cell.holder] += waited(cell)
        return found

    def waiters(self, waited: Callable[[Blame], float]) -> tuple[tuple[str, float], ...]:
        """Who waited, and for how long by this measure of a cell: seconds by name, dearest first."""
        return by_name(
            (self.named(cell.waiter), seconds)
            for cell in self.cells
            if cell.waiter in self.by_serial and (seconds := waited(cell)) > 0
        )

    def asked(self, thread: GilThread) -> float:
        """How long it waited behind threads that compute, until it, or another, might ask them."""
        return self._asked[thread.serial]

    def lost(self, thread: GilThread) -> float:
        """How long it waited because a core was missing, for it or for the holder."""
        return self._lost[thread.serial]

    def doing(self, waiters: Iterable[GilThread]) -> Frames:
        """What these did when they waited, as far as that was seen, at the dearest of their own lines."""
        return places.dearest(self.seen(waiters, lambda loss: loss.waiter_frames))

    def done_meanwhile(self, waiters: Iterable[GilThread]) -> Frames:
        """What the holders did while these waited, likewise."""
        return places.dearest(self.seen(waiters, lambda loss: loss.holder_frames))

    def seen(
        self, waiters: Iterable[GilThread], frames: Callable[[StackLoss], Frames]
    ) -> list[tuple[Frames, float]]:
        """The frames that were taken in the waits of these, and the seconds of each."""
        waiting = {thread.serial for thread in waiters}
        return [
            (frames(loss), loss.seconds) for loss in self.stacks if loss.waiter in waiting and frames(loss)
        ]


def _demand(thread: GilThread) -> float:
    return used_seconds(thread) + thread.waited_seconds


def convoyed(cell: Blame) -> float:
    """How long the waiter waited until it might ask a holder that computes. What comes before a call that
    then does not let go for longer than that is this call's."""
    return cell.asked_seconds if cell.late_seconds < cell.asked_seconds else 0.0


def waits_of(
    threads: Sequence[GilThread], seconds: Callable[[GilThread], float] = lambda thread: thread.waited_seconds
) -> tuple[tuple[str, float], ...]:
    """By name, dearest first."""
    return by_name((thread.name, seconds(thread)) for thread in threads)


def by_name(waited: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """The seconds of each name added up, dearest first."""
    sums: defaultdict[str, float] = defaultdict(float)
    for name, seconds in waited:
        sums[name] += seconds
    return tuple(sorted(sums.items(), key=lambda item: -item[1]))


def used_seconds(thread: GilThread) -> float:
    """How long it held the GIL and did not sleep."""
    return thread.held_seconds - (thread.held_asleep_seconds or 0.0)


def hold_of(thread: GilThread) -> float:
    """Its mean hold."""
    return thread.held_seconds / thread.acquisitions if thread.acquisitions else 0.0


def sane(seconds: float) -> bool:
    """Whether it can be a duration: no observation lasts a thousand years."""
    return 0 <= seconds < 3e10
