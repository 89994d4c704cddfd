"""A large value that workers read in place: no call takes a copy of it along."""

from __future__ import annotations

import mmap
import os
import pickle
import sys
import weakref
from typing import Any, Generic, TypeVar

from fairlead.errors import SerializationError, WrongSegmentError
from fairlead.pools.serialization.messages import laid_out, pickled, places, write
from fairlead.sync import _segments

if sys.platform == "linux":
    import fcntl

T = TypeVar("T")


class SharedValue(Generic[T]):
    """A value, written once into memory that all workers map; a call takes only a reference along::

        def row_sum(table, row):
            return table.value[row].sum()

        table = SharedValue(numpy.load("table.npy"))
        with ProcessPool() as pool:
            sums = pool.map(row_sum, itertools.repeat(table, 1000), range(1000))

    ``value`` is what was given, made of that memory, here and in workers: arrays that pickle protocol 5 knows
    (numpy's, Arrow's, those in a pandas frame) are read-only views of it, and bytes are a memoryview. What
    else the value holds is unpickled for each call.

    The memory has no name, and no process can change it. It is freed when nothing refers to the value any
    more, here and in the workers. Keep the object while calls with it are under way: otherwise they raise
    HandleGoneError. Workers of another machine cannot map it. Linux only.

    Raises:
        SerializationError: the value cannot be pickled.
        UnsupportedPlatformError: this is not Linux.
        OSError: there is no memory, or no descriptor, left for it.
    """

    value: T

    def __init__(self, value: T) -> None:
        raw = isinstance(value, bytes | bytearray | memoryview)
        try:
            parts = pickled(pickle.PickleBuffer(value) if raw else value)  # type: ignore[arg-type]
        except Exception as error:
            kind = type(value).__name__
            raise SerializationError(f"a {kind} cannot be shared with workers: {error}") from error
        length = sum(map(len, parts.stream))
        sizes = [buffer.nbytes for buffer in parts.buffers]
        pieces, end = laid_out(parts.stream, length, parts.buffers)

        def build(fd: int, token: bytes | None, _: bool) -> Any:
            assert token is not None
            os.posix_fallocate(fd, 0, end + len(token))  # ENOSPC here, and no SIGBUS later
            write(fd, [*pieces, memoryview(token)])
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
            return _loaded(fd, token, length, sizes)

        self._keep(*_segments.make(build), length, sizes)

    def _keep(self, value: Any, fd: int, token: bytes, length: int, sizes: list[int]) -> None:
        self.value = value
        self._fd = fd
        self._how = token, length, sizes
        weakref.finalize(self, os.close, fd).atexit = False

    def __reduce__(self) -> Any:
        return _borrowed, (os.getpid(), self._fd, *self._how)

    def __repr__(self) -> str:
        return f"<SharedValue of a {type(self.value).__name__}, {os.fstat(self._fd).st_size} bytes>"


def _borrowed(pid: int, number: int, token: bytes, length: int, sizes: list[int]) -> SharedValue[Any]:
    value, fd = _segments.borrow(pid, number, token, lambda fd, *_: _loaded(fd, token, length, sizes))
    made: SharedValue[Any] = SharedValue.__new__(SharedValue)
    made._keep(value, fd, token, length, sizes)
    return made


def _loaded(fd: int, token: bytes, length: int, sizes: list[int]) -> Any:
    begins, end = places(length, sizes)
    if os.fstat(fd).st_size != end + len(token):
        raise WrongSegmentError("another length than that of the value")
    whole = memoryview(mmap.mmap(fd, 0, prot=mmap.PROT_READ))
    if whole[end:] != token:
        raise WrongSegmentError("another token than the value's")
    buffers = [whole[begin : begin + size] for begin, size in zip(begins, sizes, strict=True)]
    return pickle.loads(whole[:length], buffers=buffers)
