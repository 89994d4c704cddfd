"""Channels: lines with two kinds of ends, which close. As those of tokio::sync, for threads and tasks.

What races is native: the ends send, receive and close in one step each (native/sync/bind/queues/ends.c); a
channel's objects are in a Queue, which shuts down, a broadcast's in a BroadcastRing, which closes, and two
CountdownEvents count the ends. All of these can be shared by interpreters, so the ends go there by their
pickles, and arrive as clones.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from operator import index
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, NoReturn, TypeVar, overload

from fairlead._native import (
    BroadcastRing,
    CountdownEvent,
    Operation,
    Queue,
    ReceivingEnd,
    Rendezvous,
    SendingEnd,
)
from fairlead.errors import ChannelClosedError, EndClosedError, QueueFull, UsageError

T = TypeVar("T")


class ChannelStatistics(NamedTuple):
    """A channel at one moment.

    Attributes:
        pending: objects that were sent and not received; of a broadcast by this receiver.
        senders: sending ends that are open.
        receivers: receiving ends that are open.
        sending: threads and tasks that wait for room.
        receiving: threads and tasks that wait for an object.
        closed: whether nothing can be sent any more.
    """

    pending: int
    senders: int
    receivers: int
    sending: int
    receiving: int
    closed: bool


class _Line(NamedTuple):
    """What the ends of one channel have in common."""

    line: Any
    """A Queue, a Rendezvous or a BroadcastRing."""
    senders: CountdownEvent
    receivers: CountdownEvent


def _line(line: Any) -> _Line:
    return _Line(line, CountdownEvent(0), CountdownEvent(0))


def _statistics(line: _Line, pending: int | None = None) -> ChannelStatistics:
    ends = line.senders.value, line.receivers.value
    if isinstance(line.line, Queue):
        size, _, getting, putting, _, _, shut, _ = line.line.statistics()
        return ChannelStatistics(size, *ends, putting, getting, shut)
    if isinstance(line.line, Rendezvous):
        back, putting, getting, shut = line.line.statistics()
        return ChannelStatistics(back, *ends, putting, getting, shut)
    return ChannelStatistics(pending or 0, *ends, 0, line.line.waiting(), line.line.is_closed())


def _shown(end: Any) -> str:
    state = "open" if end._open else "closed"
    return (
        f"<fairlead.sync.{type(end).__name__} {state}, {end._line.senders.value} senders, "
        f"{end._line.receivers.value} receivers>"
    )


def _shareable(end: Any) -> _Line:
    """What a pickle is made of."""
    if isinstance(end._line.line, Rendezvous):
        raise TypeError(
            "cannot pickle a channel without room, which stays in its interpreter: channel(1) can be shared"
        )
    return _common(end)


def _common(end: Any) -> _Line:
    """What another end is made of. EndClosedError if this one is closed."""
    if not end._open:
        raise EndClosedError("this end of the channel has been closed")
    return end._line  # type: ignore[no-any-return]


class Sender(SendingEnd, Generic[T]):
    """A sending end of a ``channel``. Any number of threads and tasks may use it, and ``clone`` it.

    When every sender is closed, receivers get what was sent before, and then ChannelClosedError.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def send(self, item: T, block: bool = True, timeout: float | None = None) -> None: ...
        def send_nowait(self, item: T, /) -> None: ...
        def send_async(self, item: T, /) -> Operation[None]: ...

    def clone(self) -> Sender[T]:
        """Another sending end. EndClosedError if this one is closed."""
        return Sender(_common(self))

    def statistics(self) -> ChannelStatistics:
        """A record of the moment."""
        return _statistics(self._line)

    def __reduce__(self) -> tuple[Any, ...]:
        return Sender, (_shareable(self),)

    __repr__ = _shown


class _Receiving(ReceivingEnd, Generic[T]):
    __slots__ = ()

    if TYPE_CHECKING:

        def receive(self, block: bool = True, timeout: float | None = None) -> T: ...
        def receive_nowait(self) -> T: ...
        def receive_async(self) -> Operation[T]: ...

    def __iter__(self) -> Iterator[T]:
        while True:
            try:
                item = self.receive()
            except EndClosedError:
                raise
            except ChannelClosedError:
                return
            yield item

    async def __aiter__(self) -> AsyncIterator[T]:
        while True:
            try:
                item = await self.receive_async()
            except EndClosedError:
                raise
            except ChannelClosedError:
                return
            yield item

    __repr__ = _shown


class Receiver(_Receiving[T]):
    """A receiving end of a ``channel``; each object goes to one of them. Iterating ends when every sender is
    closed.

    When every receiver is closed, what was not received is dropped, and senders get ChannelClosedError.
    """

    __slots__ = ()

    def clone(self) -> Receiver[T]:
        """Another receiving end. EndClosedError if this one is closed."""
        return Receiver(_common(self))

    def statistics(self) -> ChannelStatistics:
        """A record of the moment."""
        return _statistics(self._line)

    def __reduce__(self) -> tuple[Any, ...]:
        return Receiver, (_shareable(self),)


def channel(capacity: int | None = None) -> tuple[Sender[Any], Receiver[Any]]:
    """A line from any number of senders to any number of receivers, first in, first out.

    Args:
        capacity: how many objects there is room for; None: any number, and sending never waits; 0: none, and
            a sender waits for a receiver. Such a channel stays in its interpreter.
    """
    if capacity is not None and (capacity := index(capacity)) < 0:
        raise ValueError("capacity must be 0 or more, or None for any number")
    line = _line(Rendezvous() if capacity == 0 else Queue(capacity or 0))
    return Sender(line), Receiver(line)


class OneshotSender(SendingEnd, Generic[T]):
    """The sending end of a ``oneshot``, which closes as it sends."""

    __slots__ = ()

    def send(self, item: T) -> None:  # type: ignore[override] # it never waits
        """Sends the one object. Never waits. ChannelClosedError if the receiver is closed, UsageError if
        one was sent before."""
        try:
            super().send_nowait(item)
        except (EndClosedError, QueueFull):  # by this thread, or by another just now
            raise UsageError("a oneshot sends one object, and this one has sent it or was closed") from None
        self.close()

    async def send_async(self, item: T) -> None:  # type: ignore[override] # it never waits
        """As ``send``."""
        self.send(item)

    send_nowait = send

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("cannot pickle 'fairlead.sync.OneshotSender' object: a pickle would be a second one")

    __repr__ = _shown


class OneshotReceiver(Receiver[T]):
    """The receiving end of a ``oneshot``. ChannelClosedError if nothing will be sent, or it was received."""

    __slots__ = ()

    def clone(self) -> NoReturn:
        """Refused: there is one object."""
        raise UsageError("a oneshot has one receiver; a channel and a broadcast have any number")

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "cannot pickle 'fairlead.sync.OneshotReceiver' object: a pickle would be a second one"
        )


def oneshot() -> tuple[OneshotSender[Any], OneshotReceiver[Any]]:
    """One object, from one to another: an answer."""
    line = _line(Queue(1))
    return OneshotSender(line), OneshotReceiver(line)


class BroadcastSender(SendingEnd, Generic[T]):
    """A sending end of a ``broadcast``.

    ``send`` never waits: it sends to every receiver that is open now, and returns how many these are; 0: it
    will not be received.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def send(self, item: T) -> int: ...  # type: ignore[override] # it never waits
        def send_nowait(self, item: T, /) -> int: ...  # type: ignore[override]

    def clone(self) -> BroadcastSender[T]:
        """Another sending end. EndClosedError if this one is closed."""
        return BroadcastSender(_common(self))

    def subscribe(self) -> BroadcastReceiver[T]:
        """A receiver of what is sent from now on; with ``latest`` it has seen the value there is."""
        return _subscribed(self._line)

    def statistics(self) -> ChannelStatistics:
        """A record of the moment."""
        return _statistics(self._line)

    def __reduce__(self) -> tuple[Any, ...]:
        return BroadcastSender, (_common(self),)

    __repr__ = _shown


class BroadcastReceiver(_Receiving[T]):
    """A receiving end of a ``broadcast``: it gets every object that was sent since it began, in order.

    A receiver that has fallen behind by more than the capacity gets ``LaggedError`` once, which says how many
    it has missed, and goes on with the oldest there is; with ``latest`` it goes on with the newest, and
    misses those in between. After the last sender is closed it gets what it has not seen, and then
    ChannelClosedError. For one thread or task; ``clone`` it for others.
    """

    __slots__ = ()

    @property
    def value(self) -> T:
        """The newest object, which still counts as not seen. ChannelClosedError if there is none."""
        return self._latest()  # type: ignore[no-any-return]

    def has_changed(self) -> bool:
        """Whether there is an object that it has not seen."""
        return self._pending() > 0

    def clone(self) -> BroadcastReceiver[T]:
        """Another receiver at the same place. EndClosedError if this one is closed."""
        return BroadcastReceiver(_common(self), self)

    def statistics(self) -> ChannelStatistics:
        """A record of the moment."""
        return _statistics(self._line, self._pending())

    def __reduce__(self) -> tuple[Any, ...]:
        return _subscribed, (_common(self),)


def _subscribed(line: _Line) -> BroadcastReceiver[Any]:
    """A receiver of what is sent from now on, or from its arrival in another interpreter on."""
    return BroadcastReceiver(line)


_NOTHING: Final = object()


@overload
def broadcast(capacity: int) -> tuple[BroadcastSender[Any], BroadcastReceiver[Any]]: ...
@overload
def broadcast(*, latest: T) -> tuple[BroadcastSender[T], BroadcastReceiver[T]]: ...
def broadcast(
    capacity: int | None = None, *, latest: object = _NOTHING
) -> tuple[BroadcastSender[Any], BroadcastReceiver[Any]]:
    """Every object to every receiver. Sending never waits: a slow receiver misses the oldest, and is
    notified.

    Args:
        capacity: how many of the last objects are kept for slow receivers.
        latest: in place of a capacity, the first value of what receivers watch: only the newest is kept, and
            a receiver misses those in between without a word.
    """
    if (capacity is None) == (latest is _NOTHING):
        raise UsageError("a broadcast has a capacity, or the latest value that it begins with")
    if latest is _NOTHING:
        line = _line(BroadcastRing(capacity))  # type: ignore[arg-type] # it is none
    else:
        line = _line(BroadcastRing(1, latest=True))
        line.line.put(latest)
    sender = BroadcastSender[Any](line)
    return sender, sender.subscribe()
