"""Messages: what is pickled to be sent, in pieces, and what has come, to be unpickled once."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, Protocol

from fairlead.pools.serialization import of_main

OUT_OF_BAND = 16 * 1024
"""Smaller buffers are pickled with the rest."""


class BufferBlock(Protocol):
    """Memory that a message's buffers live in."""

    def loaded(self, kept: bool) -> None:
        """Gives it back: now, or, if objects have been made of the buffers, when those are gone."""


class Parts:
    """A pickle stream in the pieces that the pickler makes: large bytes are pieces by themselves, not
    copies."""

    __slots__ = ("buffers", "stream", "write")

    def __init__(self) -> None:
        self.stream: list[Any] = []
        self.buffers: list[memoryview] = []
        self.write = self.stream.append

    def keep(self, buffer: pickle.PickleBuffer) -> bool:
        """For the pickler: whether it shall take the buffer into its stream."""
        view = buffer.raw()
        if view.nbytes < OUT_OF_BAND:
            return True
        self.buffers.append(view)
        return False


def pickled(value: Any) -> Parts:
    parts = Parts()
    of_main.pickler(parts, parts.keep).dump(value)
    return parts


class Message:
    """What has come. ``load`` is called once."""

    __slots__ = ("_block", "_buffers", "_stream", "kind")

    def __init__(self, kind: int, stream: Any, buffers: Sequence[Any], block: BufferBlock | None) -> None:
        self.kind = kind
        self._stream = stream
        self._buffers = buffers
        self._block = block

    def load(self) -> Any:
        try:
            return pickle.loads(self._stream, buffers=self._buffers)
        finally:
            block = self._block
            kept = bool(self._buffers) and isinstance(self._buffers[0], memoryview)
            self._stream = self._buffers = self._block = None  # type: ignore[assignment]
            if block is not None:
                block.loaded(kept)
