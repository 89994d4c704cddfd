"""A recording of the GIL as a trace for https://ui.perfetto.dev: a track for each thread, arrows from
holder to waiter.

The trace is Perfetto's own protobuf (https://perfetto.dev/docs/reference/synthetic-track-event), written
field by field while the recording is read: of its hundreds of messages four are needed, with a dozen
fields, so the encoder below takes the place of a dependency, keeps memory bounded, and is several times as
fast as building message objects. The tests decode what it writes with Perfetto's own schema. The Chrome
JSON format, the other one that the UI opens, is three times as large and counts in microseconds.

An arrow leads from the hold of one thread to the hold of the thread that had waited for it. Several
recordings are several processes of one trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fairlead.record.gil_intervals import IntervalChunk, Intervals
from fairlead.record.recording import Recording, Thread
from fairlead.report.common import names

# field numbers of perfetto.protos; a key is number << 3 | wire type
_PACKET, _TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _DESCRIPTOR = 1, 8, 10, 11, 60
_TYPE, _TRACK, _NAME, _CATEGORY, _FLOW, _FLOW_END = 9, 11, 23, 22, 47, 48
_UUID, _PROCESS, _THREAD, _PARENT = 1, 3, 4, 5
_PID, _COMMAND, _PROCESS_NAME, _TID, _THREAD_NAME = 1, 2, 6, 2, 5
_BEGIN, _END = 1, 2
_OUR_SEQUENCE = 1

_Timed = tuple[int, int, bytes]
"""(ns since the start, 0 for the end of a slice and more for its beginning, packet)"""


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(tag: int, value: int) -> bytes:
    return _varint(tag << 3) + _varint(value)


def _bytes(tag: int, value: bytes) -> bytes:
    return _varint(tag << 3 | 2) + _varint(len(value)) + value


def _fixed64(tag: int, value: int) -> bytes:
    return _varint(tag << 3 | 1) + value.to_bytes(8, "little")


def _text(tag: int, value: str) -> bytes:
    return _bytes(tag, names.clean(value).encode())


def _packet(content: bytes) -> bytes:
    return _bytes(_PACKET, content + _number(_SEQUENCE, _OUR_SEQUENCE))


@dataclass(slots=True)
class _Gil:
    """What is carried from chunk to chunk of one GIL."""

    hold: tuple[int, int, int] | None = None
    """The last hold, (start, end, thread): not yet written, since an arrow may leave from it."""
    arrow_in: int = 0
    waits: set[tuple[int, int]] = field(default_factory=set)
    """(thread, end) of waits whose hold has not come yet."""


@dataclass(slots=True)
class _Trace:
    start_ns: int
    process: int
    """Its number among the trace's, from 0 on."""
    pid: int
    threads: dict[int, Thread]
    gils: dict[int, _Gil] = field(default_factory=dict)
    tracks: set[tuple[int, int]] = field(default_factory=set)
    arrows: int = 0

    def chunk(self, chunk: IntervalChunk) -> Iterator[bytes]:
        gil = self.gils.setdefault(chunk.gil, _Gil())
        holds = chunk.holds[["start", "end", "thread"]].tolist()
        for thread in {thread for _, _, thread in holds} | set(chunk.waits["thread"].tolist()):
            yield from self._track(chunk.gil, thread)
        packets: list[_Timed] = []
        for start, end, thread in chunk.waits[["start", "end", "thread"]].tolist():
            gil.waits.add((thread, end))
            packets += self._slice(chunk.gil, thread, start, end, b"waits for the GIL")
        for start, end, thread in holds:
            waited = (thread, start) in gil.waits
            gil.waits.discard((thread, start))
            before, arrow = gil.hold, 0
            if waited and before is not None and before[2] != thread:
                self.arrows += 1
                arrow = self.process << 40 | self.arrows
            packets += self._hold(chunk.gil, gil, arrow)
            gil.hold, gil.arrow_in = (start, end, thread), arrow
        if chunk.last:
            packets += self._hold(chunk.gil, gil, 0)
        # readers sort by time and keep the order of the file where times are the same: there the end of one
        # slice of a track has to come before the beginning of the next, or it would end that
        packets.sort(key=lambda packet: packet[:2])
        yield from (packet for _, _, packet in packets)

    def _hold(self, index: int, gil: _Gil, arrow_out: int) -> Iterator[_Timed]:
        """Write the hold that was kept back."""
        if gil.hold is not None:
            start, end, thread = gil.hold
            flows = (_fixed64(_FLOW, arrow_out) if arrow_out else b"") + (
                _fixed64(_FLOW_END, gil.arrow_in) if gil.arrow_in else b""
            )
            yield from self._slice(index, thread, start, end, b"holds the GIL", flows)

    def _slice(
        self, gil: int, thread: int, start: int, end: int, name: bytes, flows: bytes = b""
    ) -> Iterator[_Timed]:
        if end <= start:
            return
        track = _number(_TRACK, self._track_id(gil, thread))
        begin = _number(_TYPE, _BEGIN) + track + _bytes(_NAME, name) + _bytes(_CATEGORY, b"gil") + flows
        yield start, _BEGIN, _packet(_number(_TIMESTAMP, self.start_ns + start) + _bytes(_TRACK_EVENT, begin))
        finish = _number(_TYPE, _END) + track
        yield end, 0, _packet(_number(_TIMESTAMP, self.start_ns + end) + _bytes(_TRACK_EVENT, finish))

    def _track(self, gil: int, thread: int) -> Iterator[bytes]:
        if (gil, thread) in self.tracks:
            return
        self.tracks.add((gil, thread))
        known = self.threads.get(thread)
        name = known.name if known else f"thread {thread}"
        descriptor = _number(_PID, self.pid) + _number(_TID, known.native_id if known else thread)
        descriptor += _text(_THREAD_NAME, name)
        content = _number(_UUID, self._track_id(gil, thread)) + _number(_PARENT, 1 + self.process)
        # a thread that uses two GILs has a track for each; only the first can be the thread's own
        own = sum(1 for _, serial in self.tracks if serial == thread) == 1
        content += _bytes(_THREAD, descriptor) if own else _text(2, f"{name} on GIL {gil}")
        yield _packet(_bytes(_DESCRIPTOR, content))

    def _track_id(self, gil: int, thread: int) -> int:
        return (self.process << 16 | gil + 1) << 32 | thread


def render(*recordings: Recording) -> Iterator[bytes]:
    """The trace, piece by piece, in the order of each recording; Perfetto sorts by time when it loads one.

    Several recordings must have a clock in common (``analysis.together.in_order``).

    Raises:
        RecordError: the file can no longer be read.
    """
    for number, recording in enumerate(recordings):
        meta = recording.meta
        process = _number(_PID, meta.pid) + b"".join(_text(_COMMAND, argument) for argument in meta.argv)
        process += _text(_PROCESS_NAME, " ".join(meta.argv) or meta.executable)
        yield _packet(_bytes(_DESCRIPTOR, _number(_UUID, 1 + number) + _bytes(_PROCESS, process)))
        trace = _Trace(meta.start_ns, number, meta.pid, recording.threads())
        for chunk in Intervals(recording).chunks():
            yield from trace.chunk(chunk)
