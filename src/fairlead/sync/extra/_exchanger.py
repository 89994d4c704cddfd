"""Exchanger: two parties meet and swap objects."""

from __future__ import annotations

from threading import Lock
from typing import Generic, NamedTuple, TypeVar, final

from fairlead.errors import ChannelClosedError, WaitTimeoutError
from fairlead.sync import Event
from fairlead.sync.extra._common import check_timeout, refuse_pickling

_T = TypeVar("_T")


class ExchangerStatistics(NamedTuple):
    """An exchanger at one moment.

    Attributes:
        waiting: parties that wait for another: 0 or 1.
        closed: whether it has been closed.
    """

    waiting: int
    closed: bool


class _Offer(Generic[_T]):
    """Of a party that waits: what it brings, and what it gets."""

    __slots__ = ("brings", "gets", "met")

    def __init__(self, brings: _T) -> None:
        self.brings = brings
        self.gets: list[_T] = []
        """Empty at the end: the exchanger was closed."""
        self.met = Event()


@final
class Exchanger(Generic[_T]):
    """A point at which two parties swap objects, as java.util.concurrent.Exchanger: threads, tasks and
    greenlets, in the order of their arrival.
    """

    __slots__ = ("__weakref__", "_closed", "_lock", "_offer")

    def __init__(self) -> None:
        self._lock = Lock()
        self._offer: _Offer[_T] | None = None
        self._closed = False

    def exchange(self, item: _T, /, timeout: float | None = None) -> _T:
        """Waits for another party, and swaps: returns what the other brought, which gets this. For threads;
        tasks await ``exchange_async``. ``timeout`` is in seconds.

        Raises WaitTimeoutError (a TimeoutError) when no other party came within the time, and
        ChannelClosedError when it is closed; then the item is still the caller's.
        """
        check_timeout(timeout)
        mine = _Offer(item)
        try:
            if (other := self._meet(mine)) is not None:
                return other.brings
            in_time = mine.met.wait(timeout)
        except BaseException:
            self._withdraw(mine)
            raise
        if not in_time and self._withdraw(mine):
            raise WaitTimeoutError("no other party came within the time; the item is still yours")
        return _got(mine)

    async def exchange_async(self, item: _T, /) -> _T:
        """As ``exchange``, for tasks. A task that is cancelled before it has met another keeps its item; if
        it has met another and has not run since, the other's item is lost.
        """
        mine = _Offer(item)
        try:
            if (other := self._meet(mine)) is not None:
                return other.brings
            await mine.met.wait_async()
        except BaseException:
            self._withdraw(mine)
            raise
        return _got(mine)

    def close(self) -> None:
        """Closes it for good: a present waiter and later callers get ChannelClosedError, and keep their
        items. Never waits.
        """
        with self._lock:
            self._closed = True
            offer, self._offer = self._offer, None
        if offer is not None:
            offer.met.set()

    def statistics(self) -> ExchangerStatistics:
        """A record of the moment: waiting (0 or 1), closed."""
        return ExchangerStatistics(int(self._offer is not None), self._closed)

    def _meet(self, mine: _Offer[_T]) -> _Offer[_T] | None:
        """The other party's offer, which has been met; None: the caller waits now."""
        with self._lock:
            if self._closed:
                raise ChannelClosedError("the exchanger has been closed")
            if self._offer is None:
                self._offer = mine
                return None
            other = self._offer
            try:
                other.gets.append(mine.brings)
            finally:  # a signal handler may have raised after that
                self._offer = None
                other.met.set()
        return other

    def _withdraw(self, mine: _Offer[_T]) -> bool:
        """False: it has met another, or the exchanger has been closed."""
        with self._lock:
            if self._offer is not mine:
                return False
            self._offer = None
            return True

    def __repr__(self) -> str:
        waiting, closed = self.statistics()
        state = "closed" if closed else "open"
        return f"<fairlead.sync.extra.Exchanger {state}, {waiting} waiting, at {id(self):#x}>"

    __reduce__ = refuse_pickling


def _got(mine: _Offer[_T]) -> _T:
    if not mine.gets:
        raise ChannelClosedError("the exchanger has been closed; the item is still yours")
    return mine.gets[0]
