"""Channels: lines with two kinds of ends, which close. As those of tokio::sync, for threads and tasks.

What races is native: a channel's objects are in a Queue, which shuts down, a broadcast's and a watched value
in a BroadcastRing, which closes, and two CountdownEvents count the ends. A thread that closes the last end of
a kind shuts the line; if two are the last at once, both do, and the second time changes nothing. All of these
can be shared by interpreters, so the ends go there by their pickles, and arrive as clones.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from operator import index
from typing import Any, Generic, NamedTuple, NoReturn, Protocol, Self, TypeVar

from fairlead._native import BroadcastRing, CountdownEvent, Operation, Queue, Reader, Rendezvous
from fairlead.errors import ChannelClosedError, QueueFull, UsageError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class _Send(Protocol[T_contra]):
    def __call__(self, item: T_contra, block: bool = True, timeout: float | None = None) -> None: ...


class _Receive(Protocol[T_co]):
    def __call__(self, block: bool = True, timeout: float | None = None) -> T_co: ...


class ChannelStatistics(NamedTuple):
    """A channel at one moment.

    Attributes:
        pending: objects that were sent and not received; of a broadcast and a watched value by this receiver.
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


def _closed(*_: Any, **__: Any) -> NoReturn:
    raise ChannelClosedError("this end of the channel has been closed")


class _Line(NamedTuple):
    """What the ends of one channel have in common."""

    line: Any
    """A Queue, a Rendezvous or a BroadcastRing."""
    senders: CountdownEvent
    receivers: CountdownEvent


def _line(line: Any) -> _Line:
    return _Line(line, CountdownEvent(0), CountdownEvent(0))


class _End:
    """One end: open until it is closed, left by `with`, or collected."""

    __slots__ = ("__weakref__", "_count", "_line", "_open")

    def __init__(self, line: _Line, count: CountdownEvent) -> None:
        self._line, self._count = line, count
        self._open = [None]
        count.count_up()

    def close(self) -> None:
        """Closes this end. Never waits; closing twice is closing once."""
        try:
            self._open.pop()  # one step, if two close it at once
        except IndexError:
            return
        self._end()
        self._count.count_down()
        if self._count.is_set():
            self._last()

    def _end(self) -> None:
        """This end is of no use any more."""

    def _last(self) -> None:
        """It was the last of its kind."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_open", None):
            self.close()

    def __repr__(self) -> str:
        state = "open" if self._open else "closed"
        return (
            f"<fairlead.sync.{type(self).__name__} {state}, {self._line.senders.value} senders, "
            f"{self._line.receivers.value} receivers>"
        )


class _Sending(_End):
    __slots__ = ()

    def __init__(self, line: _Line) -> None:
        super().__init__(line, line.senders)

    def wait_closed(self, timeout: float | None = None) -> bool:
        """Waits until every receiver is closed; False: the time was over first. For threads."""
        return self._line.receivers.wait(timeout)

    def wait_closed_async(self) -> Operation[bool]:
        """As ``wait_closed``, for tasks."""
        return self._line.receivers.wait_async()


class _Receiving(_End):
    __slots__ = ()

    def __init__(self, line: _Line) -> None:
        super().__init__(line, line.receivers)


def _statistics(line: _Line, pending: int | None = None) -> ChannelStatistics:
    ends = line.senders.value, line.receivers.value
    if isinstance(line.line, Queue):
        size, _, getting, putting, _, _, shut, _ = line.line.statistics()
        return ChannelStatistics(size, *ends, putting, getting, shut)
    if isinstance(line.line, Rendezvous):
        back, putting, getting, shut = line.line.statistics()
        return ChannelStatistics(back, *ends, putting, getting, shut)
    return ChannelStatistics(pending or 0, *ends, 0, line.line.waiting(), line.line.is_closed())


class Sender(_Sending, Generic[T]):
    """A sending end of a ``channel``. Any number of threads and tasks may use it, and ``clone`` it.

    When every sender is closed, receivers get what was sent before, and then ChannelClosedError.
    """

    __slots__ = ("send", "send_async", "send_nowait")

    send: _Send[T]
    """send(item, block=True, timeout=None): sends, waiting for room. For threads. QueueFull (a queue.Full) if
    there is none, ChannelClosedError if every receiver is closed; then nothing was sent. Where the capacity
    is 0 it waits until the object is received."""
    send_nowait: Callable[[T], None]
    """As send(item, False)."""
    send_async: Callable[[T], Operation[None]]
    """As ``send``, in an awaitable."""

    def __init__(self, line: _Line) -> None:
        super().__init__(line)
        self.send, self.send_nowait, self.send_async = (
            line.line.put,
            line.line.put_nowait,
            line.line.put_async,
        )

    def clone(self) -> Sender[T]:
        """Another sending end. ChannelClosedError if this one is closed."""
        return Sender(self._line) if self._open else _closed()

    def _end(self) -> None:
        self.send = self.send_nowait = self.send_async = _closed

    def _last(self) -> None:
        self._line.line.shutdown()

    def statistics(self) -> ChannelStatistics:
        """A record of the moment."""
        return _statistics(self._line)

    def __reduce__(self) -> tuple[Any, ...]:
        return Sender, (self._line,) if self._open else _closed()


class Receiver(_Receiving, Generic[T]):
    """A receiving end of a ``channel``; each object goes to one of them. Iterating ends when it is closed.

    When every receiver is closed, what was not received is dropped, and senders get ChannelClosedError.
    """

    __slots__ = ("receive", "receive_async", "receive_nowait")

    receive: _Receive[T]
    """receive(block=True, timeout=None): the next object, waiting for one. For threads. QueueEmpty (a
    queue.Empty) if there is none, ChannelClosedError if none can come any more."""
    receive_nowait: Callable[[], T]
    """As receive(False)."""
    receive_async: Callable[[], Operation[T]]
    """As ``receive``, in an awaitable. A task that is cancelled has received nothing."""

    def __init__(self, line: _Line) -> None:
        super().__init__(line)
        queue = line.line
        self.receive, self.receive_nowait, self.receive_async = queue.get, queue.get_nowait, queue.get_async

    def clone(self) -> Receiver[T]:
        """Another receiving end. ChannelClosedError if this one is closed."""
        return Receiver(self._line) if self._open else _closed()

    def _end(self) -> None:
        self.receive = self.receive_nowait = self.receive_async = _closed

    def _last(self) -> None:
        self._line.line.shutdown(immediate=True)

    def statistics(self) -> ChannelStatistics:
        """A record of the moment."""
        return _statistics(self._line)

    def __iter__(self) -> Iterator[T]:
        return _received(self.receive)

    def __aiter__(self) -> AsyncIterator[T]:
        return _received_async(self.receive_async)

    def __reduce__(self) -> tuple[Any, ...]:
        return Receiver, (self._line,) if self._open else _closed()


def _received(receive: Callable[[], T]) -> Iterator[T]:
    while True:
        try:
            item = receive()
        except ChannelClosedError:
            return
        yield item


async def _received_async(receive: Callable[[], Operation[T]]) -> AsyncIterator[T]:
    while True:
        try:
            item = await receive()
        except ChannelClosedError:
            return
        yield item


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


class OneshotSender(_Sending, Generic[T]):
    """The sending end of a ``oneshot``, which closes as it sends."""

    __slots__ = ()

    def send(self, item: T) -> None:
        """Sends the one object. Never waits. ChannelClosedError if the receiver is closed, UsageError if
        one was sent before."""
        if not self._open:
            raise UsageError("a oneshot sends one object, and this one has sent it or was closed")
        try:
            self._line.line.put_nowait(item)
        except QueueFull:  # another thread, just now
            raise UsageError("a oneshot sends one object, and this one has sent it") from None
        self.close()

    def _last(self) -> None:
        self._line.line.shutdown()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("cannot pickle 'fairlead.sync.OneshotSender' object: a pickle would be a second one")


class OneshotReceiver(Receiver[T]):
    """The receiving end of a ``oneshot``. ChannelClosedError if nothing will be sent, or it was received."""

    __slots__ = ()

    def clone(self) -> NoReturn:
        """Refused: there is one object."""
        raise UsageError("a oneshot has one receiver; a channel, a broadcast and a watch have any number")

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "cannot pickle 'fairlead.sync.OneshotReceiver' object: a pickle would be a second one"
        )


def oneshot() -> tuple[OneshotSender[Any], OneshotReceiver[Any]]:
    """One object, from one to another: an answer."""
    line = _line(Queue(1))
    return OneshotSender(line), OneshotReceiver(line)


class _TapeSender(_Sending, Generic[T]):
    __slots__ = ("_put",)

    def __init__(self, line: _Line) -> None:
        super().__init__(line)
        self._put: Callable[[T], None] = line.line.put

    def send(self, item: T) -> int:
        """Sends to every receiver that is open now, and says how many these are; 0: it will not be received.

        Never waits. ChannelClosedError if this end is closed.
        """
        receivers = self._line.receivers.value
        self._put(item)
        return receivers

    def _end(self) -> None:
        self._put = _closed

    def _last(self) -> None:
        self._line.line.close()

    def statistics(self) -> ChannelStatistics:
        """A record of the moment."""
        return _statistics(self._line)


class BroadcastSender(_TapeSender[T]):
    """A sending end of a ``broadcast``."""

    __slots__ = ()

    def clone(self) -> BroadcastSender[T]:
        """Another sending end. ChannelClosedError if this one is closed."""
        return BroadcastSender(self._line) if self._open else _closed()

    def subscribe(self) -> BroadcastReceiver[T]:
        """A receiver of what is sent from now on."""
        return BroadcastReceiver(self._line, self._line.line.read())

    def __reduce__(self) -> tuple[Any, ...]:
        return BroadcastSender, (self._line,) if self._open else _closed()


class _TapeReceiver(_Receiving, Generic[T]):
    __slots__ = ("_reader", "receive", "receive_async")

    receive: _Receive[T]
    receive_async: Callable[[], Operation[T]]

    def __init__(self, line: _Line, reader: Reader[T]) -> None:
        super().__init__(line)
        self._reader = reader
        self.receive, self.receive_async = reader.receive, reader.receive_async

    def receive_nowait(self) -> T:
        """As receive(False)."""
        return self.receive(False)

    def _end(self) -> None:
        self.receive = self.receive_async = _closed

    def statistics(self) -> ChannelStatistics:
        """A record of the moment."""
        return _statistics(self._line, self._reader.pending())

    def __iter__(self) -> Iterator[T]:
        return _received(self.receive)

    def __aiter__(self) -> AsyncIterator[T]:
        return _received_async(self.receive_async)


class BroadcastReceiver(_TapeReceiver[T]):
    """A receiving end of a ``broadcast``: it gets every object that was sent since it began, in order.

    ``receive(block=True, timeout=None)``, ``receive_nowait()``, ``await receive_async()``, and iteration. A
    receiver that has fallen behind by more than the capacity gets ``LaggedError`` once, which says how many
    it has missed, and goes on with the oldest there is. For one thread or task; ``clone`` it for others.
    """

    __slots__ = ()

    def clone(self) -> BroadcastReceiver[T]:
        """Another receiver at the same place. ChannelClosedError if this one is closed."""
        return BroadcastReceiver(self._line, self._reader.clone()) if self._open else _closed()

    def __reduce__(self) -> tuple[Any, ...]:
        return _broadcast_elsewhere, (self._line,) if self._open else _closed()


def _broadcast_elsewhere(line: _Line) -> BroadcastReceiver[Any]:
    """A receiver of what is sent from its arrival on."""
    return BroadcastReceiver(line, line.line.read())


def broadcast(capacity: int) -> tuple[BroadcastSender[Any], BroadcastReceiver[Any]]:
    """Every object to every receiver. Sending never waits: a slow receiver misses the oldest, and is
    notified.

    Args:
        capacity: how many of the last objects are kept for slow receivers.
    """
    line = _line(BroadcastRing(capacity))
    sender = BroadcastSender[Any](line)
    return sender, sender.subscribe()


class WatchSender(_TapeSender[T]):
    """A sending end of a ``watch``: ``send`` replaces the value."""

    __slots__ = ()

    def clone(self) -> WatchSender[T]:
        """Another sending end. ChannelClosedError if this one is closed."""
        return WatchSender(self._line) if self._open else _closed()

    def subscribe(self) -> WatchReceiver[T]:
        """A receiver that has seen the value there is."""
        return WatchReceiver(self._line, self._line.line.read())

    def __reduce__(self) -> tuple[Any, ...]:
        return WatchSender, (self._line,) if self._open else _closed()


class WatchReceiver(_TapeReceiver[T]):
    """A receiving end of a ``watch``: ``value`` is the latest, ``receive`` waits for one it has not seen.

    It misses those in between. After the last sender is closed it gets the last value, if it has not seen it,
    and then ChannelClosedError; ``value`` stays. For one thread or task; ``clone`` it for others.
    """

    __slots__ = ()

    @property
    def value(self) -> T:
        """The latest value, which counts as seen no more than before."""
        return self._reader.latest()

    def has_changed(self) -> bool:
        """Whether there is a value that it has not seen."""
        return self._reader.pending() > 0

    def clone(self) -> WatchReceiver[T]:
        """Another receiver that has seen the same. ChannelClosedError if this one is closed."""
        return WatchReceiver(self._line, self._reader.clone()) if self._open else _closed()

    def __reduce__(self) -> tuple[Any, ...]:
        return _watch_elsewhere, (self._line,) if self._open else _closed()


def _watch_elsewhere(line: _Line) -> WatchReceiver[Any]:
    """A receiver that has seen the value there is as it arrives."""
    return WatchReceiver(line, line.line.read())


def watch(value: T) -> tuple[WatchSender[T], WatchReceiver[T]]:
    """A value that one end changes and any number of others watch: only the latest counts.

    Args:
        value: what it is at first, and the receiver has seen.
    """
    line = _line(BroadcastRing(1, latest=True))
    line.line.put(value)
    sender = WatchSender[T](line)
    return sender, sender.subscribe()
