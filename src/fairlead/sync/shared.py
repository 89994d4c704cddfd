"""Primitives in shared memory, for threads and tasks of several processes; Linux only.

    from multiprocessing import Process
    from fairlead.sync.shared import Lock

    lock = Lock()
    Process(target=work, args=(lock,)).start()     # spawn, forkserver and fork

Or by a name, which any process of the user may open: ``Lock("printer")``. Whatever process is killed at
whatever moment, what it held is not lost. docs/reference/shared.md tells what each promises.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import finalize

import fairlead.sync as _local
from fairlead._native import (
    Segment,
    SharedBarrier,
    SharedEvent,
    SharedLock,
    SharedQueue,
    SharedSemaphore,
)
from fairlead.errors import UsageError
from fairlead.sync import _segments
from fairlead.sync._segments import sweep

__all__ = [
    "Barrier",
    "BarrierStatistics",
    "Event",
    "Lock",
    "LockStatistics",
    "Queue",
    "QueueStatistics",
    "Semaphore",
    "SemaphoreStatistics",
    "sweep",
]

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

_S = TypeVar("_S", bound="_Shared")
_T = TypeVar("_T")


class _Shared(Segment if TYPE_CHECKING else object):  # type: ignore[misc]
    """What all have: a segment that is found by name or by pickle, and the wait of a task."""

    _fd: int
    _name: str | None
    _token: bytes
    _lines: dict[tuple[int, str], _local.Lock]
    _bells: dict[tuple[int, int], _local.Semaphore]

    @classmethod
    def _open(cls: type[_S], name: str | None, amount: int = 0, flags: int = 0) -> _S:
        def build(fd: int, token: bytes | None, making: bool) -> _S:
            return cls._map(fd, token, making, amount, flags)

        if name is None:
            self, fd, token = _segments.make(build)
            self._keep(fd, token, None)
            finalize(self, os.close, fd).atexit = False  # others may still ask for it
        else:
            self, place = _segments.open_named(_segments.path_of(name), build)
            self._keep(-1, b"", name)
            finalize(self, place.leave)
        if (self._amount, self._flags) != (amount, flags):
            raise UsageError(
                f"{name!r} is in use and was made with other arguments; all processes must give the same, or "
                "take another name"
            )
        return self

    @classmethod
    def _map(cls: type[_S], *args: Any) -> _S:
        raise NotImplementedError

    @classmethod
    def _arrive(cls: type[_S], pid: int, number: int, token: bytes) -> _S:
        def build(fd: int, token: bytes | None, making: bool) -> _S:
            return cls._map(fd, token, making, 0, 0)

        self, fd = _segments.borrow(pid, number, token, build)
        self._keep(fd, token, None)
        finalize(self, os.close, fd).atexit = False
        return self

    def _keep(self, fd: int, token: bytes, name: str | None) -> None:
        self._fd, self._token, self._name = fd, token, name
        self._lines, self._bells = {}, {}

    @property
    def name(self) -> str | None:
        """What other processes open it by; None: it travels by pickle alone."""
        return self._name

    def __reduce__(self) -> tuple[Any, ...]:
        if self._name is not None:
            return type(self)._open, (self._name, self._amount, self._flags)
        return type(self)._arrive, (os.getpid(), self._fd, self._token)

    async def _until(self, line: str, attempt: Callable[[], tuple[_T] | int]) -> _T:
        """What the attempt brings, which until then says which turn to wait for.

        Tasks stand in line, and the first one's herald waits.
        """
        key = (os.getpid(), line)  # a forked child has tasks of its own
        first = self._lines.get(key) or self._lines.setdefault(key, _local.Lock(fair=True))
        async with first:
            which = attempt()
            while isinstance(which, int):
                seen = self._ask(which)
                again = attempt()
                if again == which:
                    await self._turned(which, seen)
                    again = attempt()
                which = again
            return which[0]

    async def _turned(self, which: int, seen: int) -> None:
        key = (os.getpid(), which)
        bell = self._bells.get(key) or self._bells.setdefault(key, _local.Semaphore(0))
        self._arm(which, seen, bell)
        try:
            await bell.acquire_async()
        except BaseException:
            self._disarm(which)
            raise


class LockStatistics(NamedTuple):
    """A lock at one moment.

    Attributes:
        locked: whether a process holds it.
        owner: the number of that process, or None.
        owner_alive: whether that still runs; True where there is none.
        deaths: how many died with the lock, of those that were recovered from.
    """

    locked: bool
    owner: int | None
    owner_alive: bool
    deaths: int


class Lock(_Shared, SharedLock):
    """A lock that processes share, as multiprocessing.Lock, and that outlives them.

    It belongs to the process that takes it: any thread or task of that may release it. When the process ends
    with it, killed or not, the lock is not free, because what it protects may be half done: ``acquire``
    raises OwnerDiedError, for every caller, until ``recover`` is called. With ``take_over=True`` the next one
    simply has it. Waiters are not served in order: a newcomer may pass
    those that sleep.
    """

    def __new__(cls, name: str | None = None, *, take_over: bool = False) -> Lock:
        return cls._open(name, 0, bool(take_over))

    @classmethod
    def _map(cls, *args: Any) -> Lock:
        return SharedLock.__new__(cls, *args)

    async def acquire_async(self) -> bool:
        """As ``acquire``, for tasks, with the time-outs of their library."""
        return self.acquire(False) or await self._until("", lambda: (True,) if self.acquire(False) else 0)

    async def recover_async(self) -> bool:
        """As ``recover``, for tasks."""

        def attempt() -> tuple[bool] | int:
            try:
                return (self.recover(0),)
            except TimeoutError:
                return 0

        return await self._until("", attempt)

    async def __aenter__(self) -> None:
        await self.acquire_async()

    async def __aexit__(self, *_: object) -> None:
        self.release()

    def locked(self) -> bool:
        """Whether a process, alive or dead, holds it."""
        return self.statistics().locked

    def statistics(self) -> LockStatistics:
        """A record of the moment."""
        owner, alive, deaths = self._look()
        return LockStatistics(owner != 0, owner or None, alive, deaths)

    def __repr__(self) -> str:
        locked, owner, alive, _ = self.statistics()
        state = "free" if not locked else f"held by process {owner}" + ("" if alive else ", which is dead")
        return f"<fairlead.sync.shared.Lock {self.name or 'without a name'}, {state}>"


class SemaphoreStatistics(NamedTuple):
    """A semaphore at one moment.

    Attributes:
        value: permits that are free.
        deaths: owned permits that came back from processes that died.
    """

    value: int
    deaths: int


class Semaphore(_Shared, SharedSemaphore):
    """Permits that processes share, as multiprocessing.Semaphore.

    Any process may give permits, and there may come to be more than there were; one that dies keeps what it
    had taken. With ``owned=True`` there are as many as at first, at most 4096; each belongs to the process
    that takes it, only that gives it back, and when it dies the waiters have its permits. None is served
    in order.
    """

    def __new__(cls, value: int = 1, name: str | None = None, *, owned: bool = False) -> Semaphore:
        most = 4096 if owned else 0x7FFFFFFF
        if not isinstance(value, int) or not owned <= value <= most:
            raise UsageError(f"value must be a whole number from {int(owned)} to {most}, not {value!r}")
        return cls._open(name, value, bool(owned))

    @classmethod
    def _map(cls, *args: Any) -> Semaphore:
        return SharedSemaphore.__new__(cls, *args)

    async def acquire_async(self) -> bool:
        """As ``acquire``, for tasks, with the time-outs of their library."""
        return self.acquire(False) or await self._until("", lambda: (True,) if self.acquire(False) else 0)

    async def __aenter__(self) -> None:
        await self.acquire_async()

    async def __aexit__(self, *_: object) -> None:
        self.release()

    def locked(self) -> bool:
        """Whether none was free, a moment ago."""
        return self.statistics().value == 0

    def statistics(self) -> SemaphoreStatistics:
        """A record of the moment."""
        return SemaphoreStatistics(*self._look())

    def __repr__(self) -> str:
        return f"<fairlead.sync.shared.Semaphore {self.name or 'without a name'}, {self._look()[0]} free>"


class Event(_Shared, SharedEvent):
    """A flag that processes share, as multiprocessing.Event. A process that dies leaves it as it is."""

    def __new__(cls, name: str | None = None) -> Event:
        return cls._open(name)

    @classmethod
    def _map(cls, *args: Any) -> Event:
        return SharedEvent.__new__(cls, *args)

    async def wait_async(self) -> bool:
        """As ``wait``, for tasks, with the time-outs of their library."""
        since = self._word()
        return await self._until("", lambda: (True,) if self._passed(since) else 0)

    def __repr__(self) -> str:
        state = "set" if self.is_set() else "unset"
        return f"<fairlead.sync.shared.Event {self.name or 'without a name'}, {state}>"


class QueueStatistics(NamedTuple):
    """A queue at one moment.

    Attributes:
        used: bytes of its capacity that messages take, each 8 more than it has, in whole eights.
        capacity: how many there are.
        shut_down: whether nothing can be put any more.
        deaths_putting: processes that died while they put, of those that were found out.
        deaths_getting: that died while they got.
    """

    used: int
    capacity: int
    shut_down: bool
    deaths_putting: int
    deaths_getting: int


class Queue(_Shared, SharedQueue):
    """A bounded queue of messages of bytes that processes share: first in, first out, any number at each end.

    Of ``capacity_bytes`` a message takes 8 more than it has, in whole eights. A process that
    dies while it puts or gets leaves the queue whole, and takes at most that one message along. The next
    process at that end gets OwnerDiedError, once, has done nothing, and may go on. With
    ``take_over=True`` only the statistics tell.
    """

    def __new__(
        cls, name: str | None = None, *, capacity_bytes: int = 65536, take_over: bool = False
    ) -> Queue:
        if not isinstance(capacity_bytes, int) or not 16 <= capacity_bytes <= 1 << 34:
            raise UsageError(
                f"capacity_bytes must be a whole number from 16 to 2**34, not {capacity_bytes!r}"
            )
        return cls._open(name, (capacity_bytes + 7) // 8, bool(take_over))

    @classmethod
    def _map(cls, *args: Any) -> Queue:
        return SharedQueue.__new__(cls, *args)

    def put_nowait(self, data: Buffer) -> None:
        """``put(data, block=False)``."""
        self.put(data, False)

    def get_nowait(self) -> bytes:
        """``get(block=False)``."""
        return self.get(False)

    async def put_async(self, data: Buffer) -> None:
        """As ``put``, for tasks, with the time-outs of their library. Cancelled, it has put nothing."""

        def attempt() -> tuple[None] | int:
            which = self._try_put(data)
            return (None,) if which is None else which

        if isinstance(attempt(), int):
            await self._until("put", attempt)

    async def get_async(self) -> bytes:
        """As ``get``, for tasks, with the time-outs of their library. Cancelled, it has taken nothing."""

        def attempt() -> tuple[bytes] | int:
            found = self._try_get()
            return found if isinstance(found, int) else (found,)

        found = attempt()
        return await self._until("get", attempt) if isinstance(found, int) else found[0]

    def empty(self) -> bool:
        """Whether there was no message, a moment ago."""
        return self.statistics().used == 0

    def statistics(self) -> QueueStatistics:
        """A record of the moment."""
        used, capacity, shut, putting, getting = self._look()
        return QueueStatistics(used, capacity, shut > 0, putting, getting)

    def __repr__(self) -> str:
        used, capacity, shut, *_ = self.statistics()
        state = f"{used} of {capacity} bytes used{', shut down' if shut else ''}"
        return f"<fairlead.sync.shared.Queue {self.name or 'without a name'}, {state}>"


class BarrierStatistics(NamedTuple):
    """A barrier at one moment.

    Attributes:
        parties: how many meet.
        waiting: how many have come.
        broken: whether no party can meet until it is reset.
    """

    parties: int
    waiting: int
    broken: bool


class Barrier(_Shared, SharedBarrier):
    """Where so many threads and tasks of any processes meet, again and again, as multiprocessing.Barrier.

    A waiter that times out, is cancelled or interrupted, or dies, breaks it: all get BrokenBarrierError, at
    once or, of a death, within 64 ms, until ``reset``. A process that dies before it has come is not missed:
    give a time-out.
    """

    def __new__(cls, parties: int, name: str | None = None) -> Barrier:
        if not isinstance(parties, int) or not 1 <= parties <= 4096:
            raise UsageError(f"parties must be a whole number from 1 to 4096, not {parties!r}")
        return cls._open(name, parties)

    @classmethod
    def _map(cls, *args: Any) -> Barrier:
        return SharedBarrier.__new__(cls, *args)

    async def wait_async(self) -> int:
        """As ``wait``, for tasks. One that is cancelled breaks the barrier, unless all had come."""

        def come() -> tuple[tuple[int, int]] | int:
            party = self._come()
            return 0 if party is None else (party,)

        phase, place = await self._until("come", come)
        try:
            await self._until("met", lambda: (True,) if self._met(phase, place) else 0)
        except BaseException:
            self._leave(phase, place)
            raise
        return place

    async def __aenter__(self) -> int:
        return await self.wait_async()

    async def __aexit__(self, *_: object) -> None:
        pass

    @property
    def parties(self) -> int:
        """How many meet."""
        return self._amount

    @property
    def n_waiting(self) -> int:
        """How many have come, a moment ago."""
        return self._look()[0]

    @property
    def broken(self) -> bool:
        """Whether no party can meet until it is reset."""
        return self._look()[1]

    def statistics(self) -> BarrierStatistics:
        """A record of the moment."""
        return BarrierStatistics(self._amount, *self._look())

    def __repr__(self) -> str:
        parties, waiting, broken = self.statistics()
        state = "broken" if broken else f"{waiting} of {parties} have come"
        return f"<fairlead.sync.shared.Barrier {self.name or 'without a name'}, {state}>"
