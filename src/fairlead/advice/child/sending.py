"""Whether calls and results can go to other processes and interpreters, and how large they are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from fairlead.errors import SerializationError
from fairlead.pools.engine.contract import Options, Task
from fairlead.pools.engine.future import Future
from fairlead.pools.serialization import calls
from fairlead.pools.serialization import function as told
from fairlead.pools.serialization.messages import Parts


class Sending:
    """Tries it, and remembers how large it was."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.call_bytes: list[int] = []
        self.result_bytes: list[int] = []

    def call(self, item: Any) -> str | None:
        """Why this call cannot be sent; None if it can."""
        try:
            parts = calls.pack(Task(Future(), self._function, (item,), {}, Options()))
        except SerializationError as refusal:
            return str(refusal)
        self.call_bytes.append(_size(parts))
        return None

    def result(self, value: Any) -> str | None:
        """Why this result cannot be sent back; None if it can."""
        try:
            parts = calls.pack_result(self._function, value)
        except SerializationError as refusal:
            return str(refusal)
        self.result_bytes.append(_size(parts))
        return None

    def refusals(self, values: Sequence[Any]) -> dict[str, str]:
        """Modules that it needs and that interpreters with a GIL of their own cannot import."""
        if sys.version_info < (3, 13):
            return {}
        return told.refusals(told.modules(self._function, values))


def _size(parts: Parts) -> int:
    return sum(len(piece) for piece in parts.stream) + sum(view.nbytes for view in parts.buffers)
