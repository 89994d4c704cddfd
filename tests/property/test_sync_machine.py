"""Each primitive against its sequential specification (tests/support/specifications). Five tasks of a loop
and its thread use it; tasks are cancelled as they wait, or when they were served and have not run since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from actors import Stage
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from specifications import SPECIFICATIONS
from specifications.specification import TASKS, THREAD, Call, Specification, failed

pytestmark = pytest.mark.once


class Uses(RuleBasedStateMachine):
    """`it` is the specification, which is told what happens after it has happened."""

    it: Specification

    def __init__(self, primitive: type[Specification]) -> None:
        super().__init__()
        self.primitive = primitive
        self.stage = Stage(TASKS)

    @initialize(data=st.data())
    def make(self, data: st.DataObject) -> None:
        self.data = data
        self.it = self.primitive(data.draw)

    @rule()
    def step(self) -> None:
        """One rule, as of several Hypothesis leaves some out of each example, and to cancel a task that was
        served and has not run since takes them all."""
        settled = not self.it.granted + self.it.doomed
        calls = [call for call in self.it.queue + 4 * self.it.granted if call not in self.it.doomed]
        events = [
            (4, settled and self.idle(), lambda: self.ask(self.idle(), "task", self.tell)),
            (2, settled and self.idle(), lambda: self.ask(self.idle(), "now", self.tell_at_once)),
            (4, settled or not self.it.barging, lambda: self.ask([THREAD], "now", self.do)),
            (2, calls, lambda: self.cancel(self.data.draw(st.sampled_from(calls)))),
            (2, not settled, self.loop_runs),
        ]
        possible = [event for weight, may_be, event in events if may_be for _ in range(weight)]
        self.data.draw(st.sampled_from(possible))()

    def idle(self) -> list[int]:
        return [who for who, actor in enumerate(self.stage.actors) if not actor.waits]

    def ask(self, callers: list[int], forms: str, how: Callable[[Call, Any], None]) -> None:
        offers = []
        for name, one in self.it.operations.items():
            for who in callers:
                self.it.me = Call(who, name)
                if (who == THREAD or not one.by_thread) and one.when(self.it):
                    weight = 3 if one.likely(self.it) else 1
                    offers += [(self.it.me, form) for form in getattr(one, forms) * weight]
        if offers:
            self.it.me, form = call, _ = self.data.draw(st.sampled_from(offers))
            call.now = forms == "now"
            call.arguments = tuple(
                self.data.draw(one if isinstance(one, st.SearchStrategy) else one(self.it))
                for one in self.it.operations[call.name].arguments
            )
            how(call, lambda: form(self.it, *call.arguments))

    def tell(self, call: Call, command: Callable[[], Any]) -> None:
        self.stage.tell(call.who, command)
        self.it.call(call)
        self.see()

    def tell_at_once(self, call: Call, function: Callable[[], Any]) -> None:
        async def command() -> Any:
            return function()

        self.tell(call, command)

    def do(self, call: Call, function: Callable[[], Any]) -> None:
        """By the thread."""
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - compared
            result = error
        self.it.call(call)
        self.it.ended.remove(call)
        compare(call, result)

    def cancel(self, call: Call) -> None:
        self.stage.actors[call.who].task.cancel()
        self.it.doomed.append(call)

    def loop_runs(self) -> None:
        self.stage.turn()
        self.see()

    def see(self) -> None:
        """Each task waits, or has come to what is specified."""
        self.it.run()
        for call in self.it.ended:
            actor = self.stage.actors[call.who]
            assert not actor.waits, f"{call} waits, and should have come to {call.result}"
            compare(call, actor.result)
            assert actor.late == call.late, call
            assert not (call.late and actor.task.cancelling()), f"{call} was cancelled once"
        self.it.ended.clear()
        assert sorted([call.who for call in self.it.queue] + self.idle()) == list(range(TASKS))

    @invariant()
    def agrees(self) -> None:
        """Where a newcomer may pass those that wait, time decides who is served until the loop has run."""
        if not (self.it.barging and self.it.granted + self.it.doomed):
            self.it.check()

    def teardown(self) -> None:
        """Nothing is lost: without waiters it says of itself what it should."""
        try:
            if hasattr(self, "it"):
                self.it.stop()
                self.loop_runs()
                for call in self.it.queue:
                    self.cancel(call)
                self.loop_runs()
                self.agrees()
        finally:
            self.stage.close()


def compare(call: Call, result: Any) -> None:
    expected = call.result
    if failed(expected):
        as_specified = isinstance(result, expected)
    elif callable(expected):
        as_specified = expected(result)
    else:
        as_specified = expected == result and isinstance(expected, bool) == isinstance(result, bool)
    assert as_specified, f"{call} came to {result!r}, and should have come to {expected!r}"


@pytest.mark.parametrize("primitive", SPECIFICATIONS, ids=lambda one: one.__name__)
def test_primitive_does_as_specified(primitive: type[Specification]) -> None:
    bounds = settings(max_examples=primitive.examples, stateful_step_count=primitive.steps)
    run_state_machine_as_test(lambda: Uses(primitive), settings=bounds)
