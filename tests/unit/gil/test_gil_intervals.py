"""Holds and waits from events: what the recording cuts, and what breaks the rules of a lock. Whole recordings
are held against books in tests/property/test_gil_analysis.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from recordings import Event, RecordingWriter

from fairlead.gil.analysis.analyse import analyse
from fairlead.record.gil_summary import GilSummary
from fairlead.record.recording import CONTENDED, EventType, Recording

pytestmark = pytest.mark.ends

START = 1_000_000_000


def summary(
    tmp_path: Path, *events: Event, lost: tuple[int, int, int] | None = None, end: int = 1000
) -> GilSummary:
    writer = RecordingWriter().meta().threads((1, 11, "one", 0), (2, 12, "two", 0))
    writer.events(event._replace(t_ns=START + event.t_ns) for event in events)
    if lost is not None:
        writer.lost(START + lost[0], START + lost[1], lost[2])
    return analyse(Recording(writer.end(START + end).save(tmp_path / "made.flrec")))


def acquire(t: int, thread: int, waited: int = 0) -> Event:
    return Event(t, thread, 0, waited, 0, EventType.ACQUIRE, CONTENDED if waited else 0)


def drop(t: int, thread: int, held: int, forced: int = 0) -> Event:
    return Event(t, thread, 0, held, 0, EventType.DROP, forced)


def test_hold_begun_before_the_recording_counts_from_its_start(tmp_path: Path) -> None:
    one = summary(tmp_path, drop(300, 1, 5000)).threads[0]
    assert (one.held_seconds, one.acquisitions, one.voluntary_drops) == (300e-9, 0, 1)


def test_thread_that_ends_while_waiting_waits_no_longer(tmp_path: Path) -> None:
    events = (
        acquire(100, 1),
        Event(400, 2, 1, 0, 0, EventType.WANT),
        Event(500, 2, 0, 0, 0, EventType.THREAD_END),
    )
    assert [thread.serial for thread in summary(tmp_path, *events).threads] == [1]


def test_two_gils_are_kept_apart(tmp_path: Path) -> None:
    seen = summary(
        tmp_path,
        acquire(0, 1),
        acquire(10, 2)._replace(gil=1),
        drop(100, 1, 100),
        drop(200, 2, 190)._replace(gil=1),
    )
    assert seen.problems == ()
    assert {(t.gil, t.serial): t.held_seconds for t in seen.threads} == {(0, 1): 100e-9, (1, 2): 190e-9}


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([acquire(0, 1), acquire(50, 2)], "acquired while it was held"),
        ([acquire(0, 1), drop(50, 1, 50), drop(60, 1, 5)], "dropped without having been acquired"),
        ([acquire(0, 1), drop(50, 2, 50)], "dropped by another thread than its holder"),
        ([acquire(90, 1), drop(50, 1, 10)], "time running backwards"),
    ],
)
def test_breach_of_the_rules_of_a_lock_is_reported(tmp_path: Path, events: list[Event], says: str) -> None:
    seen = summary(tmp_path, *events)
    assert len(seen.problems) == 1
    assert says in seen.problems[0]
    assert "1 times, first at 0.0000" in seen.problems[0]
    assert not seen.trust.complete


def test_breach_where_events_were_lost_is_excused_and_trust_says_so(tmp_path: Path) -> None:
    seen = summary(tmp_path, acquire(0, 1), acquire(600, 2, waited=400), lost=(100, 500, 7))
    assert seen.problems == ()
    assert (seen.trust.complete, seen.trust.lost_events, seen.trust.lost_seconds) == (False, 7, 400e-9)
    assert seen.trust.blame_coverage == pytest.approx(0.25)
    assert "7 events were lost" in seen.trust.statement


def test_thread_busy_for_longer_than_the_recording_contradicts_itself(tmp_path: Path) -> None:
    long = acquire(9_000_000, 1, waited=8_000_000)
    assert summary(tmp_path, long, end=9_000_000).problems == ()
    seen = summary(tmp_path, long, long, end=9_000_000)
    assert any(
        "thread 1: waits and holds add up to 0.016000 s of 0.009000 s" in line for line in seen.problems
    )


def test_recording_of_counters_only_is_judged_by_the_last_snapshot(tmp_path: Path) -> None:
    writer = RecordingWriter().meta()
    for second in (1, 2):
        counted = {
            "serial": 1, "name": "one", "native_id": 11, "gil": 0, "acquisitions": second, "contended": 0,
            "held_ns": second * 900_000_000, "waited_ns": 0, "max_wait_ns": 0, "wait_histogram": [0] * 40,
        }  # fmt: skip
        writer.json(5, {"t_ns": START + second * 10**9, "threads": [counted], "blame": [[0, 1, 0, 5]]})
    seen = analyse(Recording(writer.end(START + 2 * 10**9).save(tmp_path / "top.flrec")))
    assert (seen.wall_seconds, seen.events, seen.threads[0].held_seconds) == (2.0, 0, 1.8)
    assert [finding.kind for finding in seen.findings] == ["not-the-gil"]
    assert seen.trust.statement.startswith("Counted, not recorded")


def test_recording_of_nothing_but_its_head_claims_nothing(tmp_path: Path) -> None:
    seen = analyse(Recording(RecordingWriter().meta().save(tmp_path / "full.flrec")))
    assert (seen.threads, seen.findings, len(seen.problems)) == ((), (), 1)
    assert "no events, no counters" in seen.trust.statement
