"""Tasks that do what a state machine tells them, one thing after another, while it lets their loop run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine

CANCELLED = "cancelled"
TURNS = 30
"""More turns of the loop than any chain of wake-ups between a handful of tasks takes."""


class Actor:
    """One task. What it was told last ended with `results[-1]`, or it waits."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.results: list[Any] = []
        self.waits = False
        self._inbox: asyncio.Queue[Callable[[], Awaitable[Any]] | None] = asyncio.Queue()
        self.task = loop.create_task(self._run())

    def tell(self, command: Callable[[], Awaitable[Any]] | None) -> None:
        self.waits = command is not None
        self._inbox.put_nowait(command)

    async def _run(self) -> None:
        while (command := await self._inbox.get()) is not None:
            try:
                result = await command()
            except asyncio.CancelledError:
                asyncio.current_task().uncancel()  # type: ignore[union-attr]
                result = CANCELLED
            except Exception as error:  # noqa: BLE001 - the machine looks at it
                result = error
            self.results.append(result)
            self.waits = False


class Stage:
    """A loop, its actors, and the right to let it run."""

    def __init__(self, actors: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.actors = [Actor(self.loop) for _ in range(actors)]
        self.turn()

    def turn(self) -> None:
        """Lets the loop do all that it can."""

        async def turns() -> None:
            for _ in range(TURNS):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turns())

    def tell(self, actor: Actor, command: Callable[[], Awaitable[Any]]) -> None:
        assert not actor.waits
        actor.tell(command)
        self.turn()

    def idle(self) -> list[Actor]:
        return [actor for actor in self.actors if not actor.waits]

    def close(self) -> None:
        for actor in self.actors:
            if actor.waits:
                actor.task.cancel()
        self.turn()
        for actor in self.actors:
            actor.tell(None)
        self.turn()
        assert all(actor.task.done() for actor in self.actors)
        self.loop.close()


class Staged(RuleBasedStateMachine):
    """A state machine with five actors, of which some wait, in this order."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(5)
        self.waiting: list[Actor] = []

    def expect(self, actors: list[Actor], results: list[Any]) -> None:
        """They have ended so."""
        for actor, result in zip(actors, results, strict=True):
            assert not actor.waits
            if isinstance(result, type):
                assert isinstance(actor.results[-1], result)
            else:
                assert actor.results[-1] == result

    def teardown(self) -> None:
        self.stage.close()
