"""A large value that workers read where it is, in place of a copy with each call."""

from __future__ import annotations

import mmap
import os
import pickle
import sys
import weakref
from types import TracebackType
from typing import Any, Generic, TypeVar

from fairlead.errors import HandleGoneError, UnsupportedPlatformError
from fairlead.pools.process.channel import begins, write

if sys.platform == "linux":
    import fcntl

T = TypeVar("T")
_NONE: Any = object()


class SharedValue(Generic[T]):
    """Has a value in memory that workers map: each call sends a few numbers, and the value's buffers are in
    memory once, however many workers read them.

    Buffers are what pickle protocol 5 takes out of band, as those of numpy's arrays and of what consists of
    them; bytes are one, and come as a memoryview. The rest of the value is pickled. The kernel seals the
    memory: nothing can change it any more.

    Keep it as long as calls use it. The memory is freed once it is closed or collected, and what workers
    have read of it is gone. It reaches processes and interpreters of this machine, and their own workers.

    Args:
        value: is copied once. Raises what keeps it from being pickled.
    """

    def __init__(self, value: T) -> None:
        if sys.platform != "linux":
            raise UnsupportedPlatformError(
                "SharedValue needs memory files that can be sealed, which Linux has"
            )
        buffers: list[pickle.PickleBuffer] = []
        taken = pickle.PickleBuffer(value) if isinstance(value, bytes | bytearray | memoryview) else value
        stream = pickle.dumps(taken, 5, buffer_callback=buffers.append)
        pieces, end = [memoryview(stream)], len(stream)
        views = [buffer.raw() for buffer in buffers]
        self._sizes = [view.nbytes for view in views]
        self._length = end
        for begin, view in zip(begins(end, self._sizes), views, strict=True):
            pieces += [memoryview(bytes(begin - end)), view]
            end = begin + view.nbytes
        self._fd = os.memfd_create("fairlead-shared", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._free: weakref.finalize[..., SharedValue[T]] | None = weakref.finalize(self, os.close, self._fd)
        write(self._fd, pieces)
        fcntl.fcntl(self._fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        self._inode = os.fstat(self._fd).st_ino
        self._owner: int | None = None
        """The process that has the memory file; None: whichever this is, as it may be forked."""
        self._value = _NONE

    @property
    def value(self) -> T:
        """The value, read once by each SharedValue that has come to a worker. Its buffers are read-only.

        HandleGoneError: the one that was sent has been closed or collected.
        """
        if self._value is _NONE:
            self._value = self._read()
        return self._value  # type: ignore[no-any-return]

    def _read(self) -> Any:
        if self._free is not None and not self._free.alive:
            raise self._gone()
        try:
            fd = os.open(f"/proc/{self._owner or os.getpid()}/fd/{self._fd}", os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, ProcessLookupError):
            raise self._gone() from None
        try:
            if os.fstat(fd).st_ino != self._inode:
                raise self._gone()
            whole = memoryview(mmap.mmap(fd, 0, prot=mmap.PROT_READ))
        finally:
            os.close(fd)
        places = zip(begins(self._length, self._sizes), self._sizes, strict=True)
        return pickle.loads(
            whole[: self._length], buffers=[whole[begin : begin + size] for begin, size in places]
        )

    def _gone(self) -> HandleGoneError:
        return HandleGoneError(
            "the shared value is gone: keep the SharedValue open, and referred to, as long as calls use it"
        )

    def close(self) -> None:
        """It can be read no more; what has been read of it lives on."""
        self._value = _NONE
        if self._free is not None:
            self._free()

    def __enter__(self) -> SharedValue[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        owner = os.getpid() if self._owner is None else self._owner
        return _sent, (owner, self._fd, self._inode, self._length, self._sizes)


def _sent(owner: int, fd: int, inode: int, length: int, sizes: list[int]) -> SharedValue[Any]:
    found: SharedValue[Any] = SharedValue.__new__(SharedValue)
    found._owner, found._fd, found._inode = owner, fd, inode
    found._length, found._sizes = length, sizes
    found._value = _NONE
    found._free = None
    return found
