"""The battle for the GIL, from the details of a sample to the report."""

from __future__ import annotations

import importlib
import itertools
import json
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairlead.gil.observe.access import why_not
from fairlead.lab.analysis.summarise import summarise
from fairlead.lab.catalogue import registry
from fairlead.record.gil_trace import GilTrace
from fairlead.record.sample import Sample
from fairlead.report.summary import html, text
from fairlead.report.summary.pictures import gil_timeline

pytestmark = pytest.mark.ends

EVENTS = [
    [10.0, "take", 0, None, 0.0],
    [20.0, "want", 1, 0, 0.0],
    [5020.0, "request", 1, 0, 5000.0],
    [5030.0, "forced drop", 0, None, 5020.0],
    [5040.0, "hand-over", 0, 1, 0.0],
    [5040.0, "take", 1, 0, 5020.0],
    [5050.0, "want", 0, 1, 0.0],
    [8040.0, "drop", 1, None, 3000.0],
    [8050.0, "hand-over", 1, 0, 0.0],
    [8050.0, "take", 0, 1, 3000.0],
    [10050.0, "drop", 0, None, 2000.0],
]
COUNTS = {"take": 3, "want": 2, "request": 1, "forced drop": 1, "drop": 2, "hand-over": 2, "switch": 2}
DETAILS: dict[str, Any] = {
    "trace": {
        "threads": ["cpu-1", "cpu-2"],
        "events": EVENTS,
        "left_out": 0,
        "counts": COUNTS,
        "answer_us": 10.0,
        "gap_us": 10.0,
    }
}


def trace() -> GilTrace:
    found = GilTrace.from_details(7, DETAILS)
    assert found is not None
    return found


def test_holds_and_waits_are_those_of_the_events() -> None:
    assert trace().holds() == [(0, 10.0, 5030.0), (1, 5040.0, 8040.0), (0, 8050.0, 10050.0)]
    assert trace().waits() == [(1, 20.0, 5040.0), (0, 5050.0, 8050.0)]


@pytest.mark.parametrize(
    "change",
    [
        {"events": [[0.0, "explode", 0, None, 0.0]]},
        {"events": [[0.0, "take", 2, None, 0.0]]},
        {"events": [[0.0, "want", 0, -1, 0.0]]},
        {"events": [["now", "take", 0, None, 0.0]]},
        {"events": [[0.0, "take"]]},
        {"counts": [1, 2]},
        {"threads": None},
    ],
)
def test_details_that_make_no_sense_are_no_trace(change: dict[str, Any]) -> None:
    assert GilTrace.from_details(7, {"trace": {**DETAILS["trace"], **change}}) is None
    assert GilTrace.from_details(7, {}) is None


def test_words_say_what_happens_at_each_switch() -> None:
    first, each, times = gil_timeline.summary(trace())
    assert first.startswith("2 switches at n = 7: 2 x want, 1 x request, 1 x forced drop, 2 x drop, 3 x take")
    assert each == (
        "At each switch: 1.00 want, 0.50 request, 0.50 forced drop, 1.00 drop, 1.50 take, 1.00 hand-over."
    )
    assert (
        times == "A request was answered after 10.0 us, and then no thread had the GIL for 10.0 us (medians)."
    )


def test_strip_shows_the_holder_and_the_waiters() -> None:
    one, other, axis = gil_timeline.strip(trace())
    assert one.startswith("cpu-1  " + "#" * 32 + "...")
    assert other.startswith("cpu-2  " + "." * 32 + "#" * 19)
    assert axis.endswith("10.0 ms")


def test_picture_is_well_formed_and_has_every_hold_wait_and_line() -> None:
    hostile = replace(trace(), threads=("<script>", "cpu-2"))
    picture = ET.fromstring(gil_timeline.svg(hostile))
    kinds = [element.get("class") for element in picture if element.tag in ("rect", "line")]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "hold": 3, "waiting": 2, "asks": 1, "gives": 2,
    }  # fmt: skip


def test_a_trace_without_a_drop_has_no_picture() -> None:
    still = replace(trace(), events=trace().events[:3])
    assert gil_timeline.svg(still) == ""
    assert list(gil_timeline.strip(still)) == []


def test_reports_show_the_battle_of_the_largest_size() -> None:
    def sample(n: int, details: dict[str, Any]) -> Sample:
        return Sample(
            experiment="gil.trace",
            params={"n": n, "interval_ms": 5},
            interpreter={"name": "3.13", "implementation": "CPython", "version": "3.13.0"},
            environment={},
            status="ok",
            wall_s=0.01 * n,
            details=details,
        )

    summary = summarise([sample(2, {}), sample(7, DETAILS), sample(9, {})])
    assert summary.series[0].trace == trace()
    shown = text.render(summary, detail=1)
    assert "2 switches at n = 7" in shown
    assert "5.02 ms  cpu-2   request      of cpu-1, after waiting 5.00 ms" in shown
    page = html.render(summary)
    assert '<svg class="battle"' in page
    assert "A request was answered after 10.0 us" in page


def test_take_that_was_waited_for_is_a_hand_over_by_the_last_holder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(registry.DIRECTORY)
    account = importlib.import_module("gil_trace").account
    want, request, take, drop, forced = 1, 2, 3, 4, 1
    events = [
        # (time, thread, other, value, _, kind, flags, _) as a recording has them, in ns
        (1000, 7, 0, 0, 0, take, 0, 0),
        (2000, 8, 7, 0, 0, want, 0, 0),
        (3000, 8, 7, 1000, 0, request, 0, 0),
        (4000, 7, 0, 3000, 0, drop, forced, 0),
        (5000, 8, 7, 3000, 0, take, 0, 0),
        (6000, 8, 0, 1000, 0, drop, 0, 0),
        (7000, 8, 0, 0, 0, take, 0, 0),
        (8000, 8, 0, 1000, 0, drop, 0, 0),
        (9000, 7, 0, 0, 0, take, 0, 0),
    ]
    counted = account(events, {7: "cpu-1", 8: "cpu-2", 9: "other"}, 0)["trace"]
    assert counted["counts"] == {
        "take": 4, "want": 1, "request": 1, "forced drop": 1, "drop": 2, "hand-over": 1, "switch": 2,
    }  # fmt: skip
    assert counted["events"][4:6] == [[5.0, "hand-over", 0, 1, 0.0], [5.0, "take", 1, 0, 3.0]]
    found = GilTrace.from_details(1, {"trace": counted})
    assert found is not None
    assert gil_timeline.svg(found).count('class="gives"') == 1


refusal = why_not()


@pytest.mark.skipif(refusal is not None, reason=f"the GIL cannot be observed: {refusal}")
def test_experiment_leaves_events_that_obey_the_rules_of_a_lock(tmp_path: Path) -> None:
    import subprocess

    path = registry.catalogue()["gil.trace"].path
    command = [sys.executable, str(path), json.dumps({"n": 400, "interval_ms": 0.5})]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=True)
    answer = json.loads(done.stdout)
    assert answer["details"]["counted"] == 400
    found = GilTrace.from_details(400, answer["details"])
    assert found is not None
    assert found.threads == ("cpu-1", "cpu-2")
    assert list(tmp_path.iterdir()) == []
    # what was going on when the trace began belongs to nobody
    turns = [event for event in found.events if event.kind in ("take", "drop", "forced drop")]
    first = next(index for index, event in enumerate(turns) if event.kind == "take")
    for taken, dropped in zip(turns[first::2], turns[first + 1 :: 2], strict=False):
        assert (taken.kind, dropped.thread) == ("take", taken.thread)
        assert dropped.kind in ("drop", "forced drop")
    for given, taken in itertools.pairwise(found.events):
        if given.kind == "hand-over":
            assert (taken.kind, taken.thread, taken.t_us) == ("take", given.other, given.t_us)
            assert taken.value_us > 0
    assert found.counts.get("hand-over", 0) <= found.counts["switch"]
    times = [event.t_us for event in found.events]
    assert times == sorted(times)
    assert found.counts["take"] <= found.counts.get("drop", 0) + found.counts.get("forced drop", 0) + 1
