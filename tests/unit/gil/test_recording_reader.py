"""The reader of recordings: what it gives back, what it refuses, and what it saves from damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from recordings import Event, RecordingWriter

from fairlead.errors import RecordError
from fairlead.gil.analysis.analyse import analyse
from fairlead.record.recording import (
    BLOCK_HEADER,
    FILE_HEADER,
    FORCED,
    MAX_PAYLOAD,
    ROW,
    VERSION,
    WHOLE,
    BlockType,
    EventType,
    Recording,
)

pytestmark = pytest.mark.ends


ALL = [
    *(BlockType.META, BlockType.THREADS, BlockType.EVENTS, BlockType.STACKS, BlockType.LOST),
    BlockType.END,
]


def small(tmp_path: Path) -> tuple[RecordingWriter, Path]:
    writer = RecordingWriter().meta()
    writer.threads((1, 4711, "MainThread", 0), (2, 4712, "worker", 0))
    writer.events(
        [
            Event(1_000_000_100, 1, 0, 0, 0, EventType.ACQUIRE),
            Event(1_000_000_300, 1, 0, 200, 0, EventType.DROP),
        ]
    )
    writer.stacks({7: [("f", "a.py", 3)]}).lost(1_000_000_300, 1_000_000_400, 12).end(1_000_000_500)
    return writer, tmp_path / "small.flrec"


def read(path: Path) -> tuple[Recording, list[int]]:
    recording = Recording(path)
    return recording, [block.type for block in recording.blocks()]


def test_blocks_whole_file_come_back_in_order(tmp_path: Path) -> None:
    writer, path = small(tmp_path)
    recording, types = read(writer.save(path))
    assert types == ALL
    assert [b.type for b in recording.blocks(BlockType.THREADS, BlockType.END)] == [ALL[1], ALL[-1]]
    assert recording.problems == ()


def test_meta_all_keys_are_read(tmp_path: Path) -> None:
    writer, path = small(tmp_path)
    meta = Recording(writer.save(path)).meta
    assert (meta.pid, meta.start_ns, meta.clock) == (4711, 1_000_000_000, "CLOCK_MONOTONIC")
    assert (meta.argv, meta.cpus, meta.parent_pid) == (("app.py", "--fast"), 2, None)
    assert (meta.switch_interval_s, meta.wait_threshold_s) == (0.005, 0.001)


def test_events_fields_have_their_values(tmp_path: Path) -> None:
    event = Event(2**63, 2**32 - 1, 7, 2**62, 65535, EventType.STACK_HOLDER, 3, 2**32 - 2)
    path = RecordingWriter().meta().events([event]).save(tmp_path / "one.flrec")
    (block,) = Recording(path).blocks(BlockType.EVENTS)
    array = block.events()
    assert array.dtype.itemsize == 32
    assert tuple(array[0].item()) == tuple(event)


def test_file_of_the_first_version_is_read(tmp_path: Path) -> None:
    event = Event(1000, 1, 0, 300, 0, EventType.DROP, FORCED)
    path = RecordingWriter(version=1).meta().events([event]).end(1000).save(tmp_path / "old.flrec")
    recording = Recording(path)
    (block,) = recording.blocks(BlockType.EVENTS)
    assert (Event(*block.events()[0].item()), recording.problems) == (event, ())


def test_drop_that_is_whole_is_read_as_take_and_drop(tmp_path: Path) -> None:
    told = [
        Event(1000, 1, 0, 300, 0, EventType.DROP, FORCED),
        Event(2000, 2, 1, 600, 3, EventType.DROP, WHOLE | FORCED, 5),
        Event(2100, 1, 2, 0, 0, EventType.WANT),
    ]
    path = RecordingWriter().meta().events(told).save(tmp_path / "whole.flrec")
    (block,) = Recording(path).blocks(BlockType.EVENTS)
    assert [Event(*event) for event in block.events().tolist()] == [
        told[0],
        Event(1400, 2, 1, 0, 3, EventType.ACQUIRE),
        Event(2000, 2, 0, 600, 3, EventType.DROP, FORCED, 5),
        told[2],
    ]
    assert list(block.rows()) == block.events().tolist()


def test_row_of_short_holds_is_one_take_and_one_drop_that_says_how_many(tmp_path: Path) -> None:
    told = [Event(1_000_009_000, 2, 40, 3000, 0, EventType.DROP, WHOLE | ROW)]
    path = RecordingWriter().meta().events(told).end(1_000_009_000).save(tmp_path / "row.flrec")
    (block,) = Recording(path).blocks(BlockType.EVENTS)
    assert [Event(*event) for event in block.events().tolist()] == [
        Event(1_000_006_000, 2, 0, 0, 0, EventType.ACQUIRE),
        Event(1_000_009_000, 2, 40, 3000, 0, EventType.DROP, ROW),
    ]
    assert list(block.rows()) == block.events().tolist()
    (thread,) = analyse(Recording(path)).threads
    assert (thread.acquisitions, thread.voluntary_drops, thread.held_seconds) == (40, 40, 3e-6)
    assert thread.held_histogram[6] == 40  # of 75 ns
    assert thread.max_held_seconds == pytest.approx(75e-9)


def test_blocks_unknown_type_is_passed_through(tmp_path: Path) -> None:
    path = RecordingWriter().meta().block(4242, b"of a later version").end(5).save(tmp_path / "later.flrec")
    recording, types = read(path)
    assert types == [BlockType.META, 4242, BlockType.END]
    assert recording.problems == ()


def test_reading_file_cut_at_every_byte_keeps_the_whole_blocks(tmp_path: Path) -> None:
    writer, path = small(tmp_path)
    whole = writer.bytes()
    ends = [*writer.offsets[1:], len(whole)]
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        if cut < ends[0] - (-len(_payload(whole, writer.offsets[0])) % 8):
            with pytest.raises(RecordError, match=str(path)):
                Recording(path)
            continue
        recording, types = read(path)
        # a block whose padding alone is missing is whole
        kept = sum(cut >= start + BLOCK_HEADER.size + len(_payload(whole, start)) for start in writer.offsets)
        assert len(types) == kept, cut
        assert len(recording.problems) == 1, cut
        if cut not in ends and kept < len(ends) and cut > writer.offsets[kept]:
            assert recording.problems[0] == (
                f"recording ends in the middle of block {kept} at byte {writer.offsets[kept]};"
                " everything before is shown"
            )


def _payload(whole: bytes, offset: int) -> bytes:
    length = BLOCK_HEADER.unpack_from(whole, offset)[1]
    return whole[offset + BLOCK_HEADER.size :][:length]


def test_reading_file_without_end_mark_says_so(tmp_path: Path) -> None:
    recording, _ = read(RecordingWriter().meta().save(tmp_path / "killed.flrec"))
    assert recording.problems == (
        "the recording has no end mark: the program was killed, still runs, or found no room; all before is"
        " shown",
    )


def test_reading_flipped_bit_in_a_payload_leaves_that_block_out(tmp_path: Path) -> None:
    writer, path = small(tmp_path)
    data = bytearray(writer.bytes())
    data[writer.offsets[2] + BLOCK_HEADER.size + 5] ^= 0x10
    path.write_bytes(data)
    recording, types = read(path)
    assert types == [one for one in ALL if one != BlockType.EVENTS]
    assert recording.problems == (f"block 2 at byte {writer.offsets[2]} is damaged and left out (EVENTS)",)


@pytest.mark.parametrize("header", [(3, MAX_PAYLOAD + 1, 0, 0), (3, 32, 0, 1), (0, 0, 0, 0)])
def test_reading_impossible_block_header_ends_there(
    tmp_path: Path, header: tuple[int, int, int, int]
) -> None:
    writer, path = small(tmp_path)
    data = bytearray(writer.bytes())
    BLOCK_HEADER.pack_into(data, writer.offsets[3], *header)
    path.write_bytes(data)
    recording, types = read(path)
    assert types == ALL[:3]
    assert recording.problems == (
        f"recording is damaged from block 3 at byte {writer.offsets[3]}; everything before is shown",
    )


def test_opening_newer_version_names_file_version_and_remedy(tmp_path: Path) -> None:
    path = RecordingWriter(version=VERSION + 1).meta().save(tmp_path / "newer.flrec")
    with pytest.raises(RecordError) as caught:
        Recording(path)
    assert str(path) in str(caught.value)
    assert f"format version {VERSION + 1}" in str(caught.value)
    assert "pip install -U fairlead" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"%PDF-1.7 something else altogether", "is not a recording"),
        (b"FLRECORD\x01", "is cut within its first 16 bytes"),
        (FILE_HEADER.pack(b"FLRECORD", 1, 0), "before it says what was recorded"),
        (RecordingWriter().end(5).bytes(), "before it says what was recorded"),
        (RecordingWriter().json(1, {"start_ns": 5}).bytes(), "META block is not valid"),
        (RecordingWriter().json(1, ["pid"]).bytes(), "META block is not valid"),
        (RecordingWriter().block(1, b"\xff{").bytes(), "META block is not valid"),
    ],
)
def test_opening_what_is_no_recording_is_refused_with_the_reason(
    tmp_path: Path, content: bytes, says: str
) -> None:
    path = tmp_path / "bad.flrec"
    path.write_bytes(content)
    with pytest.raises(RecordError, match=says):
        Recording(path)


def test_opening_missing_file_names_it(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"nowhere\.flrec cannot be read: No such file"):
        Recording(tmp_path / "nowhere.flrec")


def test_blocks_file_that_grows_shows_the_new_ones_on_the_next_pass(tmp_path: Path) -> None:
    writer = RecordingWriter().meta().json(BlockType.COUNTERS, {"t_ns": 1})
    path = writer.save(tmp_path / "growing.flrec")
    recording = Recording(path)
    assert [b.json()["t_ns"] for b in recording.blocks(BlockType.COUNTERS)] == [1]
    writer.json(BlockType.COUNTERS, {"t_ns": 2}).end(3).save(path)
    assert [b.json()["t_ns"] for b in recording.blocks(BlockType.COUNTERS)] == [1, 2]
    assert recording.problems == ()
