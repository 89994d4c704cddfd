"""A primitive of which a call waits, and how a test looks at that wait and ends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Blocked:
    """A primitive of which a call waits."""

    primitive: Any
    wait: Callable[..., Any]
    """For threads and greenlets; takes `timeout`."""
    wait_async: Callable[[], Any]
    waiting: Callable[[], int]
    end: Callable[[], Any]
    """Lets the call go on, from whichever thread; waits for nothing."""
    result: Any = True
    undo: Callable[[Any], Any] = bool
    """Gives back what the call took, where it was called."""
    mend: Callable[[], Any] = bool
    """After a wait that ended by itself."""
    state: Callable[[], Any] | None = None
    """What must be as before once a wait has ended by itself; None: the statistics."""

    def left(self) -> Any:
        self.mend()
        return self.primitive.statistics() if self.state is None else self.state()

    def take(self) -> Any:
        value = self.wait()
        self.undo(value)
        return value

    async def take_async(self) -> Any:
        value = await self.wait_async()
        self.undo(value)
        return value

    def got(self, value: Any) -> bool:
        return bool(value) if self.result is ... else value == self.result
