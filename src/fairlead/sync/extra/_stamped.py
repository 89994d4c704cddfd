"""StampedLock: many read, or one writes; an optimistic reader learns afterwards whether one has written."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import NamedTuple, final

from fairlead.errors import NotHeldError, UsageError
from fairlead.sync import Event
from fairlead.sync.extra._common import check_timeout, refuse_pickling


class StampedLockStatistics(NamedTuple):
    """A stamped lock at one moment.

    Attributes:
        readers: threads and tasks that hold it to read.
        writing: whether one holds it to write.
        waiting: threads and tasks that wait.
    """

    readers: int
    writing: bool
    waiting: int


@final
class StampedLock:
    """Many read, or one writes; an optimistic reader takes no lock, and learns afterwards whether a writer
    was active.

    Stamps are whole numbers: a holder's, by ``acquire_read`` or ``acquire_write``, to ``release`` or to
    convert, or an optimistic reader's, by ``optimistic_read``, to ``validate``. 0 is none. The lock is not
    reentrant. Waiters are served in the order of their arrival, readers that follow each other together.
    """

    # A holder's stamp is an odd number that is given once, and an optimistic reader's the version, which is
    # even. The version is odd while a writer is active: it changes in the writer's own thread, so a writer
    # that was granted the lock and never ran has changed nothing.
    __slots__ = ("__weakref__", "_guard", "_held", "_last", "_queue", "_readers", "_version", "_writing")

    def __init__(self) -> None:
        self._guard = Lock()
        self._readers = 0
        self._writing = False
        self._queue: deque[tuple[bool, Event]] = deque()
        """Of each waiter, whether it writes, and what is set when it holds the lock."""
        self._version = 2
        self._last = -1
        self._held: dict[int, bool] = {}
        """Of each holder's stamp, whether it writes."""

    def acquire_read(self, timeout: float | None = None) -> int:
        """Acquires the lock to read, beside other readers, waiting if need be. Returns a stamp, or 0 if the
        time, in seconds, was over first. For threads; tasks await ``acquire_read_async``.
        """
        return self._acquire(False, timeout)

    def acquire_write(self, timeout: float | None = None) -> int:
        """As ``acquire_read``, to write, alone."""
        return self._acquire(True, timeout)

    async def acquire_read_async(self) -> int:
        """As ``acquire_read``, for tasks. A task that is cancelled does not hold the lock."""
        return await self._acquire_async(False)

    async def acquire_write_async(self) -> int:
        """As ``acquire_read_async``, to write."""
        return await self._acquire_async(True)

    def release(self, stamp: int, /) -> None:
        """Releases; any thread or task may. Raises NotHeldError (a RuntimeError) for a stamp that holds
        nothing.
        """
        with self._guard:
            self._leave(self._take(stamp))

    def optimistic_read(self) -> int:
        """A stamp for an optimistic reader, to be validated before what was read is used; 0 while a writer is
        active. Never waits, and delays no writer.
        """
        version = self._version
        return 0 if version & 1 else version

    def validate(self, stamp: int, /) -> bool:
        """Whether no writer has begun since ``optimistic_read`` returned this stamp: then what was read since
        is of one moment. For the stamp of a holder: whether it still holds the lock. False for 0.
        """
        return stamp in self._held if stamp & 1 else stamp == self._version

    def try_convert_to_write(self, stamp: int, /) -> int:
        """Returns a writer's stamp in place of the given one; 0, and that one stays valid, if it would have
        to wait. A reader must be alone, but may pass the waiters; an optimistic reader must find the lock
        free, and no writer since. Raises NotHeldError for a stamp that was released.
        """
        return self._convert(stamp, True)

    def try_convert_to_read(self, stamp: int, /) -> int:
        """As ``try_convert_to_write``, to a reader's stamp. A writer goes on as a reader, with no other
        writer in between.
        """
        return self._convert(stamp, False)

    def try_convert_to_optimistic_read(self, stamp: int, /) -> int:
        """Releases, and returns a stamp as ``optimistic_read``, valid until the next writer. An optimistic
        reader keeps its stamp, or gets 0 if it is not valid any more.
        """
        if not stamp & 1:
            return stamp if self.validate(stamp) else 0
        with self._guard:
            self._leave(self._take(stamp))
            return self._version

    @property
    def reading(self) -> StampedGuard:
        """For one ``with``, to read."""
        return StampedGuard(self, False)

    @property
    def writing(self) -> StampedGuard:
        """For one ``with``, to write."""
        return StampedGuard(self, True)

    def statistics(self) -> StampedLockStatistics:
        """A record of the moment: readers, writing, waiting. Optimistic readers are not counted."""
        with self._guard:
            return StampedLockStatistics(self._readers, self._writing, len(self._queue))

    def _acquire(self, writes: bool, timeout: float | None) -> int:
        check_timeout(timeout)
        turn = self._enter(writes)
        if turn is not None:
            try:
                in_time = turn.wait(timeout)
            except BaseException:
                self._give_up(writes, turn)
                raise
            if not in_time and self._left_queue(writes, turn):
                return 0
        return self._new_stamp(writes)

    async def _acquire_async(self, writes: bool) -> int:
        turn = self._enter(writes)
        if turn is not None:
            try:
                await turn.wait_async()
            except BaseException:
                self._give_up(writes, turn)
                raise
        return self._new_stamp(writes)

    def _enter(self, writes: bool) -> Event | None:
        """None: the caller holds the lock; otherwise it waits for this."""
        with self._guard:
            if not self._queue and self._fits(writes):
                self._hold(writes)
                return None
            turn = Event()
            self._queue.append((writes, turn))
            return turn

    def _left_queue(self, writes: bool, turn: Event) -> bool:
        """False: it holds the lock by now."""
        with self._guard:
            try:
                self._queue.remove((writes, turn))
            except ValueError:
                return False
            self._serve()
            return True

    def _give_up(self, writes: bool, turn: Event) -> None:
        if not self._left_queue(writes, turn):
            with self._guard:
                self._leave(writes)

    def _new_stamp(self, writes: bool) -> int:
        with self._guard:
            return self._stamp(writes)

    def _convert(self, stamp: int, writes: bool) -> int:
        with self._guard:
            if not stamp & 1:
                if stamp != self._version or self._queue or not self._fits(writes):
                    return 0
                self._hold(writes)
                return self._stamp(writes)
            if self._held.get(stamp) is writes:
                return stamp
            if writes and stamp in self._held and self._readers > 1:
                return 0
            self._take(stamp)
            self._readers, self._writing = int(not writes), writes
            self._version += not writes
            new = self._stamp(writes)
            self._serve()
            return new

    # With the guard held:

    def _fits(self, writes: bool) -> bool:
        return not self._writing and not (writes and self._readers)

    def _hold(self, writes: bool) -> None:
        self._writing = writes
        self._readers += not writes

    def _stamp(self, writes: bool) -> int:
        """A new one; its holder runs, and may write from now on."""
        self._version += writes
        self._last += 2
        self._held[self._last] = writes
        return self._last

    def _take(self, stamp: int) -> bool:
        """Whether its holder wrote; from now on it is none."""
        writes = self._held.pop(stamp, None)
        if writes is None:
            raise NotHeldError(
                "this stamp holds nothing: it was released, converted, or is an optimistic one"
            )
        return writes

    def _leave(self, writes: bool) -> None:
        self._version += self._version & 1
        self._writing = False
        self._readers -= not writes
        self._serve()

    def _serve(self) -> None:
        while self._queue and self._fits(self._queue[0][0]):
            writes, turn = self._queue.popleft()
            self._hold(writes)
            turn.set()

    def __repr__(self) -> str:
        readers, writing, waiting = self.statistics()
        state = "writing" if writing else "open"
        waits = f"{waiting} waiting, at {id(self):#x}"
        return f"<fairlead.sync.extra.StampedLock {state}, {readers} readers, {waits}>"

    __reduce__ = refuse_pickling


@final
class StampedGuard:
    """One ``with`` of a StampedLock."""

    __slots__ = ("_lock", "_stamp", "_writes")

    def __init__(self, lock: StampedLock, writes: bool) -> None:
        self._lock = lock
        self._writes = writes
        self._stamp: int | None = None

    def __enter__(self) -> int:
        self._check()
        self._stamp = self._lock._acquire(self._writes, None)
        return self._stamp

    def __exit__(self, *exc_info: object) -> None:
        self._lock.release(0 if self._stamp is None else self._stamp)

    async def __aenter__(self) -> int:
        self._check()
        self._stamp = await self._lock._acquire_async(self._writes)
        return self._stamp

    async def __aexit__(self, *exc_info: object) -> None:
        self.__exit__()

    def _check(self) -> None:
        if self._stamp is not None:
            raise UsageError("this block was entered before: ask the lock for another")
