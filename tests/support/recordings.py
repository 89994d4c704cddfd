"""Writes recordings in the format of ``fairlead.record.recording``, block by block, for tests of its
readers."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from fairlead.record import recording as fmt

EVENT = struct.Struct("<QIIQHBBI")
META = {
    "pid": 4711,
    "parent_pid": None,
    "argv": ["app.py", "--fast"],
    "executable": "/usr/bin/python3",
    "python_version": "3.13.0",
    "implementation": "CPython",
    "fairlead": "0.1.0",
    "cpus": 2,
    "switch_interval_s": 0.005,
    "wait_threshold_s": 0.001,
    "clock": {"name": "CLOCK_MONOTONIC", "resolution_ns": 1},
    "start_ns": 1_000_000_000,
    "start_wall_ns": 1_750_000_000_000_000_000,
}


class Event(NamedTuple):
    """One event, in the order of the file's fields."""

    t_ns: int
    thread: int
    other: int = 0
    value_ns: int = 0
    gil: int = 0
    kind: int = 0
    flags: int = 0
    stack: int = 0


def whole(events: Iterable[Event]) -> list[Event]:
    """Each uncontended ACQUIRE told with its DROP, where that comes next."""
    told: list[Event] = []
    for event in events:
        before = told[-1] if told else event
        take = before.kind == fmt.EventType.ACQUIRE and not before.flags & fmt.CONTENDED
        if take and (event.kind, event.thread) == (fmt.EventType.DROP, before.thread):
            told[-1] = event._replace(other=before.other, flags=event.flags | fmt.WHOLE)
        else:
            told.append(event)
    return told


class RecordingWriter:
    """Collects blocks; ``bytes()`` is the file so far."""

    def __init__(self, version: int = fmt.VERSION, magic: bytes = fmt.MAGIC) -> None:
        self.parts = [fmt.FILE_HEADER.pack(magic, version, 0)]
        self.offsets: list[int] = []
        """Where each block begins."""

    def block(self, block_type: int, payload: bytes, *, crc: int | None = None) -> RecordingWriter:
        self.offsets.append(len(self.bytes()))
        crc = zlib.crc32(payload) if crc is None else crc
        self.parts.append(
            fmt.BLOCK_HEADER.pack(block_type, len(payload), crc, 0) + payload + bytes(-len(payload) % 8)
        )
        return self

    def json(self, block_type: int, data: Any) -> RecordingWriter:
        return self.block(block_type, json.dumps(data).encode())

    def meta(self, **changes: Any) -> RecordingWriter:
        return self.json(fmt.BlockType.META, {**META, **changes})

    def threads(self, *threads: tuple[int, int, str, int]) -> RecordingWriter:
        names = ("serial", "native_id", "name", "gil")
        return self.json(fmt.BlockType.THREADS, [dict(zip(names, thread, strict=True)) for thread in threads])

    def events(self, events: Iterable[Event]) -> RecordingWriter:
        return self.block(fmt.BlockType.EVENTS, b"".join(EVENT.pack(*event) for event in events))

    def stacks(self, stacks: dict[int, list[tuple[str, str, int]]]) -> RecordingWriter:
        return self.json(
            fmt.BlockType.STACKS, [{"id": key, "frames": frames} for key, frames in stacks.items()]
        )

    def lost(self, t0_ns: int, t1_ns: int, count: int) -> RecordingWriter:
        return self.block(fmt.BlockType.LOST, fmt.LOST.pack(t0_ns, t1_ns, count))

    def end(self, t_ns: int) -> RecordingWriter:
        return self.block(fmt.BlockType.END, fmt.END.pack(t_ns))

    def bytes(self) -> bytes:
        return b"".join(self.parts)

    def save(self, path: Path) -> Path:
        path.write_bytes(self.bytes())
        return path
