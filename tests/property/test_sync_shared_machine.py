"""fairlead.sync.shared against its sequential specifications (tests/support/specifications/processes.py)."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from shared_peer import Operation, Peer, tried
from specifications.processes import DEAD, HERE, SHARED, THERE, SharedPrimitive
from specifications.specification import Call
from waiting import PATIENCE_S, Thread, until

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc"),
]

WAITING = {"acquire": (True, PATIENCE_S), "wait": (PATIENCE_S,), "get": (True, PATIENCE_S)}
AT_ONCE = {"acquire": (False,), "wait": (0.001,), "get": (False,)}
"""How these are told to wait, or not to."""


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.close()


class Shares(RuleBasedStateMachine):
    """What is done here goes by two objects in turns, what is done there by a third in another process. Those
    that wait are threads of this one."""

    it: SharedPrimitive

    def __init__(self, primitive: type[SharedPrimitive], peer: Peer) -> None:
        super().__init__()
        self.primitive, self.peer = primitive, peer
        self.threads: list[Thread] = []

    @initialize(data=st.data())
    def make(self, data: st.DataObject) -> None:
        self.data = data
        self.it = self.primitive(data.draw)
        self.it.peer = self.peer.pid
        self.handles = [self.it.subject, pickle.loads(pickle.dumps(self.it.subject))]

    def draw(self, who: int, extra: dict[str, tuple[Any, ...]], *names: str) -> Operation:
        """What is to be asked for next; the specification knows it by then."""
        offered = [name for name, one in self.it.operations.items() if one.when(self.it)]
        name = self.data.draw(st.sampled_from([name for name in offered if name in (names or offered)]))
        arguments = (self.data.draw(one) for one in self.it.operations[name].arguments)
        return self.call(who, name, tuple(arguments), extra)

    def call(
        self, who: int, name: str, arguments: tuple[Any, ...], extra: dict[str, tuple[Any, ...]]
    ) -> Operation:
        call = Call(who, name, arguments)
        call.now = extra is AT_ONCE
        self.it.call(call)
        return name, (*arguments, *extra.get(name, ()))

    def ask(self, place: int, what: Operation) -> None:
        if place == THERE:
            self.compare(*self.peer.does(self.it.subject, what))
        else:
            self.compare(tried(self.handles[self.it.age % 2], *what))

    def compare(self, *results: Any) -> None:
        """These, and what as many threads as were served have come to, are as specified, in some order."""
        self.it.run()
        more = len(self.it.ended) - len(results)
        until(lambda: sum(not thread.is_alive() for thread in self.threads) == more)
        found = [thread.result() for thread in self.threads if not thread.is_alive()]
        self.threads = [thread for thread in self.threads if thread.is_alive()]
        assert sorted(map(repr, [*results, *found])) == sorted(repr(call.result) for call in self.it.ended)
        self.it.ended.clear()

    @rule(place=st.sampled_from([HERE, THERE]))
    def process_asks(self, place: int) -> None:
        self.ask(place, self.draw(place, AT_ONCE))

    @rule(times=st.integers(1, 3))
    def process_asks_and_is_killed(self, times: int) -> None:
        operations = [self.draw(DEAD, AT_ONCE) for _ in range(1 if self.threads else times)]
        self.it.died()
        self.compare(*self.peer.does(self.it.subject, *operations, dies=True))

    @precondition(lambda self: len(self.threads) < 3)
    @rule()
    def thread_waits(self) -> None:
        name, arguments = self.draw(HERE, WAITING, *WAITING)
        self.threads.append(Thread(tried, self.it.subject, name, arguments))
        self.compare()
        until(self.it.begun)

    @invariant()
    def agrees(self) -> None:
        self.it.check()

    def teardown(self) -> None:
        while self.threads:
            place, name, arguments = self.it.last_call()
            self.ask(place, self.call(place, name, arguments, AT_ONCE))


@pytest.mark.parametrize("primitive", SHARED, ids=lambda one: one.__name__)
def test_primitive_does_as_specified(primitive: type[SharedPrimitive], peer: Peer) -> None:
    bounds = settings(max_examples=primitive.examples, stateful_step_count=primitive.steps)
    run_state_machine_as_test(lambda: Shares(primitive, peer), settings=bounds)
