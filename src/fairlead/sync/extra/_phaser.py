"""Phaser: a barrier whose parties join and leave, phase after phase."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import NamedTuple, final

from fairlead.errors import UsageError, WaitTimeoutError
from fairlead.sync import Event
from fairlead.sync.extra._common import check_timeout, refuse_pickling


class PhaserStatistics(NamedTuple):
    """A phaser at one moment.

    Attributes:
        phase: the phase that is going on.
        parties: how many are registered.
        arrived: how many of them have arrived.
        waiting: threads and tasks that wait for the end of a phase.
        terminated: whether it has ended for good.
    """

    phase: int
    parties: int
    arrived: int
    waiting: int
    terminated: bool


@final
class Phaser:
    """A barrier whose parties join and leave. The operations are those of java.util.concurrent.Phaser.

    A phase is over when every registered party has arrived. The last to arrive calls ``on_advance(phase,
    parties)`` before the next phase begins. If it returns a true value, raises, or no parties are left, the
    phaser is terminated. A party that stops waiting has arrived nevertheless.

    Args:
        parties: how many are registered at first.
        on_advance: what the last party to arrive calls; its exception comes out of that party's call.
    """

    __slots__ = (
        "__weakref__", "_advancing", "_early", "_events", "_leaving", "_lock", "_on_advance", "_parties",
        "_phase", "_terminated", "_unarrived",
    )  # fmt: skip

    def __init__(self, parties: int = 0, *, on_advance: Callable[[int, int], object] | None = None) -> None:
        if on_advance is not None and not callable(on_advance):
            raise TypeError(f"on_advance must be callable, not a {type(on_advance).__name__}")
        self._lock = Lock()
        self._on_advance = on_advance
        self._phase = 0
        self._parties = self._unarrived = _count(parties)
        self._early = self._leaving = 0
        """While the next phase has not begun: how many have arrived at it already, and of these leave."""
        self._advancing = self._terminated = False
        self._events: dict[int, Event] = {}
        """Of the phases whose end is waited for."""

    def register(self) -> int | None:
        """Adds one party. Returns its first phase: this one, or the next if all have arrived already; None if
        the phaser is terminated. Never waits.
        """
        return self.bulk_register(1)

    def bulk_register(self, parties: int, /) -> int | None:
        """Adds so many parties, as ``register``."""
        with self._lock:
            count = _count(parties)
            if self._terminated:
                return None
            self._parties += count
            self._unarrived += 0 if self._advancing else count
            return self._phase + (self._advancing and count > 0)

    def arrive(self) -> int | None:
        """One party arrives, and does not wait. Returns the phase at which it has arrived; None if the phaser
        is terminated. The last to arrive calls on_advance. UsageError if more arrive than are registered.
        """
        return self._arrive(False)

    def arrive_and_deregister(self) -> int | None:
        """As ``arrive``, by a party that leaves. When no parties are left the phaser is terminated."""
        return self._arrive(True)

    def arrive_and_wait(self, timeout: float | None = None) -> int | None:
        """Arrives, and waits until all have. Returns the phase that has begun by then; None if the phaser is
        terminated. For threads; tasks await ``arrive_and_wait_async``.

        Raises WaitTimeoutError (a TimeoutError) if the time, in seconds, was over first. The party has
        arrived: it calls ``wait_phase`` to wait again.
        """
        check_timeout(timeout)
        phase = self._arrive(False)
        return None if phase is None else self.wait_phase(phase, timeout)

    async def arrive_and_wait_async(self) -> int | None:
        """As ``arrive_and_wait``, for tasks. A task that is cancelled while it waits has arrived."""
        phase = self._arrive(False)
        return None if phase is None else await self.wait_phase_async(phase)

    def wait_phase(self, phase: int, /, timeout: float | None = None) -> int | None:
        """Waits until this phase is over; the caller need not be a party. Returns and raises as
        ``arrive_and_wait``.
        """
        check_timeout(timeout)
        event = self._end_of(phase)
        if event is not None and not event.wait(timeout):
            raise WaitTimeoutError("the phase was not over within the time")
        return self._now()

    async def wait_phase_async(self, phase: int, /) -> int | None:
        """As ``wait_phase``, for tasks."""
        event = self._end_of(phase)
        if event is not None:
            await event.wait_async()
        return self._now()

    def terminate(self) -> None:
        """Ends the phaser for good: present waiters and later callers get None."""
        with self._lock:
            ended = self._terminate()
        for event in ended:
            event.set()

    def statistics(self) -> PhaserStatistics:
        """A record of the moment: phase, parties, arrived, waiting (threads and tasks), terminated."""
        with self._lock:
            arrived = self._parties - self._unarrived
            waiting = sum(event.statistics().waiting for event in self._events.values())
            return PhaserStatistics(self._phase, self._parties, arrived, waiting, self._terminated)

    @property
    def phase(self) -> int:
        """The phase that is going on, from 0 on; the last one if terminated."""
        return self._phase

    @property
    def parties(self) -> int:
        """How many are registered."""
        return self._parties

    @property
    def arrived(self) -> int:
        """How many of them have arrived at this phase."""
        return self.statistics().arrived

    @property
    def terminated(self) -> bool:
        """Whether it has ended for good."""
        return self._terminated

    def _arrive(self, leaves: bool) -> int | None:
        with self._lock:
            if self._terminated:
                return None
            phase = self._phase
            if (self._early == self._parties) if self._advancing else not self._unarrived:
                raise UsageError("more have arrived than are registered: register() each party first")
            if self._advancing:
                self._early += 1
                self._leaving += leaves
                return phase + 1
            self._unarrived -= 1
            self._parties -= leaves
            if self._unarrived:
                return phase
            self._advancing = True
            over = phase, self._parties
        self._advance(over)
        return phase

    def _advance(self, over: tuple[int, int] | None) -> None:
        """By the last to arrive: ends this phase, and the next ones, if all have arrived at them, too."""
        while over is not None:
            terminate = True
            try:
                terminate = bool(self._on_advance and self._on_advance(*over))
            finally:
                over = self._next(terminate)

    def _next(self, terminate: bool) -> tuple[int, int] | None:
        """The next phase with its parties, if all have arrived at it already. If not, the last party to
        arrive there will advance it."""
        over = None
        with self._lock:
            if self._terminated:
                return None
            if terminate or not self._parties:
                ended = self._terminate()
            else:
                ended = [self._events.pop(self._phase)] if self._phase in self._events else []
                self._phase += 1
                self._unarrived = self._parties - self._early
                self._parties -= self._leaving
                self._early = self._leaving = 0
                self._advancing = not self._unarrived
                if self._advancing:
                    over = self._phase, self._parties
        for event in ended:
            event.set()
        return over

    def _terminate(self) -> list[Event]:
        """With the lock held. What is to be set then."""
        self._terminated, self._advancing = True, False
        ended = list(self._events.values())
        self._events.clear()
        return ended

    def _end_of(self, phase: int) -> Event | None:
        with self._lock:
            if self._terminated or phase < self._phase:
                return None
            return self._events.setdefault(phase, Event())

    def _now(self) -> int | None:
        with self._lock:
            return None if self._terminated else self._phase

    def __repr__(self) -> str:
        phase, parties, arrived, _, terminated = self.statistics()
        state = ", terminated" if terminated else ""
        return (
            f"<fairlead.sync.extra.Phaser in phase {phase}, {arrived} of {parties} arrived{state}, "
            f"at {id(self):#x}>"
        )

    __reduce__ = refuse_pickling


def _count(parties: int) -> int:
    if parties < 0:
        raise ValueError(f"parties must be 0 or more, not {parties}")
    return parties
