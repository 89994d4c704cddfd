"""The calls of fairlead.sync that block: one row for each, which the tests of an event go through.

A row makes a primitive in a state in which the call waits, and says what shows that it waits, what lets it go
on, and what is then its result. Only those between processes are not here: nothing shows that one waits.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from blocked import Blocked
from holdings import HOLDINGS
from waiting import Inside, Thread

from fairlead.errors import BrokenBarrierError, QueueEmpty, QueueFull, WaitTimeoutError
from fairlead.sync import (
    Barrier,
    BoundedSemaphore,
    CapacityLimiter,
    Condition,
    CountdownEvent,
    Event,
    LifoQueue,
    Lock,
    PriorityQueue,
    Queue,
    RateLimiter,
    RLock,
    Semaphore,
    SimpleQueue,
    broadcast,
    channel,
    once,
    oneshot,
    select,
    select_async,
)
from fairlead.sync.extra import Combiner, Exchanger, ManualClock, Phaser, StampedLock


@dataclass(frozen=True)
class Call:
    name: str
    make: Callable[[int], Blocked]
    """For so many that wait."""
    late: Any = False
    """What it returns when its time is over first, or the class of what it raises; None: it takes no time."""
    forever: bool = False
    """Whether a time-out of -1 is none, as for threading.Lock."""
    refuses: bool = False
    """Whether a negative time-out is an error, as for queue.Queue; it is over otherwise."""
    stays: bool = True
    """Whether what end() gives while none waits is there for the next call."""
    each: bool = False
    """Whether end() lets one go on, which takes something for good: the next waits for another end()."""
    final: bool = False
    """Whether a wait that was granted stands, and its cancellation comes later."""
    passes: bool = True
    """Whether what was granted to a task that is cancelled before it resumes is there for the next."""
    loops: bool = True
    """Whether a loop that is closed ends the waits of its tasks, even if no coroutine of theirs is closed."""
    alone: bool = False
    """Whether two that wait do not wait for the same."""
    by_others: bool = False
    """Whether the call waits for another thread, and not for a state of the primitive alone."""
    greenlets: bool = True
    """Whether others run while a greenlet waits."""
    selects: tuple[str, ...] = ("thread", "task")
    """By which it can be selected."""
    kind: str = ""
    """What waits() calls it, if that is not how its name begins."""

    @property
    def seen(self) -> str:
        return self.kind or self.name.removeprefix("fair ").split()[0].split(".")[0]


def _within(function: Callable[[Callable[[], Any]], Any]) -> Any:
    """A block of which the rest is a section that this runs, in this thread."""

    @contextmanager
    def block() -> Iterator[None]:
        begun, go = threading.Event(), threading.Event()
        runs = Thread(function, lambda: (begun.set(), go.wait()))
        begun.wait()
        yield
        go.set()
        runs.result()

    return block()


def _semaphore(make: Callable[..., Any], _: int) -> Blocked:
    one = make(2)
    one.acquire(n=2)
    return Blocked(
        one,
        partial(one.acquire, n=2),
        lambda: one.acquire_async(2),
        lambda: int(one.statistics().waiting),
        lambda: one.release(2),
        undo=lambda _: one.release(2),
    )


def _limiter(_: int) -> Blocked:
    one = CapacityLimiter(1)
    Thread(one.acquire_on_behalf_of, "it").result()
    return Blocked(
        one,
        one.acquire,
        one.acquire_async,
        lambda: one.statistics().waiting,
        partial(one.release_on_behalf_of, "it"),
        undo=lambda _: one.release(),
    )


def _stamped(taken: str, wanted: str, _: int) -> Blocked:
    lock = StampedLock()
    stamp = getattr(lock, f"acquire_{taken}")()
    return Blocked(
        lock,
        getattr(lock, f"acquire_{wanted}"),
        getattr(lock, f"acquire_{wanted}_async"),
        lambda: lock.statistics().waiting,
        partial(lock.release, stamp),
        ...,
        lock.release,
    )


def _combining(_: int) -> Blocked:
    lock, ran = Combiner(), []
    end = Inside(_within(lock.run)).wait().go

    def section() -> str:
        ran.append(1)
        return "ran"

    return Blocked(
        lock,
        lambda: lock.run(section),
        lambda: lock.run_async(section),
        lambda: lock.statistics().waiting,
        end,
        "ran",
        state=lambda: (lock.statistics()[:2], len(ran)),
    )


def _once(_: int) -> Blocked:
    begun, go = threading.Event(), threading.Event()

    @once
    def value() -> str:
        begun.set()
        go.wait()
        return "value"

    first = Thread(value)
    begun.wait()
    return Blocked(
        value,
        value,
        value.call_async,
        lambda: value.statistics().waiting,
        lambda: (go.set(), first.result()),
        "value",
    )


def _condition(make: Callable[[], Any], _: int) -> Blocked:
    condition = Condition(make())

    def wait(**how: Any) -> bool:
        with condition:
            return condition.wait(**how)

    async def wait_async() -> bool:
        async with condition:
            return await condition.wait_async()

    def end() -> None:
        with condition:
            condition.notify()

    def waiting() -> int:
        return 0 if condition.locked() else condition.statistics().waiting

    return Blocked(condition, wait, wait_async, waiting, end)


def _opened(make: Callable[[], Any], end: str, _: int) -> Blocked:
    one = make()
    return Blocked(one, one.wait, one.wait_async, lambda: int(one.statistics().waiting), getattr(one, end))


def _barrier(count: int) -> Blocked:
    one = Barrier(count + 1)
    return Blocked(
        one,
        lambda **how: one.wait(**how) + 1,
        lambda: _one_more(one.wait_async()),
        lambda: one.n_waiting,
        one.wait,
        ...,
        mend=one.reset,
    )


async def _one_more(place: Any) -> int:
    return int(await place) + 1


def _phaser(watches: bool, _: int) -> Blocked:
    """Parties come beside one that ends the phase."""
    one = Phaser(1)

    def wait(**how: Any) -> int | None:
        one.register()
        return one.arrive_and_wait(**how)

    async def wait_async() -> int | None:
        one.register()
        return await one.arrive_and_wait_async()

    calls = (partial(one.wait_phase, 0), partial(one.wait_phase_async, 0)) if watches else (wait, wait_async)
    return Blocked(one, *calls, lambda: one.statistics().waiting, one.arrive, 1, state=lambda: one.phase)


def _rate(_: int) -> Blocked:
    clock = ManualClock()
    one = RateLimiter(1, clock=clock)
    one.acquire(False)
    return Blocked(
        one, one.acquire, one.acquire_async, lambda: one.statistics().waiting, partial(clock.advance, 1)
    )


def _get(make: Callable[[], Any], what: str, _: int) -> Blocked:
    line = make()
    return Blocked(
        line,
        getattr(line, what),
        getattr(line, f"{what}_async"),
        lambda: int(line.statistics()[-1 if isinstance(line, SimpleQueue) else 2]),
        lambda: line.put("it"),
        "it",
        state=lambda: (line.statistics()[0], *line.statistics()[1:5]),
    )


def _put(make: Callable[..., Any], _: int) -> Blocked:
    line = make(1)
    line.put("first")
    return Blocked(
        line,
        partial(line.put, "second"),
        lambda: line.put_async("second"),
        lambda: int(line.statistics().putting),
        line.get_nowait,
        None,
    )


def _join(_: int) -> Blocked:
    line: Queue[int] = Queue()
    line.put(1)
    return Blocked(
        line,
        lambda **how: line.join(**how),
        lambda: _is_true(line.join_async()),
        lambda: line.statistics().joining,
        line.task_done,
    )


async def _is_true(done: Any) -> bool:
    return await done is None


def _receive(make: Callable[[], tuple[Any, Any]], clones: bool, _: int) -> Blocked:
    sender, receiver = make()
    own: list[Any] = []

    def end_of() -> Any:
        own.append(receiver.clone() if clones else receiver)
        return own[-1]

    return Blocked(
        receiver,
        lambda **how: end_of().receive(**how),
        lambda: end_of().receive_async(),
        lambda: int(receiver.statistics().receiving),
        lambda: sender.send("it"),
        "it",
        state=lambda: (receiver.statistics()[0], *receiver.statistics()[3:]),
    )


def _send(capacity: int, _: int) -> Blocked:
    sender, receiver = channel(capacity)
    if capacity:
        sender.send("first")
    return Blocked(
        sender,
        partial(sender.send, "second"),
        lambda: sender.send_async("second"),
        lambda: sender.statistics().sending,
        lambda: receiver.receive_nowait(),
        None,
    )


def _wait_closed(_: int) -> Blocked:
    sender, receiver = channel()
    count = sender._line.receivers
    return Blocked(
        sender,
        sender.wait_closed,
        sender.wait_closed_async,
        lambda: count.statistics().waiting,
        receiver.close,
    )


def _exchange(_: int) -> Blocked:
    one: Exchanger[str] = Exchanger()
    return Blocked(
        one,
        partial(one.exchange, "mine"),
        lambda: one.exchange_async("mine"),
        lambda: one.statistics().waiting,
        lambda: one.exchange("yours", timeout=0),
        "yours",
    )


def _select(_: int) -> Blocked:
    queue, never = Queue[str](), Event()

    def wait(**how: Any) -> Any:
        return select(never.wait_async(), queue.get_async(), **how)

    return Blocked(
        queue,
        wait,
        lambda: select_async(never.wait_async(), queue.get_async()),
        lambda: min(queue.statistics().getting, never.statistics().waiting),
        lambda: queue.put("it"),
        (1, "it"),
        state=lambda: (queue.statistics()[:5], never.statistics()),
    )


_get_call = partial(Call, late=QueueEmpty, refuses=True, each=True)
_put_call = partial(Call, late=QueueFull, refuses=True, each=True)
_look_call = partial(Call, late=QueueEmpty, refuses=True, stays=False, kind="BroadcastReceiver")
_meet_call = partial(Call, each=True, stays=False)
_no_case = partial(Call, selects=())
QUEUES = (Queue, LifoQueue, PriorityQueue)
OF_TASKS = {"RLock", "RWLock"}
CALLS = [
    *(
        Call(
            one.name,
            one.blocked,
            by_others=True,
            forever=True,
            selects=("task",) if one.kind in OF_TASKS else ("thread", "task"),
        )
        for one in HOLDINGS
    ),
    Call("CapacityLimiter", _limiter, forever=True),
    Call("Semaphore", partial(_semaphore, Semaphore)),
    Call("fair Semaphore", partial(_semaphore, partial(Semaphore, fair=True))),
    Call("BoundedSemaphore", partial(_semaphore, BoundedSemaphore)),
    _no_case("Combiner", _combining, None, by_others=True, greenlets=False, kind="Section"),
    _no_case("once", _once, None, by_others=True, kind="RLock"),
    _no_case("Condition over a Lock", partial(_condition, Lock), stays=False, each=True),
    _no_case("Condition over an RLock", partial(_condition, RLock), stays=False, each=True),
    _no_case("RateLimiter", _rate, each=True),
    Call("Event", partial(_opened, Event, "set")),
    Call("CountdownEvent", partial(_opened, partial(CountdownEvent, 1), "count_down")),
    _no_case("Barrier", _barrier, BrokenBarrierError, stays=False),
    _get_call("SimpleQueue.get", partial(_get, SimpleQueue, "get")),
    *(_get_call(f"{kind.__name__}.get", partial(_get, kind, "get")) for kind in QUEUES),
    *(_put_call(f"{kind.__name__}.put", partial(_put, kind)) for kind in QUEUES),
    _get_call("fair Queue.get", partial(_get, partial(Queue, fair=True), "get")),
    _put_call("fair Queue.put", partial(_put, partial(Queue, fair=True))),
    Call("Queue.peek", partial(_get, Queue, "peek"), QueueEmpty, refuses=True),
    _no_case("Queue.join", _join),
    _get_call("channel.receive", partial(_receive, channel, False), kind="Receiver"),
    _put_call("channel.send", partial(_send, 1), kind="Sender"),
    Call("channel.wait_closed", _wait_closed, kind="CountdownEvent"),
    _get_call("oneshot.receive", partial(_receive, oneshot, False), alone=True, kind="OneshotReceiver"),
    _look_call("broadcast.receive", partial(_receive, partial(broadcast, 2), True)),
    _look_call("broadcast(latest).receive", partial(_receive, partial(broadcast, latest=None), True)),
    _meet_call("channel(0).send", partial(_send, 0), QueueFull, refuses=True, final=True, kind="Sender"),
    _meet_call(
        "channel(0).receive",
        partial(_receive, partial(channel, 0), False),
        QueueEmpty,
        refuses=True,
        kind="Receiver",
    ),
    _no_case("select", _select, None, each=True, kind="Queue"),
]  # fmt: skip
_extra_call = partial(_no_case, loops=False, kind="Event")
EXTRA = [
    _extra_call("Phaser.arrive_and_wait", partial(_phaser, False), WaitTimeoutError, stays=False),
    _extra_call("Phaser.wait_phase", partial(_phaser, True), WaitTimeoutError),
    _extra_call("Exchanger", _exchange, WaitTimeoutError, stays=False, each=True, alone=True, passes=False),
    _extra_call("StampedLock.acquire_read", partial(_stamped, "write", "read"), 0),
    _extra_call("StampedLock.acquire_write", partial(_stamped, "read", "write"), 0),
]
"""Those of fairlead.sync.extra that are Python: a fork is not for them, nor another interpreter."""
if sys.implementation.name == "pypy":  # what is tested there
    EXTRA = []
    TESTED = {"Lock", "Semaphore", "BoundedSemaphore", "Event", "SimpleQueue"}
    CALLS = [one for one in CALLS if one.seen in TESTED and one.name != "CapacityLimiter"]
ALL = [*CALLS, *EXTRA]


def each(of: Callable[[Call], bool] = lambda _: True) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("call", [one for one in ALL if of(one)], ids=lambda call: call.name)
