"""The Perfetto trace, decoded with Perfetto's own schema."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from gilprograms import example
from gilsim import MS, Simulation
from recordings import META, Event, RecordingWriter

from fairlead.gil.analysis.analyse import analyse
from fairlead.record import gil_intervals
from fairlead.record.recording import CONTENDED, FORCED, EventType, Recording
from fairlead.report.gil import perfetto as gil_perfetto

pytestmark = pytest.mark.ends

pb = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2",
    reason="Perfetto's schema is the oracle: install perfetto",
)


def trace_of(path: Path) -> Any:
    trace = pb.Trace()
    trace.ParseFromString(b"".join(gil_perfetto.render(Recording(path))))
    return trace


def unknown_fields(message: Any) -> bool:
    from google.protobuf.unknown_fields import UnknownFieldSet

    nested = [
        value
        for field, value in message.ListFields()
        if field.type == field.TYPE_MESSAGE and not hasattr(value, "append")
    ]
    return bool(len(UnknownFieldSet(message))) or any(map(unknown_fields, nested))


@pytest.fixture(params=["convoy", "saturation", "switch-storm"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    simulation = Simulation(example(request.param), until_ns=100 * MS)
    return simulation.writer().save(tmp_path / "simulated.flrec")


def slices(trace: Any) -> dict[int, list[tuple[int, int, str]]]:
    """(begin, end, name) by track, checking that begins and ends alternate."""
    events = defaultdict(list)
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id == 1
        if packet.HasField("track_event"):
            events[packet.track_event.track_uuid].append((packet.timestamp, packet.track_event))
    found: dict[int, list[tuple[int, int, str]]] = {}
    for track, row in events.items():
        # as Perfetto does it: by time, and in the order of the file where times are the same
        row.sort(key=lambda entry: entry[0])
        begins, ends = row[::2], row[1::2]
        assert {event.type for _, event in begins} == {pb.TrackEvent.TYPE_SLICE_BEGIN}
        assert {event.type for _, event in ends} == {pb.TrackEvent.TYPE_SLICE_END}
        found[track] = [(b[0], e[0], b[1].name) for b, e in zip(begins, ends, strict=True)]
    return found


def test_trace_has_process_and_threads_and_nothing_that_the_schema_does_not_know(path: Path) -> None:
    data = b"".join(gil_perfetto.render(Recording(path)))
    trace = trace_of(path)
    described: set[int] = set()
    for packet in trace.packet:
        assert not unknown_fields(packet)
        if packet.HasField("track_descriptor"):
            parent = packet.track_descriptor.parent_uuid
            assert parent in described or packet.track_descriptor.HasField("process")
            assert packet.track_descriptor.uuid not in described
            described.add(packet.track_descriptor.uuid)
        else:
            assert packet.track_event.track_uuid in described
            assert packet.timestamp >= META["start_ns"]
    # a second writer of the same schema makes the same bytes, or as many in another order
    assert len(trace.SerializeToString()) == len(data)
    recording, trace = Recording(path), trace_of(path)
    (process,) = [p.track_descriptor.process for p in trace.packet if p.track_descriptor.HasField("process")]
    assert (process.pid, list(process.cmdline)) == (4711, ["app.py", "--fast"])
    threads = [p.track_descriptor.thread for p in trace.packet if p.track_descriptor.HasField("thread")]
    assert {(t.tid, t.thread_name) for t in threads} == {
        (t.native_id, t.name) for t in recording.threads().values()
    }


def test_trace_a_wait_that_begins_when_a_hold_ends_does_not_end_the_hold(tmp_path: Path) -> None:
    """A thread that is forced out and wants the GIL all the while."""
    turns = []
    for turn in range(6):
        t, mine, other = META["start_ns"] + turn * MS, 1 + turn % 2, 2 - turn % 2
        waited = MS if turn else 0
        turns.append(Event(t, mine, other, waited, kind=EventType.ACQUIRE, flags=CONTENDED if turn else 0))
        turns.append(Event(t + MS, mine, 0, MS, kind=EventType.DROP, flags=FORCED))
    writer = RecordingWriter().meta().threads((1, 11, "one", 0), (2, 12, "two", 0)).events(turns)
    path = writer.end(META["start_ns"] + 6 * MS).save(tmp_path / "touching.flrec")
    for row in slices(trace_of(path)).values():
        assert all(end - begin == MS for begin, end, _ in row)
        assert [name for *_, name in row][-2:] == ["waits for the GIL", "holds the GIL"]


@pytest.mark.parametrize("per_chunk", [50, 250_000])
def test_trace_slices_add_up_to_the_totals(
    path: Path, per_chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gil_intervals, "CHUNK_EVENTS", per_chunk)
    summary, trace = analyse(Recording(path)), trace_of(path)
    tracks = {
        p.track_descriptor.uuid: p.track_descriptor.thread.thread_name
        for p in trace.packet
        if p.HasField("track_descriptor") and p.track_descriptor.HasField("thread")
    }
    sums: Counter[tuple[str, str]] = Counter()
    for track, row in slices(trace).items():
        for begin, end, name in row:
            sums[tracks[track], name] += end - begin
    for thread in summary.threads:
        assert sums[thread.name, "holds the GIL"] / 1e9 == thread.held_seconds
        assert sums[thread.name, "waits for the GIL"] / 1e9 == thread.waited_seconds


def test_trace_arrows_lead_from_one_holder_to_the_next(path: Path) -> None:
    out, into = {}, {}
    for packet in trace_of(path).packet:
        event = packet.track_event
        for flow in event.flow_ids:
            out[flow] = (packet.timestamp, event.track_uuid, event.name)
        for flow in event.terminating_flow_ids:
            into[flow] = (packet.timestamp, event.track_uuid, event.name)
    assert set(out) == set(into)
    assert len(out) > 10
    for flow, (when, track, name) in out.items():
        assert name == into[flow][2] == "holds the GIL"
        assert when < into[flow][0]
        assert track != into[flow][1]
