"""Circles of waits that no waiter in them can end.

Prior art: the wait-for graph of database systems (Coffman, Elphick and Shoshani, "System Deadlocks", ACM
Computing Surveys, 1971), and taking it twice so as to see one moment of it (Chandy and Lamport's "consistent
cut", with two collects).

**Invariant.** What is reported was there at one moment: each of the circle waited, for ever, for what the
next one had. Both pictures show every wait of the circle, the same by waiter, by cell, since when;
so each lasted from before the end of the first picture until after the beginning of the second, and in
between all of them were there together. Its owner was looked up after the first. A thread that waits
releases nothing, so it had it in between, too. From then on none goes on unless something from outside the
circle acts: a cancellation, a signal handler that raises, or a Lock that is released by a thread that has not
taken it. So it is reported, and no waiter is made to fail: only the program can know whether such help comes.

An edge goes from a waiter to each one that must go on first. No edge goes from a waiter that gives up in time
(``timeout``), from one that waits for one of several things (``select``), and for nothing that has no owner.
A task's edge to its own thread is there while that thread sleeps: then no task of its loop runs.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from numbers import Real
from types import TracebackType
from typing import Any, NamedTuple

from fairlead import _native
from fairlead.errors import DeadlockWarning
from fairlead.sync._waits import UNKNOWN, ActorKey, Seen, Wait, look, numbers


class Deadlock(NamedTuple):
    """A circle of threads and tasks.

    Attributes:
        waits: the waits in it; the owner of what each waits for waits next, and the last one's owner first.
    """

    waits: tuple[Wait, ...]

    def __str__(self) -> str:
        count = len(self.waits)
        what = "itself" if count == 1 else f"each other, {count} of them"
        names = ", ".join(str(wait.waiter) for wait in self.waits)
        return f"deadlock: {names} wait{'s' if count == 1 else ''} for {what}\n\n" + "\n\n".join(
            str(wait) for wait in self.waits
        )


def _find() -> list[tuple[Deadlock, frozenset[Any]]]:
    before = {_identity(seen): seen for seen in look() if _for_ever(seen)}
    if not before:
        return []
    seen = [before[identity] for one in look() if (identity := _identity(one)) in before]
    return [
        (Deadlock(tuple(one.wait for one in circle)), frozenset(map(_identity, circle)))
        for circle in _circles({one.key: one for one in seen})
    ]


def _for_ever(seen: Seen) -> bool:
    return seen.wait.until is None and seen.wait.one_of == 1 and seen.key[1] is not UNKNOWN


def _identity(seen: Seen) -> tuple[ActorKey, int, float]:
    return seen.key, seen.cell, seen.wait.since


def _circles(waiting: dict[ActorKey, Seen]) -> list[list[Seen]]:
    """Depth first along the edges; every circle that is found has one member at least that no other has."""
    found: list[list[Seen]] = []
    done: set[ActorKey] = set()

    def next_of(key: ActorKey) -> list[ActorKey]:
        thread, task = key
        after = list(waiting[key].by) if key in waiting else []
        if task is not None and (thread, None) in waiting:
            after.append((thread, None))
        return after

    for start in list(waiting):
        path: list[ActorKey] = []
        branches = [iter([start])]
        while branches:
            key = next(branches[-1], None)
            if key is None:
                branches.pop()
                if path:
                    done.add(path.pop())
            elif key in path:
                found.append([waiting[one] for one in path[path.index(key) :] if one in waiting])
            elif key not in done:
                path.append(key)
                branches.append(iter(next_of(key)))
    return found


class Detector:
    """Looks for deadlocks from time to time, in a daemon thread; ``detect_deadlocks`` makes it."""

    def __init__(self, interval: float, on_deadlock: Callable[[Deadlock], object]) -> None:
        self._interval = interval
        self._on_deadlock = on_deadlock
        self._over = threading.Event()
        self._stopping = threading.Lock()
        self._told: set[frozenset[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="fairlead deadlocks", daemon=True)
        self._thread.start()
        _native.name_tasks(numbers, True)

    def now(self) -> tuple[Deadlock, ...]:
        """The circles of waits of this moment, each once, whether they were reported or not.

        Nothing is returned that is over by itself: every member waits, without a time-out, for what the next
        one has. It takes two pictures like ``waits()``, and may be called wherever that may.
        """
        return tuple(deadlock for deadlock, _ in _find())

    def stop(self) -> None:
        """Ends the looking; a second time nothing."""
        with self._stopping:
            if not self._over.is_set():
                self._over.set()
                _native.name_tasks(numbers, False)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> Detector:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._over.wait(self._interval):
            self._look()

    def _look(self) -> None:
        found = _find()
        new = [deadlock for deadlock, identity in found if identity not in self._told]
        self._told = {identity for _, identity in found}
        for deadlock in new:
            try:
                self._on_deadlock(deadlock)
            except Exception as error:  # noqa: BLE001 - the callback's, which must not end the looking
                threading.excepthook(
                    threading.ExceptHookArgs((type(error), error, error.__traceback__, self._thread))
                )


def _warn(deadlock: Deadlock) -> None:
    warnings.warn(DeadlockWarning(str(deadlock)), stacklevel=2)


def detect_deadlocks(
    *, interval: float = 1.0, on_deadlock: Callable[[Deadlock], object] | None = None
) -> Detector:
    """Looks for deadlocks from now on, until ``stop()`` or the end of the ``with`` block.

    A deadlock is reported once, within two intervals after it came about: by a warning, DeadlockWarning, with
    the names, stacks and primitives of all in it; or to ``on_deadlock``, in the detector's thread. No wait is
    ended by it: a task may yet be cancelled, and a Lock be released by another.

    Args:
        interval: seconds between two looks.
        on_deadlock: what is called with a ``Deadlock``. What it raises goes to ``threading.excepthook``.
    """
    if not isinstance(interval, Real) or not interval > 0 or interval > threading.TIMEOUT_MAX:
        raise ValueError(f"interval is a number of seconds, more than 0, not {interval!r}")
    if on_deadlock is not None and not callable(on_deadlock):
        raise TypeError(
            f"on_deadlock is called with a Deadlock, and a {type(on_deadlock).__name__} cannot be"
        )
    return Detector(interval, on_deadlock or _warn)
