"""Objects that go from those who put or send to those who get or receive."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from fairlead import sync
from fairlead.errors import ChannelClosedError, LaggedError, QueueEmpty, QueueFull, QueueShutDown
from specifications.specification import THREAD, WAITS, Specification, at_once, rare, waits

AT = st.integers(0, 4)


class SimpleQueues(Specification):
    """One that gets is promised that there is an object for it; it takes the next that there is when it
    runs. One that puts is promised room, where that is bounded, and puts when it runs. Once it is shut
    nothing is put, and what there is can be got, unless it was thrown away."""

    examples = 25
    barging = True
    most = reserved = promised = 0
    shut = emptied = False
    shut_error: type[Exception] = QueueShutDown

    def make(self) -> Any:
        self.held: list[int] = []
        return sync.SimpleQueue()

    def next(self) -> int:
        return 0

    def size(self) -> int:
        return 0 if self.emptied else len(self.held) - self.promised

    def has_room(self) -> bool:
        return not self.most or len(self.held) + self.reserved < self.most

    def waiting(self, *names: str) -> list[int]:
        return [sum(call.name == name for call in self.queue) for name in names]

    @waits(st.integers(0, 9), refused=QueueFull, nowait=True)
    def put(self, _: int) -> Any:
        if self.shut:
            return self.shut_error
        if self.ahead() or not self.has_room():
            return WAITS
        self.reserved += 1
        return None

    def ran_put(self, item: int) -> Any:
        self.reserved -= 1
        return self.shut_error if self.shut else self.held.append(item)

    def undo_put(self, _: int) -> None:
        self.reserved -= 1

    @waits(refused=QueueEmpty, nowait=True)
    def get(self) -> Any:
        if self.ahead("get", "peek") or self.size() <= 0:
            return self.shut_error if self.shut else WAITS
        self.promised += 1
        return None

    def ran_get(self) -> Any:
        self.promised -= 1
        return self.held.pop(self.next()) if self.held else self.shut_error

    def undo_get(self) -> None:
        self.promised -= 1

    def shut_down(self, immediate: bool) -> None:
        self.shut = True
        if immediate:
            self.emptied = True
            self.held.clear()

    def check(self) -> None:
        assert self.subject.statistics() == (self.size(), *self.waiting("get"))
        assert self.subject.empty() is (self.size() == 0)


class Queues(SimpleQueues):
    """The next object is the first, the last or the smallest. Of each it is said later that its work is
    done."""

    examples = 90
    steps = 30
    kind = st.sampled_from([sync.Queue, sync.LifoQueue, sync.PriorityQueue])
    most = st.integers(0, 3)
    barging = False
    unfinished = 0

    def make(self) -> Any:
        super().make()
        return self.kind(self.most, fair=True)

    def next(self) -> int:
        if self.kind is sync.PriorityQueue:
            return self.held.index(min(self.held))
        return -1 if self.kind is sync.LifoQueue else 0

    def ran_put(self, item: int) -> Any:
        self.unfinished += not self.shut
        return super().ran_put(item)

    @waits(refused=QueueEmpty, nowait=True)
    def peek(self) -> Any:
        return self.get()

    def ran_peek(self) -> Any:
        self.promised -= 1
        return self.held[self.next()] if self.held else QueueShutDown

    undo_peek = SimpleQueues.undo_get

    @at_once(likely=rare)
    def task_done(self) -> Any:
        if not self.unfinished:
            return ValueError
        self.unfinished -= 1
        return None

    async def joined(self) -> bool:
        return await self.subject.join_async() is None

    @waits(task=joined, now=lambda it: it.subject.join(0), refused=False, likely=lambda it: it.unfinished)
    def join(self) -> Any:
        return WAITS if self.unfinished else True

    @at_once(AT)
    def resize(self, most: int) -> None:
        self.most = most

    def ends_joins(self) -> bool:
        return any(self.waiting("join")) and self.unfinished <= len(self.held)

    @at_once(st.booleans(), likely=ends_joins, when=lambda it: it.age > 8)
    def shutdown(self, immediate: bool) -> None:
        self.unfinished = max(0, self.unfinished - len(self.held) * immediate)
        self.shut_down(immediate)

    def check(self) -> None:
        getters, peekers, *others = self.waiting("get", "peek", "put", "join")
        state = self.size(), self.most, getters + peekers, *others, self.unfinished, self.shut, True
        assert self.subject.statistics() == state
        assert self.subject.empty() is (self.size() == 0)
        assert self.subject.full() is not self.has_room()


class Ends:
    """Those of a channel, by the names of a queue's methods; where all are closed, one of these."""

    def __init__(self, ends: tuple[Any, Any]) -> None:
        self.open, self.closed = ([ends[0]], [ends[1]]), ends

    def close(self, side: int) -> None:
        """An end that is closed twice is closed once."""
        for end in self.open[side][:1]:
            self.open[side].remove(end)
            end.close()
            end.close()

    def clone(self, side: int) -> None:
        self.open[side].append(self.open[side][0].clone())

    def __getattr__(self, name: str) -> Any:
        side = name.startswith("get")
        end = self.open[side][-1] if self.open[side] else self.closed[side]
        return getattr(end, name.replace("put", "send").replace("get", "receive"))


class Channels(SimpleQueues):
    """When the last sender is closed nothing is sent any more; when the last receiver is, what was sent is
    thrown away as well."""

    examples = 35
    shut_error = ChannelClosedError
    most = st.integers(0, 2)

    def make(self) -> Any:
        super().make()
        return Ends(sync.channel(self.most or None))

    @at_once(st.integers(0, 1), when=lambda it: all(1 <= len(ends) <= 2 for ends in it.subject.open))
    def clone(self, side: int) -> None:
        pass

    @at_once(st.integers(0, 1), likely=rare, when=lambda it: it.age > 5)
    def close(self, side: int) -> None:
        if not self.subject.open[side]:
            self.shut_down(immediate=side == 1)

    def check(self) -> None:
        ends = map(len, self.subject.open)
        state = self.size(), *ends, *self.waiting("put", "get"), self.shut
        assert self.subject.closed[1].statistics() == state


def own(it: Any, who: int) -> Any:
    return it.receivers[who]


def caller(it: Any) -> Any:
    return st.just(it.me.who)


class Tapes(Specification):
    """A broadcast of the last `most` objects, or a watch, of which only the last counts. Each task has a
    receiver of its own, and so has the thread. Objects are numbers in the order of sending."""

    examples = 40
    most = st.integers(0, 3)
    sent = 0

    def make(self) -> Any:
        sender, receiver = sync.broadcast(self.most) if self.most else sync.broadcast(latest=None)
        self.receivers = [receiver, *(receiver.clone() for _ in range(THREAD))]
        self.places = [0] * len(self.receivers)
        self.senders = [sender]
        return sender

    @waits(caller, on=own, refused=QueueEmpty)
    def receive(self, who: int) -> Any:
        if self.places[who] < self.sent:
            return None
        return WAITS if self.senders else ChannelClosedError

    def ran_receive(self, who: int) -> Any:
        place = self.places[who]
        if not self.most:
            self.places[who] = self.sent
            return self.sent - 1
        self.places[who] = max(place + 1, self.sent - self.most)
        return place if place + self.most >= self.sent else LaggedError

    def send_some(self, at: int, times: int) -> list[int]:
        return [self.senders[at % len(self.senders)].send(self.sent + n) for n in range(times)]

    @at_once(AT, st.integers(1, 5), likely=rare, now=send_some, when=lambda it: it.senders)
    def send(self, _: int, times: int) -> list[int]:
        self.sent += times
        return [len(self.receivers)] * times

    def follow(self, who: int, source: int) -> None:
        receiver, self.receivers[who] = self.receivers[who], self.receivers[source].clone()
        receiver.close()

    @at_once(caller, st.integers(0, THREAD), now=follow)
    def clone(self, who: int, source: int) -> None:
        self.places[who] = self.places[source]

    @at_once(now=lambda it: it.senders.append(it.senders[0].clone()), when=lambda it: 0 < len(it.senders) < 3)
    def clone_sender(self) -> None:
        pass

    @at_once(now=lambda it: it.senders.pop(0).close(), when=lambda it: it.senders, likely=rare)
    def close_sender(self) -> None:
        pass

    def check(self) -> None:
        for receiver, place in zip(self.receivers, self.places, strict=True):
            ends = len(self.senders), len(self.receivers)
            assert receiver.statistics() == (self.sent - place, *ends, 0, len(self.queue), not self.senders)
        assert self.most or self.receivers[0].value == (self.sent - 1 if self.sent else None)
