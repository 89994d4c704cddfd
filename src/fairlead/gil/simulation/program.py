"""What simulated threads do: a small language of operations, and its translation for the simulator.

A program is groups of threads, and the counters and semaphores they share. A group's body is a
sequence of operations; a thread holds the GIL while it works off its body, except where an operation
says "off": there it drops the GIL first and takes it again afterwards. Times are nanoseconds.

    >>> from fairlead.gil import simulation as sim
    >>> work = sim.Group(body=(sim.Repeat(3, (sim.Run(1_000), sim.Yield())),), threads=2)
    >>> program = sim.Program(groups={"worker": work})
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.errors import UsageError
from fairlead.record.policies import PRIORITIES

if TYPE_CHECKING:
    from fairlead.record.policies import Priority

DEPTH = 4
"""How deep ``Repeat`` may be nested."""


@dataclass(frozen=True, slots=True)
class Run:
    """Run bytecode for ``ns``, give or take the fraction ``jitter`` (0..1). Sees a drop request at any
    time."""

    ns: int
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class Call:
    """Run C code for ``ns`` that keeps the GIL and does not look for drop requests."""

    ns: int
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class Off:
    """Off: compute for ``ns`` on a core (hashing, compression)."""

    ns: int
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class Sleep:
    """Off: sleep for ``ns``, using no core (a disk, a peer, a timer)."""

    ns: int
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class Yield:
    """Off: ``time.sleep(0)``, which sleeps for the timer slack, or is a ``sched_yield()`` where that is 0."""


@dataclass(frozen=True, slots=True)
class Acquire:
    """Take a semaphore (a lock is one that starts at 1); off only if it is not to be had at once."""

    semaphore: str


@dataclass(frozen=True, slots=True)
class Release:
    """Release a semaphore ``times`` times, waking as many."""

    semaphore: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Receive:
    """Off: a system call of ``ns``, then wait for a semaphore: ``recv()``."""

    semaphore: str
    ns: int


@dataclass(frozen=True, slots=True)
class Send:
    """Off: a system call of ``ns``, then release a semaphore: ``send()``."""

    semaphore: str
    ns: int


@dataclass(frozen=True, slots=True)
class Add:
    """Add to a counter."""

    counter: str
    value: int


@dataclass(frozen=True, slots=True)
class Until:
    """Repeat the body until a counter has a value; the counter is looked at before each round."""

    counter: str
    value: int
    body: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Repeat the body ``times`` (1 or more) times."""

    times: int
    body: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Forever:
    """Repeat the body until the simulation ends."""

    body: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """Start the next thread of a group, and wait (off) until it has held the GIL: ``Thread.start()``."""

    group: str


@dataclass(frozen=True, slots=True)
class Join:
    """Wait (off) for the end of each thread of a group, one after another."""

    group: str


@dataclass(frozen=True, slots=True)
class Either:
    """Go through the first body in ``millionths`` of a million times, through the second in all others."""

    millionths: int
    body: tuple[Operation, ...]
    otherwise: tuple[Operation, ...] = ()


@dataclass(frozen=True, slots=True)
class Arrive:
    """For foreign groups: wait for the next arrival of a Poisson process with a mean gap of ``ns``, and
    release a semaphore for it, whatever became of the arrivals before: an open loop."""

    semaphore: str
    ns: int


@dataclass(frozen=True, slots=True)
class Begin:
    """A request begins; with a semaphore, it began when the ``Arrive`` was due that this thread has taken."""

    semaphore: str = ""


@dataclass(frozen=True, slots=True)
class End:
    """The request ends: its length goes to the statistics of a group, the thread's own unless it is named."""

    group: str = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """All statistics and events begin here; what happened before is forgotten."""


Operation = (
    Run
    | Call
    | Off
    | Sleep
    | Yield
    | Acquire
    | Release
    | Receive
    | Send
    | Add
    | Until
    | Repeat
    | Forever
    | Start
    | Join
    | Either
    | Arrive
    | Begin
    | End
    | Measure
)

KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Run,
        Call,
        Off,
        Sleep,
        Yield,
        Acquire,
        Release,
        Receive,
        Send,
        Add,
        Until,
        Repeat,
        Forever,
        Start,
        Join,
        Either,
        Arrive,
        Begin,
        End,
        Measure,
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Threads that do the same."""

    body: tuple[Operation, ...]
    threads: int = 1
    """How many exist in all."""
    initial: int | None = None
    """How many of them run from the start (None: all); the others wait for a ``Start``."""
    foreign: bool = False
    """They belong to another process: they need cores, but never the GIL."""
    daemon: bool = False
    """The simulation does not wait for their end."""
    priority: Priority = "normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """All groups by name, and the start values of counters and semaphores by name."""

    groups: Mapping[str, Group]
    counters: Mapping[str, int] = field(default_factory=dict)
    semaphores: Mapping[str, int] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """Plain data that JSON can carry; ``from_data`` reads it."""
        groups = {
            name: {
                **{f.name: getattr(group, f.name) for f in dataclasses.fields(group) if f.name != "body"},
                "body": [_operation_data(operation) for operation in group.body],
            }
            for name, group in self.groups.items()
        }
        return {"groups": groups, "counters": dict(self.counters), "semaphores": dict(self.semaphores)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Program:
        """The program that ``as_data`` wrote. Raises UsageError for anything else."""
        try:
            groups = {
                name: Group(**{**group, "body": tuple(_operation(one) for one in group["body"])})
                for name, group in data["groups"].items()
            }
            return cls(groups=groups, counters=data["counters"], semaphores=data["semaphores"])
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"not a simulator's program: {error!r}") from error


def _operation_data(operation: Operation) -> list[Any]:
    values = [getattr(operation, f.name) for f in dataclasses.fields(operation)]
    return [
        type(operation).__name__,
        *([_operation_data(one) for one in value] if isinstance(value, tuple) else value for value in values),
    ]


def _operation(data: Sequence[Any]) -> Operation:
    values = (
        tuple(_operation(one) for one in value) if isinstance(value, list) else value for value in data[1:]
    )
    made: Operation = KINDS[data[0]](*values)
    return made


_OP = struct.Struct("=BBHII4xq")
_GROUP = struct.Struct("=IIIBBBx")
# in the order of fl_op_kind
_NAMES = (
    "RUN CALL OFF SLEEP YIELD ACQUIRE RELEASE RECEIVE SEND ADD UNTIL LOOP JUMP START JOIN BEGIN END MEASURE"
    " EXIT ARRIVE STAMPED SOMETIMES"
)
_CODE = {name: number for number, name in enumerate(_NAMES.split())}


class Compiled:
    """A program as the arrays that ``fairlead._native.simulate`` takes. Raises UsageError for what cannot
    run."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._ops: list[bytes] = []
        groups = []
        for name, group in program.groups.items():
            initial = group.threads if group.initial is None else group.initial
            if not 0 <= initial <= group.threads:
                raise UsageError(
                    f"group {name!r} has {group.threads} threads, of which {initial} cannot be initial"
                )
            if group.priority not in PRIORITIES:
                raise UsageError(f"group {name!r}: priority is one of {', '.join(PRIORITIES)}")
            priority = PRIORITIES.index(group.priority)
            groups.append(
                _GROUP.pack(len(self._ops), group.threads, initial, group.foreign, group.daemon, priority)
            )
            self._body(group.body, 0)
            self._emit("EXIT")
        self.groups = b"".join(groups)
        self.counters = struct.pack(f"={len(program.counters)}q", *program.counters.values())
        self.semaphores = struct.pack(f"={len(program.semaphores)}q", *program.semaphores.values())
        self.ops = b"".join(self._ops)

    def _emit(
        self, code: str, ns: int = 0, *, index: int = 0, target: int = 0, jitter: float = 0.0, depth: int = 0
    ) -> None:
        self._ops.append(self._pack(code, ns, index=index, target=target, jitter=jitter, depth=depth))

    @staticmethod
    def _pack(
        code: str, ns: int, *, index: int = 0, target: int = 0, jitter: float = 0.0, depth: int = 0
    ) -> bytes:
        if not 0.0 <= jitter <= 1.0:
            raise UsageError(f"a jitter is a fraction from 0 to 1, not {jitter}")
        return _OP.pack(_CODE[code], depth, round(jitter * 1000), index, target, ns)

    def _index(self, names: Mapping[str, Any], name: str, what: str) -> int:
        try:
            return list(names).index(name)
        except ValueError:
            raise UsageError(f"the program has no {what} {name!r}") from None

    def _body(self, body: tuple[Operation, ...], depth: int) -> None:
        program = self._program
        for operation in body:
            match operation:
                case Run(ns, jitter) | Call(ns, jitter) | Off(ns, jitter) | Sleep(ns, jitter):
                    self._emit(type(operation).__name__.upper(), ns, jitter=jitter)
                case Acquire(name):
                    self._emit("ACQUIRE", index=self._index(program.semaphores, name, "semaphore"))
                case Release(name, times):
                    self._emit("RELEASE", times, index=self._index(program.semaphores, name, "semaphore"))
                case Receive(name, ns) | Send(name, ns) | Arrive(name, ns):
                    index = self._index(program.semaphores, name, "semaphore")
                    self._emit(type(operation).__name__.upper(), ns, index=index)
                case Add(name, value):
                    self._emit("ADD", value, index=self._index(program.counters, name, "counter"))
                case Start(name) | Join(name):
                    index = self._index(program.groups, name, "group")
                    self._emit(type(operation).__name__.upper(), index=index)
                case Until() | Repeat() | Forever():
                    self._loop(operation, depth)
                case Either():
                    self._either(operation, depth)
                case Begin(name) if name:
                    self._emit("STAMPED", index=self._index(program.semaphores, name, "semaphore"))
                case End(name) if name:
                    self._emit("END", target=1 + self._index(program.groups, name, "group"))
                case _:
                    self._emit(type(operation).__name__.upper())

    def _either(self, either: Either, depth: int) -> None:
        if not 0 <= either.millionths <= 1_000_000:
            raise UsageError(f"millionths are from 0 to 1,000,000, not {either.millionths}")
        fork = len(self._ops)
        self._emit("SOMETIMES")
        self._body(either.otherwise, depth)
        around = len(self._ops)
        self._emit("JUMP")
        self._ops[fork] = self._pack("SOMETIMES", either.millionths, target=len(self._ops))
        self._body(either.body, depth)
        self._ops[around] = self._pack("JUMP", 0, target=len(self._ops))

    def _loop(self, loop: Until | Repeat | Forever, depth: int) -> None:
        begin = len(self._ops)
        if isinstance(loop, Repeat):
            if loop.times < 1 or depth >= DEPTH:
                raise UsageError(f"Repeat wants at least one round, and at most {DEPTH} nested in each other")
            self._body(loop.body, depth + 1)
            self._emit("LOOP", loop.times, target=begin, depth=depth)
            return
        if isinstance(loop, Until):
            self._emit("UNTIL")
        self._body(loop.body, depth)
        self._emit("JUMP", target=begin)
        if isinstance(loop, Until):
            index = self._index(self._program.counters, loop.counter, "counter")
            self._ops[begin] = self._pack("UNTIL", loop.value, index=index, target=len(self._ops))
