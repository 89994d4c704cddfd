"""A recording of the GIL for https://profiler.firefox.com: a row for each thread, with its holds and waits as
markers.

The file is Firefox's own ("Gecko") profile format, version 24, as Linux's perf writes it too; the profiler
brings it up to date when it loads one. There are no samples: each hold and each wait is there, as an interval
in the marker chart and the marker table. A wait names the thread that had the GIL just before it was over.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from fairlead.record.gil_intervals import IntervalChunk, Intervals
from fairlead.record.recording import Recording
from fairlead.report.common import names

_VERSION = 24
_STRINGS = ["GilHold", "GilWait"]
_INTERVAL = 1
"""A marker's phase: it has a start and an end."""
_HOLDS, _WAITS = 0, 1
"""Places in the table of categories, and of a thread's strings."""
_CATEGORIES = [
    {"name": "holds the GIL", "color": "green", "subcategories": ["Other"]},
    {"name": "waits for the GIL", "color": "orange", "subcategories": ["Other"]},
    {"name": "Other", "color": "grey", "subcategories": ["Other"]},
]
_PLACES = ["marker-chart", "marker-table", "timeline-overview"]
_MARKERS = [
    {
        "name": "GilHold",
        "chartLabel": "holds",
        "tooltipLabel": "holds the GIL",
        "display": _PLACES,
        "data": [],
    },
    {
        "name": "GilWait",
        "chartLabel": "waits behind {marker.data.behind}",
        "tableLabel": "behind {marker.data.behind}",
        "tooltipLabel": "waits for the GIL",
        "display": _PLACES,
        "data": [{"key": "behind", "label": "Behind", "format": "string", "searchable": True}],
    },
]
_TABLES = {
    "samples": ("stack", "time", "responsiveness"),
    "frameTable": (
        "location", "relevantForJS", "innerWindowID", "implementation", "line", "column", "category",
        "subcategory",
    ),
    "stackTable": ("prefix", "frame"),
}  # fmt: skip
"""Nothing is in them."""


@dataclass(slots=True)
class _Row:
    """What a thread does with a GIL; times in ns."""

    holds: array[int] = field(default_factory=lambda: array("q"))
    """Starts and ends in turns."""
    waits: array[int] = field(default_factory=lambda: array("q"))
    """Starts, ends, and the holder before."""


def render(*recordings: Recording) -> Iterator[bytes]:
    """The file, a thread at a time.

    Several recordings must have a clock in common, and stand in the order of their starts
    (``analysis.together.in_order``).

    Raises:
        RecordError: a file can no longer be read.
    """
    first = recordings[0].meta
    product = names.clean(" ".join(first.argv) or first.executable)
    yield b'{"meta":' + json.dumps(_meta(first.start_wall_ns or 0, product)).encode()
    yield b',"libs":[],"processes":[],"pausedRanges":[],"threads":['
    separator = b""
    for recording in recordings:
        for piece in _threads(recording, recording.meta.start_ns - first.start_ns):
            yield separator + piece
            separator = b","
    yield b"]}\n"


def _threads(recording: Recording, shift_ns: int) -> Iterator[bytes]:
    """One process, whose recording began so long after the first."""
    rows: dict[tuple[int, int], _Row] = {}
    holders: dict[int, int] = {}
    for chunk in Intervals(recording).chunks():
        _note(chunk, rows, holders)
    meta, threads = recording.meta, recording.threads()
    known = {serial: names.clean(thread.name) for serial, thread in threads.items()}
    process = names.clean(" ".join(meta.argv) or meta.executable)
    for (gil, serial), row in sorted(rows.items()):
        name = known.get(serial, f"thread {serial}") + (f" on GIL {gil}" if gil else "")
        tid = threads[serial].native_id if serial in threads else serial
        start = {"name": name, "processType": "default", "processName": process, "tid": tid, "pid": meta.pid}
        start |= {"registerTime": shift_ns / 1e6, "unregisterTime": None, "stringTable": _STRINGS}
        start |= {table: {"schema": _schema(columns), "data": []} for table, columns in _TABLES.items()}
        columns = ("name", "startTime", "endTime", "phase", "category", "data")
        markers = b',"markers":{"schema":' + json.dumps(_schema(columns)).encode() + b',"data":['
        yield (
            json.dumps(start).encode()[:-1]
            + markers
            + ",".join(_markers(row, known, shift_ns)).encode()
            + b"]}}"
        )


def _meta(start_wall_ns: int, process: str) -> dict[str, object]:
    return {
        "version": _VERSION,
        "interval": 1,
        "processType": 0,
        "product": process,
        "importedFrom": "fairlead",
        "stackwalk": 0,
        "debug": 0,
        "gcpoison": 0,
        "asyncstack": 0,
        "startTime": start_wall_ns / 1e6,
        "shutdownTime": None,
        "presymbolicated": True,
        "categories": _CATEGORIES,
        "markerSchema": _MARKERS,
    }


def _schema(columns: tuple[str, ...]) -> dict[str, int]:
    return {column: place for place, column in enumerate(columns)}


def _note(chunk: IntervalChunk, rows: dict[tuple[int, int], _Row], holders: dict[int, int]) -> None:
    """`holders`: the last one of each GIL by now."""
    before = {}
    for start, end, thread in chunk.holds[["start", "end", "thread"]].tolist():
        rows.setdefault((chunk.gil, thread), _Row()).holds.extend((start, end))
        before[thread, start] = holders.get(chunk.gil, 0)
        holders[chunk.gil] = thread
    for start, end, thread in chunk.waits[["start", "end", "thread"]].tolist():
        rows.setdefault((chunk.gil, thread), _Row()).waits.extend((start, end, before.get((thread, end), 0)))


def _markers(row: _Row, known: dict[int, str], shift_ns: int) -> Iterator[str]:
    def interval(start: int, end: int, kind: int, data: str) -> str:
        return f"[{kind},{(start + shift_ns) / 1e6},{(end + shift_ns) / 1e6},{_INTERVAL},{kind},{data}]"

    hold = json.dumps({"type": "GilHold"})
    for start, end in zip(row.holds[::2], row.holds[1::2], strict=True):
        yield interval(start, end, _HOLDS, hold)
    told = {serial: json.dumps({"type": "GilWait", "behind": name}) for serial, name in known.items()}
    unknown = json.dumps({"type": "GilWait", "behind": "(unknown)"})
    for start, end, behind in zip(row.waits[::3], row.waits[1::3], row.waits[2::3], strict=True):
        yield interval(start, end, _WAITS, told.get(behind, unknown))
