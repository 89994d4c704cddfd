"""fairlead.sync.shared against plain models: this process, a second one, and others that are killed."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from shared_peer import Peer, tried
from waiting import Thread, until

from fairlead.errors import (
    BrokenBarrierError,
    NotHeldError,
    OwnerDiedError,
    QueueEmpty,
    QueueFull,
    QueueShutDown,
    TooManyReleasesError,
)
from fairlead.sync import shared

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc"),
]

HERE, THERE, DEAD = "here", "there", "dead"
PLACES = st.sampled_from([HERE, THERE])
peer: Peer


@pytest.fixture(autouse=True, scope="module")
def _a_second_process() -> Iterator[None]:
    global peer
    peer = Peer()
    yield
    peer.close()


class Shared(RuleBasedStateMachine):
    """What is done here goes by two objects in turns, what is done there by a third in another process."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Thread] = []
        self.turn = 0

    def share(self, subject: Any) -> None:
        self.subject = subject
        self.handles = [subject, pickle.loads(pickle.dumps(subject))]

    def do(self, place: str, name: str, *arguments: Any) -> Any:
        if place == THERE:
            return peer.does(self.subject, (name, arguments))[0]
        self.turn += 1
        return tried(self.handles[self.turn % 2], name, arguments)

    def die_after(self, *operations: tuple[str, tuple[Any, ...]]) -> list[Any]:
        return peer.does(self.subject, *operations, dies=True)

    def wait(self, name: str, *arguments: Any) -> Thread:
        self.waiting.append(Thread(tried, self.subject, name, arguments))
        return self.waiting[-1]

    def served(self, count: int, result: Any = True) -> None:
        """So many of those that wait have ended with this, and no others."""
        until(lambda: sum(not one.is_alive() for one in self.waiting) == count)
        for one in [one for one in self.waiting if not one.is_alive()]:
            assert one.result() == result
            self.waiting.remove(one)


class Locks(Shared):
    """An owner is a process. Who waits gets the lock from who releases; nobody else comes then."""

    @initialize(take_over=st.booleans())
    def make(self, take_over: bool) -> None:
        self.take_over = take_over
        self.share(shared.Lock(take_over=take_over))
        self.owner = ""
        self.deaths = 0

    def taken(self, place: str) -> Any:
        """What acquire(False) comes to."""
        if self.owner == DEAD and not self.take_over:
            return OwnerDiedError
        if self.owner in (HERE, THERE):
            return False
        self.deaths += self.owner == DEAD
        self.owner = place
        return True

    @rule(place=PLACES)
    def acquire(self, place: str) -> None:
        assert self.do(place, "acquire", False) == self.taken(place)

    @rule(place=PLACES)
    def release(self, place: str) -> None:
        if self.owner != place:
            assert self.do(place, "release") is NotHeldError
            return
        assert self.do(place, "release") is None
        self.owner = ""
        if self.waiting:
            self.owner = HERE
            self.served(1)

    @precondition(lambda self: self.owner in (HERE, THERE) and len(self.waiting) < 3)
    @rule()
    def begin_to_wait(self) -> None:
        self.wait("acquire", True, 40)

    @precondition(lambda self: not self.waiting)
    @rule(releases=st.booleans())
    def one_takes_it_and_is_killed(self, releases: bool) -> None:
        operations: list[tuple[str, tuple[Any, ...]]] = [("acquire", (False,)), ("release", ())]
        taken = self.taken(DEAD)
        expected = [taken, None if taken is True else NotHeldError]
        if taken is True and releases:
            self.owner = ""
        assert self.die_after(*operations[: 1 + releases]) == expected[: 1 + releases]

    @precondition(lambda self: self.owner in ("", DEAD) and not self.waiting)
    @rule(place=PLACES)
    def recover(self, place: str) -> None:
        died = self.owner == DEAD
        self.deaths += died
        assert self.do(place, "recover") is died
        self.owner = place

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "subject"):
            assert self.subject.locked() is bool(self.owner)
            found = self.subject.statistics()
            assert found.deaths == self.deaths
            if self.owner in (HERE, THERE):
                assert found.owner == (os.getpid() if self.owner == HERE else peer.pid)

    def teardown(self) -> None:
        while getattr(self, "owner", "") in (HERE, THERE):
            self.release(self.owner)


class Semaphores(Shared):
    """Owned ones: each permit is of a process. Those of one that dies are free for who comes."""

    @initialize(value=st.integers(1, 3))
    def make(self, value: int) -> None:
        self.value = value
        self.share(shared.Semaphore(value, owned=True))
        self.held = {HERE: 0, THERE: 0}

    def free(self) -> int:
        return self.value - sum(self.held.values())

    @rule(place=PLACES)
    def acquire(self, place: str) -> None:
        free = self.free() > 0
        assert self.do(place, "acquire", False) is free
        self.held[place] += free

    @rule(place=PLACES, many=st.integers(1, 2))
    def release(self, place: str, many: int) -> None:
        if self.held[place] < many:
            assert self.do(place, "release", many) in (NotHeldError, TooManyReleasesError)
            return
        assert self.do(place, "release", many) is None
        self.held[place] -= many
        served = min(many, len(self.waiting))
        self.held[HERE] += served
        self.served(served)

    @precondition(lambda self: self.free() == 0 and len(self.waiting) < 3)
    @rule()
    def begin_to_wait(self) -> None:
        self.wait("acquire", True, 40)

    @rule(many=st.integers(1, 3))
    def one_takes_some_and_is_killed(self, many: int) -> None:
        free = self.free()
        assert self.die_after(*[("acquire", (False,))] * many) == [at < free for at in range(many)]

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "subject"):
            assert self.subject.locked() or self.free()  # of the dead it learns when somebody comes

    def teardown(self) -> None:
        for place in (HERE, THERE, HERE):
            while getattr(self, "held", {}).get(place):
                self.release(place, 1)
        assert not self.waiting


class Events(Shared):
    @initialize()
    def make(self) -> None:
        self.share(shared.Event())
        self.flag = False

    @rule(place=st.sampled_from([HERE, THERE, DEAD]), then=st.booleans())
    def set(self, place: str, then: bool) -> None:
        """Perhaps by one that is killed; all that waited are woken. If nobody did, it may be cleared."""
        then = then and not self.waiting
        names = ["set", "clear"] if then else ["set"]
        if place == DEAD:
            assert self.die_after(*[(name, ()) for name in names]) == [None] * len(names)
        else:
            for name in names:
                assert self.do(place, name) is None
        self.flag = not then
        self.served(len(self.waiting))

    @rule(place=PLACES)
    def clear(self, place: str) -> None:
        assert self.do(place, "clear") is None
        self.flag = False

    @precondition(lambda self: not self.flag and len(self.waiting) < 3)
    @rule()
    def begin_to_wait(self) -> None:
        self.wait("wait", 40)

    @rule(place=PLACES)
    def look(self, place: str) -> None:
        assert self.do(place, "wait", 0) is self.flag
        assert self.do(place, "is_set") is self.flag

    def teardown(self) -> None:
        if hasattr(self, "subject"):
            self.set(HERE, False)


class Barriers(Shared):
    """Those who come here wait in threads; one from elsewhere that waits in vain breaks it."""

    @initialize(parties=st.integers(2, 3))
    def make(self, parties: int) -> None:
        self.parties = parties
        self.share(shared.Barrier(parties))
        self.broken = False

    @rule()
    def come(self) -> None:
        self.wait("wait", 40)
        if self.broken:
            self.served(1, BrokenBarrierError)
        elif len(self.waiting) < self.parties:
            until(lambda: self.subject.n_waiting == len(self.waiting))
        else:
            assert sorted(one.result() for one in self.waiting) == list(range(self.parties))
            self.waiting.clear()

    def breaks(self) -> None:
        self.broken = True
        self.served(len(self.waiting), BrokenBarrierError)

    @precondition(lambda self: len(self.waiting) < self.parties - 1)
    @rule(place=st.sampled_from([HERE, THERE, DEAD]))
    def wait_in_vain(self, place: str) -> None:
        if place == DEAD:
            assert self.die_after(("wait", (0.001,))) == [BrokenBarrierError]
        else:
            assert self.do(place, "wait", 0.001) is BrokenBarrierError
        self.breaks()

    @rule(place=PLACES)
    def abort(self, place: str) -> None:
        assert self.do(place, "abort") is None
        self.breaks()

    @rule(place=PLACES)
    def reset(self, place: str) -> None:
        assert self.do(place, "reset") is None
        self.served(len(self.waiting), BrokenBarrierError)
        self.broken = False

    @precondition(lambda self: not self.broken and len(self.waiting) == self.parties - 1)
    @rule(dies=st.booleans())
    def one_from_elsewhere_is_the_last(self, dies: bool) -> None:
        """That it is killed afterwards is nobody's loss."""
        mine = (self.die_after(("wait", (40,))) if dies else peer.does(self.subject, ("wait", (40,))))[0]
        assert sorted([mine, *(one.result() for one in self.waiting)]) == list(range(self.parties))
        self.waiting.clear()

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "subject"):
            assert self.subject.broken is self.broken
            assert self.broken or self.subject.n_waiting == len(self.waiting)

    def teardown(self) -> None:
        if hasattr(self, "subject"):
            self.abort(HERE)


class Queues(Shared):
    """Messages are bytes, of which so many fit; each takes 8 more than it has, in steps of 8."""

    @initialize(capacity=st.sampled_from([64, 128, 4096]))
    def make(self, capacity: int) -> None:
        self.capacity = capacity
        self.share(shared.Queue(capacity_bytes=capacity))
        self.messages: list[bytes] = []
        self.open = True

    def used(self) -> int:
        return sum(len(one) + 8 + -len(one) % 8 for one in self.messages)

    def put_comes_to(self, message: bytes) -> Any:
        if len(message) + 8 + -len(message) % 8 > self.capacity:
            return ValueError
        if not self.open:
            return QueueShutDown
        if self.used() + len(message) + 8 + -len(message) % 8 > self.capacity:
            return QueueFull
        self.messages.append(message)
        return None

    def get_comes_to(self) -> Any:
        if self.messages:
            return self.messages.pop(0)
        return QueueEmpty if self.open else QueueShutDown

    @precondition(lambda self: not self.waiting)
    @rule(place=PLACES, message=st.binary(max_size=70))
    def put(self, place: str, message: bytes) -> None:
        assert self.do(place, "put_nowait", message) == self.put_comes_to(message)

    @precondition(lambda self: not self.waiting)
    @rule(place=PLACES)
    def get(self, place: str) -> None:
        assert self.do(place, "get_nowait") == self.get_comes_to()

    @precondition(lambda self: not self.waiting)
    @rule(messages=st.lists(st.binary(max_size=40), max_size=3), gets=st.integers(0, 3))
    def one_puts_and_gets_and_is_killed(self, messages: list[bytes], gets: int) -> None:
        """Between two operations: what it had put is there, what it got is gone, and nobody is told."""
        operations: list[tuple[str, tuple[Any, ...]]] = [("put_nowait", (one,)) for one in messages]
        operations += [("get_nowait", ())] * gets
        expected = [self.put_comes_to(one) for one in messages] + [self.get_comes_to() for _ in range(gets)]
        assert self.die_after(*operations) == expected

    @precondition(lambda self: self.open and not self.messages and len(self.waiting) < 3)
    @rule()
    def begin_to_get(self) -> None:
        self.wait("get", True, 40)

    @precondition(lambda self: self.waiting and self.open)
    @rule(place=PLACES)
    def put_for_who_waits(self, place: str) -> None:
        assert self.do(place, "put_nowait", b"for one") is None
        self.served(1, b"for one")

    @rule(place=PLACES, immediate=st.booleans())
    def shut_down(self, place: str, immediate: bool) -> None:
        if immediate or self.turn > 12:
            assert self.do(place, "shutdown", immediate) is None
            self.open = False
            self.served(len(self.waiting), QueueShutDown)
            if immediate:
                self.messages.clear()

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "subject"):
            found = self.subject.statistics()
            assert found.shut_down is not self.open
            if self.open:  # of what was thrown away the room is not given back
                assert found.used == self.used()
                assert self.subject.empty() is not bool(self.messages)

    def teardown(self) -> None:
        if hasattr(self, "subject"):
            self.subject.shutdown(immediate=True)
            self.served(len(self.waiting), QueueShutDown)


def _as_test(machine: type[Shared]) -> Any:
    case = machine.TestCase
    case.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
    return case


TestLocks = _as_test(Locks)
TestSemaphores = _as_test(Semaphores)
TestEvents = _as_test(Events)
TestBarriers = _as_test(Barriers)
TestQueues = _as_test(Queues)
