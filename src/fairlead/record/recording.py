"""A recording of the GIL: the format of the file, and its reader. The writer is in C, in ``fairlead._probe``.

A recording is appended to while the program runs and may end anywhere: when the program is killed, when the
disk is full, when the file is copied too early. So the file is a row of blocks, each complete in itself and
each with a checksum, and the reader gives back whatever stands before the damage and says what is missing.
(The habit is that of memray's and pcap's files: a header once, then records that a cut cannot spoil
backwards.)

All numbers are little-endian. Times are nanoseconds of one monotonic clock, which META names.

    file     8 bytes "FLRECORD", u32 version = 3, u32 flags = 0; then blocks until the end of the file
    block    u32 type, u32 length of the payload, u32 crc32 of the payload (zlib's), u32 reserved = 0;
             then the payload (at most 16 MiB), padded with zero bytes to a multiple of 8

    1 META      UTF-8 JSON, one object, always the first block:
                  pid, parent_pid (null unless the process is a forked child of a recorded one),
                  argv, executable, python_version, implementation, fairlead (its version),
                  cpus (how many the process may use), switch_interval_s,
                  wait_threshold_s (a longer wait has its stacks recorded; null: none has),
                  clock {name, resolution_ns, boot (the kernel's id of this boot: recordings that have
                  it in common share the clock)}, start_ns (when recording began, by that clock),
                  start_wall_ns (the same moment in Unix time)
    2 THREADS   UTF-8 JSON, a list of {serial, native_id, name, gil}; repeated for threads that are
                  new or have another name now. A serial is never used twice in a process; 0 is
                  "no thread". gil is the one the thread was first seen with
    3 EVENTS    records of 32 bytes: u64 t_ns, u32 thread (serial), u32 other (serial), u64 value_ns,
                  u16 gil (index), u8 kind, u8 flags (1 forced, 2 contended, 4 whole, 8 row),
                  u32 stack (0: none)
    4 STACKS    UTF-8 JSON, a list of {id, frames: [[function, file, line, ...], ...]}, innermost
                  first; a stack may come after the event that names it
    5 COUNTERS  UTF-8 JSON, a snapshot of everything counted since the start:
                  {t_ns, threads: [...], blame: [...], scheduler, load}, threads with the keys of
                  ``fairlead.record.gil_summary.GilThread.from_counters``;
                  blame is a list of [gil, waiter, holder, ns] (holder 0: the GIL was free);
                  scheduler {mode (fairlead.record.policies), tripped (0 or 1)}, of GIL 0, now; then load
                  {own_ns, machine_ns (of all processes, ours too), cores}, CPU time since the start,
                  absent where the system does not say. These two come last
    6 LOST      u64 t0_ns, u64 t1_ns, u64 count: events that found no room, and between which times
    7 END       u64 t_ns: when recording stopped. Absent when the process was killed
    8 FULL      u64 t_ns: when the file was as large as it may be: no event comes after this, and counters do

    kind             thread                  other                         value_ns
    1 WANT           the waiter              the holder                    0
    2 REQUEST        the waiter              the holder                    waited so far
    3 ACQUIRE        the new holder          the holder before             waited (0: it was free)
    4 DROP           the holder              0                             held
    6 OFFCPU         the holder              0                             off the CPU in this hold
    7 THREAD_START   the thread              0                             0
    8 THREAD_END     the thread              0                             0
    9 STACK_WAITER   the waiter              the holder before             waited
    10 STACK_HOLDER  the holder              one that waits                how long that one waited so far
    11 ASLEEP        the holder              0                             how long it slept by itself
    12 OFFCPU_EARLY  the holder              0                             off the CPU before a REQUEST
    13 COLLECTED     has collected garbage   the generation                how long that took
    14 ASKED_LATE    the holder              0                             how late the first REQUEST was

A DROP that is whole tells of its ACQUIRE, too, which found the GIL free: that was value_ns before, and other
is the holder before it. Nothing came in between. One that is a row, too, tells of ``other`` takes and drops:
holds of this thread under 100 us each, one after another within 1 ms, for which no thread waited; value is
how long they were together. Version 1 had neither flag, version 2 no rows, and both are read as well.
The events of one GIL stand in the order in which they happened, which is also the order of their times. A
contended ACQUIRE by another than the holder before is a hand-off from that one. An OFFCPU, an ASLEEP and an
OFFCPU_EARLY (parts of the OFFCPU's time), an ASKED_LATE and a STACK_HOLDER belong to the hold that ends then,
a STACK_WAITER to the wait.
Block types and kinds that a reader does not know are passed over, so that later versions can add some
without a new version number; a change in the meaning of anything above raises it, and an older reader then
refuses the file.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from fairlead.errors import RecordError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAGIC = b"FLRECORD"
VERSION = 3
FILE_HEADER = struct.Struct("<8sII")
BLOCK_HEADER = struct.Struct("<IIII")
LOST = struct.Struct("<QQQ")
END = struct.Struct("<Q")
MAX_PAYLOAD = 16 * 1024 * 1024

FORCED = 1
CONTENDED = 2
WHOLE = 4
ROW = 8

EVENT_FIELDS = [
    ("t_ns", "<u8"), ("thread", "<u4"), ("other", "<u4"), ("value_ns", "<u8"),
    ("gil", "<u2"), ("kind", "u1"), ("flags", "u1"), ("stack", "<u4"),
]  # fmt: skip
EVENT = struct.Struct("<QIIQHBBI")
"""The same fields."""
EVENT_SIZE = EVENT.size


class BlockType(IntEnum):
    META = 1
    THREADS = 2
    EVENTS = 3
    STACKS = 4
    COUNTERS = 5
    LOST = 6
    END = 7
    FULL = 8


class EventType(IntEnum):
    WANT = 1
    REQUEST = 2
    ACQUIRE = 3
    DROP = 4
    OFFCPU = 6
    THREAD_START = 7
    THREAD_END = 8
    STACK_WAITER = 9
    STACK_HOLDER = 10
    ASLEEP = 11
    OFFCPU_EARLY = 12
    COLLECTED = 13
    ASKED_LATE = 14


@dataclass(frozen=True, slots=True)
class Block:
    """One whole block, its checksum verified."""

    index: int
    """0 is the first block of the file."""
    offset: int
    """Where its header stands in the file, in bytes."""
    type: int
    payload: bytes

    def json(self) -> Any:
        return json.loads(self.payload)

    def rows(self) -> Iterator[tuple[int, ...]]:
        """What ``events`` has, as tuples: for few of them, and without numpy."""
        size = len(self.payload) - len(self.payload) % EVENT_SIZE
        for row in EVENT.iter_unpack(self.payload[:size]):
            t_ns, thread, other, value_ns, gil, kind, flags, stack = row
            if flags & WHOLE:
                before, turns = (0, other) if flags & ROW else (other, 0)
                yield t_ns - value_ns, thread, before, 0, gil, int(EventType.ACQUIRE), 0, 0
                yield t_ns, thread, turns, value_ns, gil, kind, flags & ~WHOLE, stack
            else:
                yield row

    def events(self) -> NDArray[np.void]:
        """The payload of an EVENTS block as an array with the fields of ``EVENT_FIELDS``: each ACQUIRE by
        itself, also where the file has told it with its DROP. A row stays one ACQUIRE and one DROP."""
        import numpy as np

        size = len(self.payload) - len(self.payload) % EVENT_SIZE
        told = np.frombuffer(self.payload[:size], dtype=EVENT_FIELDS)
        whole = told["flags"] & WHOLE != 0
        if not whole.any():
            return told
        times = 1 + whole
        events = np.repeat(told, times)
        drops = (np.cumsum(times) - 1)[whole]
        takes = drops - 1
        events["other"][takes] *= events["flags"][takes] & ROW == 0
        events["t_ns"][takes] -= events["value_ns"][takes]
        for name, value in (("kind", EventType.ACQUIRE), ("value_ns", 0), ("flags", 0), ("stack", 0)):
            events[name][takes] = value
        events["other"][drops] *= events["flags"][drops] & ROW != 0
        events["flags"][drops] &= ~np.uint8(WHOLE)
        return events


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """What a recording says of itself; the keys of its META block. A key that is missing has the default
    here."""

    pid: int
    start_ns: int
    parent_pid: int | None = None
    argv: tuple[str, ...] = ()
    executable: str = ""
    python_version: str = ""
    implementation: str = ""
    fairlead: str = ""
    cpus: int | None = None
    switch_interval_s: float = 0.005
    wait_threshold_s: float | None = None
    clock: str = "CLOCK_MONOTONIC"
    clock_resolution_ns: int = 1
    boot: str | None = None
    """The kernel's id of the boot that the clock counts from; None: not recorded."""
    start_wall_ns: int | None = None

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Meta:
        """Raises KeyError, TypeError or ValueError when the object is no META."""
        clock = data.get("clock") or {}
        known = {name: data[name] for name in cls.__dataclass_fields__ if data.get(name) is not None}
        known.pop("clock", None)
        known.pop("boot", None)
        known["argv"] = tuple(str(arg) for arg in known.get("argv", ()))
        return cls(
            **{**known, "pid": int(data["pid"]), "start_ns": int(data["start_ns"])},
            clock=str(clock.get("name", "CLOCK_MONOTONIC")),
            clock_resolution_ns=int(clock.get("resolution_ns", 1)),
            boot=str(clock["boot"]) if clock.get("boot") else None,
        )


Frame = tuple[str, str, int]
"""(function, file, line)"""
Frames = tuple[Frame, ...]
"""(function, file, line), innermost first."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of a recorded process."""

    serial: int
    native_id: int
    name: str
    gil: int


class Recording:
    """A recording file, read block by block, in memory bounded by its largest block.

    Opening reads the file's header and META. ``blocks()`` may be called again and goes on to see what a
    running program has appended in the meantime.

    Attributes:
        path: the file.
        meta: its META block.

    Raises:
        RecordError: the file cannot be opened, is no recording, is of a newer version, or ends before its
        META block.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._damaged: dict[int, str] = {}
        self._ending: str | None = None
        try:
            with self.path.open("rb") as file:
                self._check_header(file.read(FILE_HEADER.size))
        except OSError as error:
            raise RecordError(f"{self.path} cannot be read: {error.strerror}") from error
        first = next(self.blocks(), None)
        if first is None or first.type != BlockType.META:
            raise RecordError(
                f"{self.path} ends before it says what was recorded (no whole META): record again"
            )
        try:
            self.meta = Meta.from_json(first.json())
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RecordError(
                f"{self.path}: its META block is not valid ({error!r}): record again"
            ) from error

    def _check_header(self, header: bytes) -> None:
        if not header:
            raise RecordError(
                f"{self.path} is empty: the program ended before anything was recorded; record again"
            )
        if not header.startswith(MAGIC):
            raise RecordError(
                f"{self.path} is not a recording of fairlead (it does not begin with {MAGIC.decode()})"
            )
        if len(header) < FILE_HEADER.size:
            raise RecordError(f"{self.path} is cut within its first {FILE_HEADER.size} bytes: record again")
        version = FILE_HEADER.unpack(header)[1]
        if version > VERSION:
            raise RecordError(
                f"{self.path} has format version {version}, and this fairlead reads up to version {VERSION}:"
                " update fairlead (pip install -U fairlead)"
            )

    def blocks(self, *types: BlockType) -> Iterator[Block]:
        """The whole blocks in the order of the file, or only those of the given types.

        A block whose checksum is wrong is left out. A block that the file ends in, or a header that cannot
        be one, ends the row. Each is a line in ``problems``.
        """
        with self.path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            offset, index = FILE_HEADER.size, 0
            ending: str | None = _NO_END
            file.seek(offset)
            while offset < size:
                header = file.read(BLOCK_HEADER.size)
                length = _payload_length(header)
                if length is None:
                    ending = _broken("is damaged from", index, offset)
                    break
                if offset + BLOCK_HEADER.size + length > size:
                    ending = _broken("ends in the middle of", index, offset)
                    break
                block_type, _, crc, _ = BLOCK_HEADER.unpack(header)
                wanted = not types or block_type in types
                payload = self._payload(file, length, wanted=wanted)
                if wanted and zlib.crc32(payload) != crc:
                    self._damaged[index] = (
                        f"block {index} at byte {offset} is damaged and left out ({_name(block_type)})"
                    )
                elif wanted:
                    yield Block(index, offset, block_type, payload)
                if block_type == BlockType.END:
                    ending = None
                offset += BLOCK_HEADER.size + length + _padding(length)
                index += 1
        self._ending = ending

    @property
    def problems(self) -> tuple[str, ...]:
        """What is damaged or missing, one line each, as far as ``blocks()`` has come across it.

        How the file ends is told as the last pass that came to the end found it: it may still have grown.
        """
        lines = [line for _, line in sorted(self._damaged.items())]
        return (*lines, self._ending) if self._ending else tuple(lines)

    def threads(self) -> dict[int, Thread]:
        """Every thread by its serial, with the last name it had."""
        return {
            entry["serial"]: Thread(entry["serial"], entry["native_id"], entry["name"], entry.get("gil", 0))
            for block in self.blocks(BlockType.THREADS)
            for entry in block.json()
        }

    def stacks(self) -> dict[int, Frames]:
        """Every recorded Python stack by its id, innermost frame first."""
        return {
            entry["id"]: tuple((str(frame[0]), str(frame[1]), int(frame[2])) for frame in entry["frames"])
            for block in self.blocks(BlockType.STACKS)
            for entry in block.json()
        }

    def counters(self) -> dict[str, Any] | None:
        """The last snapshot of the counters, or None when there is none."""
        last = None
        for block in self.blocks(BlockType.COUNTERS):
            last = block
        return None if last is None else last.json()

    @staticmethod
    def _payload(file: BinaryIO, length: int, *, wanted: bool) -> bytes:
        if wanted:
            payload = file.read(length)
            file.seek(_padding(length), os.SEEK_CUR)
            return payload
        file.seek(length + _padding(length), os.SEEK_CUR)
        return b""


_NO_END = (
    "the recording has no end mark: the program was killed, still runs, or found no room; all before is shown"
)


def _broken(how: str, index: int, offset: int) -> str:
    return f"recording {how} block {index} at byte {offset}; everything before is shown"


def _payload_length(header: bytes) -> int | None:
    """The length that a block's header gives, or None when it cannot be a header; a cut header counts as
    long."""
    if len(header) < BLOCK_HEADER.size:
        return MAX_PAYLOAD
    block_type, length, _, reserved = BLOCK_HEADER.unpack(header)
    if block_type == 0 or reserved != 0 or length > MAX_PAYLOAD:
        return None
    return int(length)


def _padding(length: int) -> int:
    return -length % 8


def _name(block_type: int) -> str:
    try:
        return BlockType(block_type).name
    except ValueError:
        return f"unknown type {block_type}"
