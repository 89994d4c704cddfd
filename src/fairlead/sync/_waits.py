"""waits: which thread or task waits for what, since when, and which holds it.

Native code takes the picture: it knows which thread sleeps for what, and which tasks are queued. Here it gets
its names: those of threads and tasks, and the lines of their stacks. Nothing of this costs anything before it
is asked for, but for what a thread says before and after it sleeps (native/sync/wait/thread_table.h).

A primitive is shown by its ``repr``. One that has holders names them by a method ``_holders()``: a
list of (number, task or None, alone), where the number is native code's for the thread, and odd where a task
of that thread is meant, and alone is whether no other can be inside. That is all that a new one has to
bring.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

from fairlead import _native
from fairlead.wait import current_task, task_behind

if TYPE_CHECKING:
    from traceback import FrameSummary

_Place = tuple[CodeType, int]
ActorKey = tuple[int, Any]
UNKNOWN = "a task"
_PLACE = (1 << 40) - 1


class Actor(NamedTuple):
    """A thread or a task that waits for something, or has it.

    Attributes:
        thread: ``threading.get_ident()`` of the thread, or of that which runs the task's loop; 0 when it has
            ended.
        thread_name: its name; None for one that ``threading`` of this interpreter does not know.
        task: the name of the task or greenlet; None for a thread, and for a task that cannot be told from
            the others of its loop.
        is_task: whether a task is meant, and not the thread itself.
        interpreter: the number of its interpreter; None where that is not known.
        stack: where it is, outermost first; empty where that cannot be read.
        ended: whether this thread or task has ended, as far as that is known: it will release nothing.
    """

    thread: int
    thread_name: str | None
    task: str | None
    is_task: bool
    interpreter: int | None
    stack: tuple[FrameSummary, ...] = ()
    ended: bool = False

    def __str__(self) -> str:
        thread = (
            f"thread {self.thread_name!r}" if self.thread_name is not None else f"thread {self.thread:#x}"
        )
        if not self.thread:
            thread = "a thread that has ended"
        if self.interpreter is not None and self.interpreter != _here():
            thread += f" of interpreter {self.interpreter}"
        if not self.is_task:
            return thread
        task = "a task" if self.task is None else f"task {self.task!r}"
        return f"{task}{', which has ended,' if self.ended and self.thread else ''} of {thread}"


class Wait(NamedTuple):
    """One wait of one thread or task.

    Attributes:
        waiter: the thread or task that waits.
        kind: what it waits for: the name of the primitive's class.
        primitive: the primitive as its ``repr`` was; of another interpreter's, class and address.
        since: when it began to wait, in seconds of ``time.monotonic()``.
        until: when it gives up, on the same clock; None: never, or by a time-out of its library.
        one_of: how many it waits for at once, of which this is one (``select``); 1 otherwise.
        owners: its holders, as far as the primitive knows owners: locks do.
    """

    waiter: Actor
    kind: str
    primitive: str
    since: float
    until: float | None
    one_of: int
    owners: tuple[Actor, ...]

    def __str__(self) -> str:
        until = "" if self.until is None else f", gives up in {max(0, self.until - time.monotonic()):.3g} s"
        one_of = "" if self.one_of == 1 else f", one of {self.one_of}"
        waited = max(0.0, time.monotonic() - self.since)
        lines = [f"{self.waiter} has waited {waited:.3g} s for {self.primitive}{one_of}{until}\n"]
        lines += _lines(self.waiter)
        for owner in self.owners:
            lines.append(f"  held by {owner}\n")
            lines += ["  " + line.replace("\n  ", "\n    ") for line in _lines(owner)]
        return "".join(lines).rstrip("\n")


def _lines(actor: Actor) -> list[str]:
    """Its stack as a traceback has it, without how its thread was started."""
    from traceback import StackSummary

    inside = list(actor.stack)
    while inside and inside[0].filename == threading.__file__:
        del inside[0]
    return StackSummary.from_list(inside).format()


class Waits(tuple[Wait, ...]):
    """The waits of one moment; as text, all of them with their stacks."""

    __slots__ = ()

    def __str__(self) -> str:
        title = f"fairlead.sync: {len(self) or 'nothing'} waiting at {time.monotonic():.3f} s"
        return "\n\n".join([title, *map(str, self)])


def waits() -> Waits:
    """Which threads and tasks of this process wait for what of ``fairlead.sync``, since when, held by which.

    Of threads, tasks of all loops, and greenlets, in all interpreters; the longest wait comes first. Each
    wait with its waiter's stack is one moment's. It may be over by the time you read of it, and owners are
    looked up a moment later. Stacks are read of this interpreter; without a GIL, of threads that wait, and
    of what runs in the calling thread. It never waits, takes no lock of Python's but
    ``threading.enumerate()``'s, and may be called in a signal handler.
    """
    return Waits(seen.wait for seen in look())


class Seen(NamedTuple):
    """A wait, and what it is known by: the waiter, the cell, and the actors that must go on before it can
    end.

    An actor's key is a pair: the number of a thread, and its task; None: the thread itself; UNKNOWN: one of
    its tasks.
    """

    wait: Wait
    key: ActorKey
    cell: int
    by: tuple[ActorKey, ...]


def look() -> list[Seen]:
    """One picture, the longest wait first."""
    seen = _native.waits()
    names = _Look(seen)
    return sorted((names.wait(*one) for one in seen), key=lambda one: one.wait.since)


class TaskNumbers:
    """Tasks that have a number, so that a Lock can say which of them has it."""

    def __init__(self) -> None:
        self._by_task: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._tasks: WeakValueDictionary[int, Any] = WeakValueDictionary()

    def __call__(self) -> int:
        """That of the task that runs here; 0: none does."""
        task = current_task()
        if task is None:
            return 0
        number = self._by_task.get(task)
        if number is None:
            number = self._by_task[task] = _native.task_serial()
            self._tasks[number] = task
        return number

    def task(self, owner: int) -> Any:
        """Of a holder's number: its task, or None."""
        return self._tasks.get(owner >> 40) if owner >> 40 else None


numbers = TaskNumbers()


class _Look:
    """What is looked up once for all waits of one picture."""

    def __init__(self, seen: list[tuple[Any, ...]]) -> None:
        self._names = {thread.ident: thread.name for thread in threading.enumerate()}
        self._gil = getattr(sys, "_is_gil_enabled", lambda: True)()
        self._asleep = {ident: stack for *_, ident, _, _, _, _, _, stack in seen if stack is not None}
        self._frames = sys._current_frames() if self._gil else {threading.get_ident(): sys._getframe()}
        if sys.is_finalizing():
            self._frames = {}  # there may be nothing left to read them with

    def _holders(self, what: Any) -> list[tuple[int, Any, bool]]:
        return [(number, task or numbers.task(number), alone) for number, task, alone in what._holders()]

    def wait(
        self, what: Any, type_name: str, cell: int, owner: int, number: int, ident: int, space: int,
        since: float, until: float | None, one_of: int, future: Any, stack: list[_Place] | None,
    ) -> Seen:  # fmt: skip
        kind = type_name.rpartition(".")[2]
        holders: list[tuple[int, Any, bool]] = []
        if what is None:
            primitive = f"<{kind} at {cell:#x} of interpreter {space}>"
            if owner:
                holders = [(owner, numbers.task(owner), True)]
        else:
            primitive = repr(what)
            if hasattr(what, "_holders"):
                holders = self._holders(what)
        task = None
        if number & 1:
            ident = _native.thread_of(number)
            if future is not None and self._mine(ident):
                task = task_behind(future)
            task = task or numbers.task(number)
            waiter = self._actor(number, task, space)
        else:
            waiter = Actor(ident, self._names.get(ident), None, False, space, _summary(stack or ()))
        owners = tuple(self._actor(number, task) for number, task, _ in holders)
        if hasattr(what, "_holders") and any(owner.ended for owner in owners):
            # or it has let go, and ended, since it was seen inside
            still = self._holders(what)
            owners = tuple(
                owner
                for owner, holder in zip(owners, holders, strict=True)
                if not owner.ended or holder in still
            )
        key = _actor_key(number, task)
        # a reader waits for readers only where a writer is before it, and that one may give up
        writes = kind == "RWLockView" and " writing of " in primitive
        by = tuple(_actor_key(number, task) for number, task, alone in holders if alone or writes)
        if writes:  # a holder that goes on to write is not in its own way
            by = tuple(one for one in by if one != key)
        return Seen(Wait(waiter, kind, primitive, since, until, one_of, owners), key, cell, by)

    def _mine(self, ident: int) -> bool:
        """Whether a task of this thread's may be looked at from here."""
        return self._gil or ident == threading.get_ident()

    def _actor(self, number: int, task: Any, space: int | None = None) -> Actor:
        ident = _native.thread_of(number)
        name = self._names.get(ident)
        if space is None and name is not None:
            space = _here()
        places: Any = ()
        if task is not None and self._mine(ident) and not _runs(task):
            places = reversed(list(_of_task(task)))
        elif task is not None or not number & 1:
            places = self._asleep.get(ident) or list(_of_frame(self._frames.get(ident)))
        ended = not ident or (task is not None and _native.task_ended(task))
        return Actor(ident, name, _name(task), bool(number & 1), space, _summary(places), ended)


def _actor_key(number: int, task: Any) -> ActorKey:
    return (number & _PLACE) >> 1, (task or UNKNOWN) if number & 1 else None


def _here() -> int:
    return _native.interpreter()


def _name(task: Any) -> str | None:
    if task is None:
        return None
    return str(task.get_name() if hasattr(task, "get_name") else getattr(task, "name", None) or task)


def _runs(task: Any) -> bool:
    """Whether it runs at this moment: then its stack is that of its thread."""
    if hasattr(task, "gr_frame"):
        return task.gr_frame is None
    awaited = task.get_coro() if hasattr(task, "get_coro") else getattr(task, "coro", None)
    return bool(getattr(awaited, "cr_running", getattr(awaited, "gi_running", False)))


def _of_frame(frame: FrameType | None) -> Iterator[_Place]:
    while frame is not None:
        yield frame.f_code, frame.f_lineno
        frame = frame.f_back


def _of_task(task: Any) -> Iterator[_Place]:
    """Of what is suspended, outermost first: coroutines, and what they await; or a greenlet's frames."""
    if hasattr(task, "gr_frame"):
        yield from reversed(list(_of_frame(task.gr_frame)))
        return
    awaited = task.get_coro() if hasattr(task, "get_coro") else getattr(task, "coro", None)
    while awaited is not None:
        frame = next((getattr(awaited, name, None) for name in _FRAMES if hasattr(awaited, name)), None)
        if frame is not None:
            yield frame.f_code, frame.f_lineno
        awaited = next((getattr(awaited, name) for name in _AWAITS if hasattr(awaited, name)), None)


_FRAMES = ("cr_frame", "gi_frame", "ag_frame")
_AWAITS = ("cr_await", "gi_yieldfrom", "ag_await")


def _summary(places: Any) -> tuple[FrameSummary, ...]:
    """Of places from the innermost to the outermost; the lines are read when they are shown."""
    if not (places := list(places)):
        return ()
    from traceback import FrameSummary

    return tuple(
        FrameSummary(code.co_filename, line, code.co_name, lookup_line=False)
        for code, line in reversed(places)
    )
