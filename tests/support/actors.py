"""Tasks that do what a state machine tells them, one thing after another, while it lets their loop run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

CANCELLED = "cancelled"
TURNS = 30
"""More turns of the loop than any chain of wake-ups between a handful of tasks takes."""


class Actor:
    """One task. What it was told last ended with `result`, or it waits."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.result: Any = None
        self.late = False
        """It was cancelled when that had been decided, and learned it in its next wait."""
        self.waits = False
        self._inbox: asyncio.Queue[Callable[[], Awaitable[Any]] | None] = asyncio.Queue()
        self.task = loop.create_task(self._run())

    def tell(self, command: Callable[[], Awaitable[Any]] | None) -> None:
        self.waits = self.waits or command is not None
        self._inbox.put_nowait(command)

    async def _run(self) -> None:
        while (command := await self._inbox.get()) is not None:
            self.result = await self._uncancelled(command)
            self.late = await self._uncancelled(lambda: asyncio.sleep(0)) == CANCELLED
            self.waits = False

    async def _uncancelled(self, command: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await command()
        except asyncio.CancelledError:
            self.task.uncancel()
            return CANCELLED
        except Exception as error:  # noqa: BLE001 - the machine looks at it
            return error


class Stage:
    """A loop, its actors, and the right to let it run."""

    def __init__(self, actors: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.actors = [Actor(self.loop) for _ in range(actors)]
        self.turn()

    def turn(self) -> None:
        """Lets the loop do all that it can."""

        def turn(left: int) -> None:
            self.loop.call_soon(*([turn, left - 1] if left else [self.loop.stop]))

        turn(TURNS)
        self.loop.run_forever()

    def tell(self, actor: int, command: Callable[[], Awaitable[Any]]) -> None:
        assert not self.actors[actor].waits
        self.actors[actor].tell(command)
        self.turn()

    def close(self) -> None:
        """Tasks that wait are left behind by a test that has failed only."""
        for actor in self.actors:
            actor.tell(None)
            if actor.waits:
                actor.task.cancel()
        self.turn()
        self.loop.close()
