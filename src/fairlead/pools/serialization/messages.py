"""Messages: what is pickled to be sent, in pieces, and what has come, to be unpickled once."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from typing import Any, Protocol

from fairlead.pools.serialization import of_main

OUT_OF_BAND = 16 * 1024
"""Smaller buffers are pickled with the rest."""
ALIGN = 64
PARTS_AT_ONCE = 1000


class BufferBlock(Protocol):
    """Memory that a message's buffers live in."""

    def loaded(self, kept: bool) -> None:
        """Gives it back: now, or, if objects have been made of the buffers, when those are gone."""


class Parts:
    """A pickle stream in the pieces that the pickler makes: large bytes are pieces by themselves, not
    copies."""

    __slots__ = ("buffers", "by_value", "stream", "write")

    def __init__(self, *, by_value: bool = False) -> None:
        self.by_value = by_value
        """Functions and classes of this program are in it, not their names."""
        self.stream: list[Any] = []
        self.buffers: list[memoryview] = []
        self.write = self.stream.append

    @property
    def nbytes(self) -> int:
        return sum(map(len, self.stream)) + sum(buffer.nbytes for buffer in self.buffers)

    def keep(self, buffer: pickle.PickleBuffer) -> bool:
        """For the pickler: whether it shall take the buffer into its stream."""
        view = buffer.raw()
        if view.nbytes < OUT_OF_BAND:
            return True
        self.buffers.append(view)
        return False


def pickled(value: Any, *, by_value: bool = False, whole: bool = False) -> Parts:
    """``by_value``: by cloudpickle. ``whole``: with the buffers in the stream."""
    parts = Parts(by_value=by_value)
    keep = None if whole else parts.keep
    if by_value:
        import cloudpickle

        cloudpickle.Pickler(parts, 5, buffer_callback=keep).dump(value)
    else:
        of_main.pickler(parts, keep).dump(value)
    return parts


class _NotPlain(Exception):
    """There is an object of a class that could refuse to be read."""


class _PlainPickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:  # noqa: ARG002 - pickle's signature
        """Called for all but the built-in types of data."""
        raise _NotPlain


def pickled_plain(value: Any) -> Parts | None:
    """None: it is not of built-in types only, which every reader can read, or too deeply nested."""
    parts = Parts()
    try:
        _PlainPickler(parts, 5, buffer_callback=parts.keep).dump(value)
    except (_NotPlain, RecursionError):
        return None
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


def places(length: int, sizes: Sequence[int]) -> tuple[list[int], int]:
    """Where the buffers of a message begin in memory whose first bytes are its stream, and where the last of
    them ends."""
    begins = []
    end = length
    for size in sizes:
        begins.append(-(-end // ALIGN) * ALIGN)
        end = begins[-1] + size
    return begins, end


def laid_out(stream: list[Any], length: int, buffers: list[memoryview]) -> tuple[list[memoryview], int]:
    """A message as it is in memory, in pieces, and how long it is."""
    begins, end = places(length, [buffer.nbytes for buffer in buffers])
    pieces = [memoryview(piece).cast("B") for piece in stream]
    at = length
    for begin, buffer in zip(begins, buffers, strict=True):
        pieces += [memoryview(bytes(begin - at)), buffer]
        at = begin + buffer.nbytes
    return pieces, end


def write(fd: int, pieces: list[memoryview]) -> None:
    """Writes them one behind the other from the beginning, without the GIL."""
    at = 0
    while pieces:
        wrote = os.pwritev(fd, pieces[:PARTS_AT_ONCE], at)
        at += wrote
        while pieces and wrote >= pieces[0].nbytes:
            wrote -= pieces.pop(0).nbytes
        if pieces and wrote:
            pieces[0] = pieces[0][wrote:]
