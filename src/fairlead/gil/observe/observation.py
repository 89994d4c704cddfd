"""``fairlead.gil.observe``: which thread held the GIL, and which waited for which."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from fairlead.errors import UsageError
from fairlead.gil.analysis.rates import parse_blame, parse_collections
from fairlead.gil.observe import names
from fairlead.gil.observe.access import Window, exclusive, nanoseconds
from fairlead.judge.evidence import Evidence
from fairlead.judge.verdict import judge
from fairlead.judge.words import command_of
from fairlead.record.gil_summary import Blame, Finding, GilThread, Overrun, StackLoss
from fairlead.record.policies import policy_name

if TYPE_CHECKING:
    from fairlead import _probe
    from fairlead.record.recording import Frames

NO_THREAD = "(no thread)"
"""As a holder: the GIL was free, and on its way to the next."""
UNKNOWN = "(unknown)"
"""As a holder: too many threads held it in one wait to look at them all."""
ENDED = "(ended threads)"
"""All threads that ended so long ago that they are no longer kept apart."""

_SPECIAL = {0: NO_THREAD, 0xFFFFFFFE: UNKNOWN, 0xFFFFFFFF: ENDED}


def thread_name(serial: int, names: Mapping[int, str]) -> str:
    """What to call the thread that the extension gave this number, or what stands for no thread."""
    return _SPECIAL.get(serial) or names.get(serial) or f"thread {serial}"


class BlameMatrix(dict[tuple[str, str], float]):
    """Seconds that one thread waited while another held the GIL, by (waiter's name, holder's name).

    Threads of one name are added up. A pair that never met has 0.0. Besides threads there are the holders
    "(no thread)" (the GIL was free) and "(unknown)", and as both "(ended threads)".
    """

    def __missing__(self, pair: tuple[str, str]) -> float:
        return 0.0


class Observation:
    """The GIL under observation, from ``start()`` to ``stop()``; also a context manager.

    Attributes are read at any time: while it goes on they say how things are now, afterwards how they were
    at its end. Times include the holds and waits that were going on then.

    Guarantees: every hold and every wait between the two moments is counted, exactly, for every thread and
    every GIL of the process (each interpreter with a GIL of its own has one); of holds and waits that were
    going on at the start only the part since then. The one exception: a thread that was waiting when the
    first of all observations started is seen up to a switch interval later.
    """

    def __init__(self, wait_threshold: float | None) -> None:
        self._threshold_ns = nanoseconds(wait_threshold)
        self._window: Window | None = None
        self._reading: _probe.Reading | None = None
        self._names: dict[int, str] = {}
        self._native_ids: dict[int, int] = {}
        self._policy = "stock"

    def start(self) -> Observation:
        """Begin.

        Raises:
            UnsupportedInterpreterError: the interpreter's GIL cannot be observed; the message says why.
            UsageError: it has been started before, or eight observations are going on.
        """
        with exclusive():
            if self._window is not None or self._reading is not None:
                raise UsageError("this observation was started before: make a new one")
            self._window = Window(self._threshold_ns)
        names.follow()
        return self

    def stop(self) -> None:
        """End. Harmless when it has ended, or was never started."""
        if self._window is None:
            return
        names.unfollow()
        with exclusive():
            window, self._window = self._window, None
            if window is not None:
                self._take(window)
                window.close()

    def __enter__(self) -> Observation:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _take(self, window: Window) -> None:
        from fairlead import _probe

        self._reading = window.read()
        threads = _probe.threads()
        self._names = {serial: name for serial, *_, name in threads}
        self._native_ids = {serial: native_id for serial, native_id, *_ in threads}
        self._policy = policy_name(_probe.scheduler()["mode"])

    def _read(self) -> _probe.Reading:
        if self._window is not None:
            names.update()
        with exclusive():
            if self._window is not None:
                self._take(self._window)
            if self._reading is None:
                raise UsageError("this observation has not been started")
            return self._reading

    def _name(self, serial: int) -> str:
        return thread_name(serial, self._names)

    @property
    def seconds(self) -> float:
        """How long it has been going on, or went on."""
        return self._read()["ns"] / 1e9

    @property
    def threads(self) -> tuple[GilThread, ...]:
        """What each thread did with each GIL, dearest (held + waited) first."""
        reading = self._read()
        found = [
            GilThread.from_counters(
                {
                    **tally,
                    "name": self._name(tally["serial"]),
                    "native_id": self._native_ids.get(tally["serial"], 0),
                }
            )
            for tally in reading["threads"]
        ]
        return tuple(sorted(found, key=lambda thread: -(thread.held_seconds + thread.waited_seconds)))

    @property
    def blame(self) -> BlameMatrix:
        """How long each thread waited for each other, in seconds.

        For each waiter the row adds up to the time waited in waits that are over. A wait in which at most 64
        holds lay is split exactly; of one with more, what is not looked at is under "(unknown)".
        """
        matrix = BlameMatrix()
        for cell in self._blame(self._read()):
            pair = self._name(cell.waiter), self._name(cell.holder)
            matrix[pair] = matrix[pair] + cell.seconds
        return matrix

    @property
    def stacks(self) -> tuple[StackLoss, ...]:
        """What holders and waiters were doing in waits over the threshold, dearest first."""
        return tuple(self._losses(self._read()))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What it all means, dearest first."""
        reading = self._read()
        frames = FrameCache()
        return judge(
            Evidence(
                threads=self.threads,
                wall_seconds=reading["ns"] / 1e9,
                switch_interval=reading["interval_ns"] / 1e9 or sys.getswitchinterval(),
                blame=tuple(parse_blame(reading["blame"])),
                stacks=tuple(self._losses(reading)),
                overruns=tuple(_overruns(reading, frames)),
                collections=tuple(parse_collections(reading["collections"], frames.__getitem__)),
                policy=self._policy,
                command=command_of(sys.orig_argv),
            )
        )

    def _blame(self, reading: _probe.Reading) -> list[Blame]:
        return parse_blame(reading["blame"])

    def _losses(self, reading: _probe.Reading) -> list[StackLoss]:
        frames = FrameCache()
        losses = [
            StackLoss(
                gil=gil,
                waiter=waiter,
                holder=holder,
                holder_frames=frames[holder_stack],
                waiter_frames=frames[waiter_stack],
                seconds=ns / 1e9,
                waits=waits,
                max_seconds=longest / 1e9,
            )
            for gil, waiter, holder, waiter_stack, holder_stack, ns, waits, longest, *_ in reading["losses"]
        ]
        return sorted(losses, key=lambda loss: -loss.seconds)

    def __repr__(self) -> str:
        if self._window is not None:
            return "<fairlead.gil.Observation, going on>"
        return f"<fairlead.gil.Observation, {'not started' if self._reading is None else 'ended'}>"


def _overruns(reading: _probe.Reading, frames: FrameCache) -> list[Overrun]:
    """By holder and its stack; several that wait behind one hold see it once each."""
    found: dict[tuple[int, int, int], list[tuple[int, ...]]] = {}
    for gil, _, holder, _, stack, _, _, _, *late in reading["losses"]:
        if late[0]:
            found.setdefault((gil, holder, stack), []).append(tuple(late))
    return [
        Overrun(
            gil=gil,
            holder=holder,
            frames=frames[stack],
            holds=max(waits for _, _, waits, _ in rows),
            seconds=sum(ns for ns, *_ in rows) / 1e9,
            asleep_seconds=sum(asleep for _, asleep, *_ in rows) / 1e9,
            max_seconds=max(longest for *_, longest in rows) / 1e9,
        )
        for (gil, holder, stack), rows in found.items()
    ]


class FrameCache(dict[int, "Frames"]):
    """Stacks by their number, asked once each."""

    def __missing__(self, number: int) -> Frames:
        from fairlead import _probe

        self[number] = tuple((function, file, line) for function, file, line, *_ in _probe.stack(number))
        return self[number]
