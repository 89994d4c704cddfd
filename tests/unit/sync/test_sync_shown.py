"""What each primitive shows of itself, and whether its pickle and its handle are the same one."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from fairlead._native import handle
from fairlead.errors import UsageError
from fairlead.sync import (
    Barrier,
    BoundedSemaphore,
    CapacityLimiter,
    Condition,
    CountdownEvent,
    Event,
    Lock,
    PriorityQueue,
    Queue,
    RateLimiter,
    RLock,
    RWLock,
    Semaphore,
    SimpleQueue,
    channel,
    oneshot,
    share,
)
from fairlead.sync.extra import Combiner, Exchanger, Flag, Phaser, ResourceGuard, StampedLock, StripedCounter

pytestmark = pytest.mark.ends_and_free


def entered(lock: Any) -> Any:
    lock.__enter__()
    return lock


def holding_one(line: Any) -> Any:
    line.put(1)
    return line


def shut_down(line: Queue[int]) -> Any:
    holding_one(line).shutdown()
    return line


def terminated(phaser: Phaser) -> Phaser:
    phaser.terminate()
    return phaser


SHOWN: dict[str, Callable[[], Any]] = {
    "Lock unlocked, 0 waiting, at 0x": Lock,
    "Lock locked, 0 waiting, at 0x": lambda: entered(Lock()),
    "RLock unlocked count=0, 0 waiting, at 0x": RLock,
    "RLock locked count=2, 0 waiting, at 0x": lambda: entered(entered(RLock())),
    "RWLock open, 0 readers, 0 waiting, at 0x": RWLock,
    "RWLock upgradable, 0 readers,": lambda: entered(RWLock().upgradable),
    "RWLockView reading of <fairlead.sync.RWLock writing": lambda: (
        entered((it := RWLock()).writing) and it.reading
    ),
    "StampedLock open, 0 readers, 0 waiting, at 0x": StampedLock,
    "Combiner unlocked": Combiner,
    "Condition <fairlead.sync.RLock unlocked": Condition,
    "Semaphore value=1, 0 waiting, at 0x": Semaphore,
    "CapacityLimiter 0 of 2 borrowed, 0 waiting>": lambda: CapacityLimiter(2),
    "Event unset, 0 waiting, at 0x": Event,
    "CountdownEvent value=2, 0 waiting, at 0x": lambda: CountdownEvent(2),
    "Barrier whole, 0 of 2 waiting, at 0x": lambda: Barrier(2),
    "Phaser in phase 0, 0 of 3 arrived, at 0x": lambda: Phaser(3),
    "Phaser in phase 0, 0 of 0 arrived, terminated": lambda: terminated(Phaser()),
    "Exchanger open, 0 waiting, at 0x": Exchanger,
    "SimpleQueue of 0, 0 waiting, at 0x": SimpleQueue,
    "Queue of 0, maxsize=7, 0 getting, 0 putting, at 0x": lambda: Queue(7),
    "Queue of 1, maxsize=0, 0 getting, 0 putting, shut down": lambda: shut_down(Queue()),
    "SimpleQueue of 1, 0 waiting, at 0x": lambda: holding_one(SimpleQueue()),
    "ResourceGuard free>": ResourceGuard,
    "Flag unset>": Flag,
    "Sender open, 1 senders, 1 receivers>": channel,
}


@pytest.mark.parametrize(("text", "make"), SHOWN.items(), ids=SHOWN.keys())
def test_primitive_shows_its_state_and_can_be_referred_to_weakly(text: str, make: Callable[[], Any]) -> None:
    made = make()
    one = made[0] if isinstance(made, tuple) else made
    assert text in repr(one)
    assert weakref.ref(one)() is one


OF_ONE_INTERPRETER: list[Callable[[], Any]] = [
    RLock,
    RWLock,
    lambda: RWLock().reading,
    StampedLock,
    Combiner,
    Phaser,
    Exchanger,
    StripedCounter,
    Flag,
    lambda: CapacityLimiter(1),
]


@pytest.mark.parametrize("make", OF_ONE_INTERPRETER, ids=lambda make: type(make()).__name__)
def test_what_is_of_one_interpreter_is_neither_pickled_nor_handed_over(make: Callable[[], Any]) -> None:
    one = make()
    with pytest.raises(TypeError, match=type(one).__name__):
        pickle.dumps(one)
    with pytest.raises(TypeError, match=type(one).__name__):
        handle(one)


@pytest.mark.parametrize(
    ("make", "error", "why"),
    [
        (Condition, TypeError, "make it with a Lock"),
        (lambda: Barrier(2, timeout=1), UsageError, "action or a timeout"),
        (lambda: Barrier(2, print), UsageError, "action or a timeout"),
        (lambda: channel(0)[0], TypeError, r"a channel without room.*channel\(1\)"),
        (lambda: channel(0)[1], TypeError, r"a channel without room.*channel\(1\)"),
        (lambda: oneshot()[0], TypeError, "would be a second one"),
        (lambda: oneshot()[1], TypeError, "would be a second one"),
    ],
)
def test_what_cannot_be_pickled_as_it_was_made_says_why(
    make: Callable[[], Any], error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        share(make())


SHARED: list[Callable[[], Any]] = [
    Lock,
    lambda: Semaphore(3),
    lambda: BoundedSemaphore(2),
    Event,
    SimpleQueue,
    Queue,
    PriorityQueue,
    lambda: CountdownEvent(2),
    lambda: Barrier(2),
    lambda: RateLimiter(1),
]


@pytest.mark.parametrize("make", SHARED, ids=lambda make: type(make()).__name__)
def test_copies_and_pickles_of_what_is_not_shared_are_refused_and_change_nothing(
    make: Callable[[], Any],
) -> None:
    one = make()

    @dataclasses.dataclass
    class Worker:
        inbox: Any

    for away in (copy.copy, copy.deepcopy, pickle.dumps, lambda one: dataclasses.asdict(Worker(one))):
        with pytest.raises(TypeError, match=type(one).__name__):
            away(one)
    if hasattr(one, "put"):
        item = [1]
        one.put(item)
        assert one.get() is item
    share(one)
    for away in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot copy"):
            away(one)


@pytest.mark.parametrize("make", SHARED, ids=lambda make: type(make()).__name__)
def test_pickle_of_what_is_shared_is_the_same_primitive(make: Callable[[], Any]) -> None:
    one = make()
    same = pickle.loads(pickle.dumps(share(one)))
    assert type(same) is type(one)
    assert handle(same) == handle(one)
    assert same.statistics() == one.statistics()
