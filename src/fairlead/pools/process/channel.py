"""Messages between this process and a worker: small ones through a socket, large ones through shared memory.

A message is a pickle stream and its out-of-band buffers (protocol 5). When both together are larger than
``INLINE``, they are written into a *block*: anonymous memory (memfd) whose descriptor goes along with the
message. The receiver maps it and closes the descriptor; objects that were pickled with buffers, as numpy's
arrays, then live in the mapping without a copy. When the last of them is gone, the receiver says so in its
next message, and the sender takes the block for another: its pages are there already, and new pages are what
costs most.

What is kept for further messages goes when there has been none for a while: the thread that waits for the
next drops free blocks and mappings, and says what is given back, in a message of its own.

A block has no name anywhere. It exists as long as a descriptor or a mapping of it does, so that nothing is
left behind when either side is killed at whatever moment. Where no block can be had (no memory, no
descriptors, another system), the message goes through the socket, in full. A receiver that has no descriptor
left for a block asks for that message again, and gets it through the socket.

Wire: HEADER, then the numbers of blocks given back, the lengths of the buffers, and without a block the
stream and the buffers. A block's stream begins at 0, its buffers at the next multiples of ALIGN.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import functools
import math
import mmap
import os
import select
import socket
import struct
import time
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairlead import _native
from fairlead.pools.engine.lock import EngineLock
from fairlead.pools.serialization.messages import Message, Parts, laid_out, places, write

HEADER = struct.Struct("<BBHIIQ")
"""MARK, what it is, blocks given back, buffers, the block's number or 0, the stream's length."""
MARK = 0xFA
LONGEST = 1 << 46
"""Bytes of a message: more than any machine has, and less than what an allocation trips over."""

INLINE = 64 * 1024
GROWS_BY = 1024 * 1024
"""Bytes for which there is memory before they have come."""
KEEP_BYTES = 128 * 1024 * 1024
KEEP = 8
"""Blocks and bytes that a sender keeps for further use."""
IDLE_S = 1.0
"""Without a message for so long, nothing is kept."""
GIVEN_BACK = 0xFE
"""What a message is that only says which blocks are given back."""
MOST_GIVEN_BACK = 1000

MOST_LENT = 32
"""Blocks of which objects live at the receiver's; what comes beyond is copied. Each is a descriptor of the
sender's."""
AGAIN = 0xFF
"""What a message is that asks for another one, whose block has come without its descriptor."""

_FD = struct.calcsize("i")
_LOST = -1
"""In the place of a descriptor, for which none was left."""
_NUMBER = struct.Struct("<I")
_open: set[int] = set()
"""The descriptors of all blocks that this process has made."""


@functools.cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    size, word = ctypes.c_size_t, ctypes.c_int
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = ctypes.c_void_p, size, word, word, word, ctypes.c_long
    libc.munmap.argtypes = ctypes.c_void_p, size
    return libc


class Corrupt(Exception):
    """What has come is no message of the other end's; nothing that follows can be understood either."""


@dataclass(slots=True)
class _Block:
    number: int
    fd: int
    size: int
    map: Any = None
    """From its second use on, when its pages are there: copying is twice as fast as writing then."""
    sent: tuple[int, int, list[int]] = (0, 0, [])
    """Of the message in it: the kind, the length of the stream, those of the buffers."""


class Lent:
    """The other side's blocks: the mappings of those used last, those that objects here live in, those to
    give back."""

    __slots__ = ("free", "living", "maps")

    def __init__(self) -> None:
        self.living: set[int] = set()
        self.free: deque[int] = deque()
        self.maps: dict[int, Any] = {}

    def map(self, number: int, fd: int, length: int) -> Any:
        found = self.maps.pop(number, None)
        if found is None or len(found) < length:
            found = _map(fd)
        self.maps[number] = found
        while len(self.maps) > KEEP or sum(map(len, self.maps.values())) > max(KEEP_BYTES, len(found)):
            del self.maps[next(iter(self.maps))]  # the one that was used the longest time ago
        return found

    def end(self, number: int) -> None:
        self.living.discard(number)
        self.free.append(number)


def _most_open() -> float:
    """Half of the descriptors that this process may have: the program needs some, too."""
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return math.inf if most == resource.RLIM_INFINITY else most // 2


def _map(fd: int) -> Any:
    """An array of ctypes in which the file is mapped: Python's own keeps a descriptor, before 3.13 always."""
    size = os.fstat(fd).st_size
    flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
    address = _libc().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, fd, 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "a block cannot be mapped")
    found = (ctypes.c_char * size).from_address(address)
    weakref.finalize(found, _libc().munmap, address, size).atexit = False
    return found


def _close(fds: list[int]) -> None:
    for fd in fds:
        if fd != _LOST:
            os.close(fd)


class _Mapped:
    """The block of one message at the receiver's."""

    __slots__ = ("_bytes", "_lent", "_number", "_whole")

    def __init__(self, fd: int, length: int, number: int, lent: Lent) -> None:
        block = lent.map(number, fd, length)
        # an object for this message alone, whose end tells that nothing lives in the block any more; the size
        # of its type is the block's, because types are kept
        self._bytes = (ctypes.c_char * len(block)).from_buffer(block)
        self._whole = memoryview(self._bytes).cast("B")
        self._number = number
        self._lent = lent

    def part(self, begin: int, length: int) -> memoryview:
        return self._whole[begin : begin + length]

    def loaded(self, kept: bool) -> None:
        """Gives it back: now, or when the objects that live in it are gone."""
        if kept:
            self._lent.living.add(self._number)
            weakref.finalize(self._bytes, self._lent.end, self._number).atexit = False
        else:
            self._lent.free.append(self._number)


class Channel:
    """One end. One thread receives, and one at a time sends; ``close`` may come from any."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self.bytes_out = 0
        self.bytes_in = 0
        self._blocks: dict[int, _Block] = {}
        self._free: list[_Block] = []
        self._numbered = 0
        self._lent = Lent()
        self._ahead: tuple[bytes, list[int]] = b"", []
        """What has come of the next message, with its descriptor."""
        self._come: Message | Exception | None = None
        """The next message, or why there is none."""
        self._lock = EngineLock()
        """Held by who sends, or changes what is free."""
        self._poller = select.poll()
        self._poller.register(end, select.POLLIN)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()
        _, fds = self._ahead
        self._ahead = b"", []
        _close(fds)
        for block in list(self._blocks.values()):
            self._drop(block)
        self._free.clear()
        self._lent.maps.clear()

    # sending

    def send(self, kind: int, parts: Parts) -> None:
        """OSError if the other end is gone."""
        with self._lock:
            self._send(kind, parts)

    def _send(self, kind: int, parts: Parts) -> None:
        stream, buffers = parts.stream, parts.buffers
        length = sum(map(len, stream)) if len(stream) > 1 else len(stream[0])
        whole = length + sum(buffer.nbytes for buffer in buffers) if buffers else length
        block = self._write_block(stream, length, buffers) if whole > INLINE else None
        free = self._lent.free
        freed = [free.popleft() for _ in range(min(len(free), MOST_GIVEN_BACK))]
        sizes = [buffer.nbytes for buffer in buffers]
        if block is not None:
            block.sent = kind, length, sizes
        head = HEADER.pack(
            MARK, kind, len(freed), len(buffers), block.number if block is not None else 0, length
        )
        if freed or buffers:
            head += array.array("I", freed).tobytes()
            head += array.array("Q", sizes).tobytes()
        self.bytes_out += whole
        if block is not None:
            sent = socket.send_fds(self._socket, [head], [block.fd])
            if sent < len(head):
                self._socket.sendall(head[sent:])
        elif whole <= INLINE:
            self._socket.sendall(b"".join((head, *stream, *buffers)))
        else:
            for piece in (head, *stream, *buffers):
                self._socket.sendall(piece)

    def _send_again(self, number: int) -> None:
        """Sends what is in a block through the socket."""
        block = self._blocks.get(number)
        if block is None:
            raise Corrupt(f"block {number} is asked for, which was not lent")
        kind, length, sizes = block.sent
        head = HEADER.pack(MARK, kind, 0, len(sizes), 0, length) + array.array("Q", sizes).tobytes()
        self._socket.sendall(head)
        for begin, size in ((0, length), *zip(places(length, sizes)[0], sizes, strict=True)):
            for at in range(begin, begin + size, GROWS_BY):
                self._socket.sendall(os.pread(block.fd, min(GROWS_BY, begin + size - at), at))
        self._take_back(number)

    def _write_block(self, stream: list[Any], length: int, buffers: list[memoryview]) -> _Block | None:
        pieces, end = laid_out(stream, length, buffers)
        block = self._take_block(end)
        if block is None:
            return None
        try:
            if block.size:
                if block.map is None:
                    block.map = _map(block.fd)
                at = 0
                for piece in pieces:
                    _native.copy(block.map, at, piece)  # large ones without the GIL
                    at += piece.nbytes
            else:
                write(block.fd, pieces)
                block.size = end
        except OSError:  # no memory left for it
            self._drop(block)
            return None
        return block

    def _take_block(self, size: int) -> _Block | None:
        fitting = [block for block in self._free if size <= block.size <= 4 * size]
        if fitting:
            best = min(fitting, key=lambda block: block.size)
            self._free.remove(best)
            return best
        if not hasattr(os, "memfd_create"):
            return None
        try:
            fd = os.memfd_create("fairlead", os.MFD_CLOEXEC)
        except OSError:
            return None
        _open.add(fd)
        if len(_open) > _most_open():  # with those that other threads have just made
            _open.discard(fd)
            os.close(fd)
            return None
        self._numbered += 1
        block = self._blocks[self._numbered] = _Block(self._numbered, fd, 0)
        return block

    def _drop(self, block: _Block) -> None:
        del self._blocks[block.number]
        _open.discard(block.fd)
        os.close(block.fd)

    def _take_back(self, number: int) -> None:
        block = self._blocks.get(number)
        if block is None or block in self._free:
            raise Corrupt(f"block {number} is given back, which was not lent")
        self._free.append(block)
        while len(self._free) > KEEP or sum(block.size for block in self._free) > KEEP_BYTES:
            self._drop(self._free.pop(0))

    # receiving

    def poll(self, timeout: float | None) -> bool:
        """Whether ``receive`` need not wait, within the time."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        lent = self._lent
        while self._come is None:
            left = until - time.monotonic()
            keeps = self._free or lent.maps or lent.free or lent.living  # to see to while no message comes
            if (keeps or timeout is not None) and not self._ahead[0]:
                wait_s = max(min(left, IDLE_S) if keeps else left, 0)
                if not self._poller.poll(math.ceil(wait_s * 1000)):
                    if wait_s == IDLE_S:
                        self._keep_nothing()
                    if time.monotonic() >= until:
                        return False
                    continue
            self._come = self._next()
        return True

    def _keep_nothing(self) -> None:
        with self._lock:
            while self._free:
                self._drop(self._free.pop())
            self._lent.maps.clear()
            if self._lent.free:
                parts = Parts()
                parts.write(b"")
                with contextlib.suppress(OSError):  # receive() will find out
                    self._send(GIVEN_BACK, parts)

    def receive(self) -> Message:
        """EOFError or OSError if the other end is gone, Corrupt if it has sent something else."""
        self.poll(None)
        come, self._come = self._come, None
        if isinstance(come, Exception):
            raise come
        assert come is not None
        return come

    def _next(self) -> Message | Exception | None:
        """None: it has only given something back, or asked for something."""
        data, fds = self._ahead
        self._ahead = b"", []
        try:
            if not data:
                data, fds = self._receive_more()
            message = self._read(data, fds)
        except (EOFError, OSError, Corrupt) as gone:
            return gone
        finally:
            _close(fds)
        if message is not None and message.kind == GIVEN_BACK:
            self._keep_nothing()  # the other end has waited for long enough
            return None
        return message

    def _read(self, data: bytes, fds: list[int]) -> Message | None:
        """None: it was about a message that is asked for again."""
        data = self._at_least(HEADER.size, data, fds)
        mark, kind, freed, count, number, length = HEADER.unpack_from(data)
        if mark != MARK:
            raise Corrupt(f"a message begins with {mark:#x}")
        begin = HEADER.size
        tables = begin + 4 * freed + 8 * count
        data = self._at_least(tables, data, fds)
        sizes: Sequence[int] = ()
        if freed or count:
            with self._lock:
                for given_back in struct.unpack_from(f"<{freed}I", data, begin):
                    self._take_back(given_back)
            sizes = struct.unpack_from(f"<{count}Q", data, begin + 4 * freed)
        whole = length + sum(sizes)
        if whole > LONGEST:
            raise Corrupt(f"a message of {whole} bytes is announced")
        self.bytes_in += whole
        end = tables if number else tables + whole
        if len(data) > end:
            own = bool(number)
            self._ahead = data[end:], fds[own:]
            del fds[own:]
            data = data[:end]
        if number and fds == [_LOST]:
            with self._lock:
                self._socket.sendall(HEADER.pack(MARK, AGAIN, 0, 0, 0, _NUMBER.size) + _NUMBER.pack(number))
            return None
        if number:
            return self._from_block(kind, fds, number, length, sizes)
        if kind == AGAIN:
            with self._lock:
                self._send_again(*_NUMBER.unpack_from(data, tables))
            return None
        return self._from_socket(kind, data, tables, length, sizes)

    def _at_least(self, size: int, data: bytes, fds: list[int]) -> bytes:
        while len(data) < size:
            more, more_fds = self._receive_more()
            data += more
            fds += more_fds
        return data

    def _receive_more(self) -> tuple[bytes, list[int]]:
        data, ancillary, flags, _ = self._socket.recvmsg(INLINE + 4096, socket.CMSG_LEN(_FD))
        if not data:
            raise EOFError("the other end is gone")
        if flags & socket.MSG_CTRUNC:  # this process may have no more
            return data, [_LOST]
        fds = [struct.unpack("i", found[:_FD])[0] for _, _, found in ancillary] if ancillary else []
        return data, fds

    def _from_socket(self, kind: int, data: bytes, begin: int, length: int, sizes: Sequence[int]) -> Message:
        end = begin + length + sum(sizes)
        if len(data) < end:
            view = memoryview(self._rest(data, end))
        else:
            view = memoryview(bytearray(data) if sizes else data)
        buffers = []
        at = begin + length
        for size in sizes:
            buffers.append(view[at : at + size])
            at += size
        return Message(kind, view[begin : begin + length], buffers, None)

    def _rest(self, data: bytes, end: int) -> bytearray:
        """What has come and what is to come of a message, in memory that grows as it comes: the length may be
        damaged, and to believe it could take all memory that there is."""
        whole = bytearray(data)
        while len(whole) < end:
            have = len(whole)
            try:
                whole += bytes(min(end - have, max(have, GROWS_BY)))
            except MemoryError:
                raise Corrupt(f"there is no memory for a message of {end} bytes") from None
            with memoryview(whole) as view:
                while have < len(whole):
                    got = self._socket.recv_into(view[have:])
                    if not got:
                        raise EOFError("the other end is gone")
                    have += got
        return whole

    def _from_block(
        self, kind: int, fds: list[int], number: int, length: int, sizes: Sequence[int]
    ) -> Message:
        begins, end = places(length, sizes)
        if len(fds) != 1 or os.fstat(fds[0]).st_size < end:
            raise Corrupt(f"block {number} is not there, or too small")
        block = _Mapped(fds[0], end, number, self._lent)
        buffers: list[Any] = [block.part(begin, size) for begin, size in zip(begins, sizes, strict=True)]
        if len(self._lent.living) >= MOST_LENT:
            buffers = [bytearray(buffer) for buffer in buffers]
        return Message(kind, block.part(0, length), buffers, block)
