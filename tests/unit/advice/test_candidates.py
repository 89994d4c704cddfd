"""Which ways are measured, by what the first calls did."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from advices import work

from fairlead.advice.candidates import Facts, ways

pytestmark = pytest.mark.ends

CAN = sys.version_info >= (3, 13)
WAITS = {"gil": 0.01, "free": 0.0, "waiting": 0.99}


def found(facts: dict[str, Any] | None = None, **seen: Any) -> tuple[dict[str, list[int]], dict[Any, str]]:
    known: dict[str, Any] = {
        "cores": 2, "gil": True, "requests": 100, "coroutines": seen.get("coroutines", False),
        "cannot_be_sent": None, "cannot_load": {}, "by_reference": True, "free_threaded": None, "kinds": None,
        "work": work(**seen),
    }  # fmt: skip
    chosen, refused = ways(Facts(**known | (facts or {})))
    counts: dict[str, list[int]] = {}
    for way in chosen:
        counts.setdefault(way.kind, []).append(way.workers)
    return counts, refused


def test_what_computes_is_measured_by_cores() -> None:
    counts, _ = found()
    assert counts["sequential"] == [1]
    assert counts["threads"] == [2]
    assert counts["processes"] == [2, 4]
    assert counts.get("interpreters") == ([2, 4] if CAN else None)
    assert "async" not in counts


def test_what_waits_is_measured_with_many_threads() -> None:
    counts, _ = found(**WAITS)
    assert counts["threads"] == [2, 4, 8, 16, 32, 64]
    assert counts["processes"] == [8]


def test_coroutines_that_wait_are_measured_on_a_loop_alone() -> None:
    counts, refused = found(coroutines=True, **WAITS)
    assert counts == {"sequential": [1], "async": [8, 32, 100]}
    assert "a loop waits for all of them at once" in refused["processes"]


def test_coroutines_that_compute_are_measured_in_processes_too() -> None:
    assert found(coroutines=True)[0]["processes"] == [2, 4]


def test_there_are_no_more_workers_than_calls() -> None:
    assert found({"requests": 3}, **WAITS)[0]["threads"] == [2, 3]


def test_one_call_is_made_alone() -> None:
    assert found({"requests": 1})[0] == {"sequential": [1]}


def test_function_with_unlocked_state_has_the_sequential_candidate_only() -> None:
    counts, refused = found(accumulates=("total",))
    assert counts == {"sequential": [1]}
    assert refused["threads"] == "calls change what they share (total), and know no lock"


def test_state_under_a_lock_stays_in_the_process() -> None:
    counts, refused = found(accumulates=("total",), guarded=True, **WAITS)
    assert set(counts) == {"sequential", "threads"}
    assert "each worker would change its own" in refused["processes"]


def test_items_that_are_changed_stay_in_the_process() -> None:
    counts, refused = found(changes_items=True, gil=0.1, free=0.9)
    assert set(counts) == {"sequential", "threads"}
    assert "they would change copies" in refused["processes"]


def test_what_cannot_be_sent_stays_in_the_process() -> None:
    assert set(found({"cannot_be_sent": "a lock cannot be pickled"})[0]) == {"sequential", "threads"}


@pytest.mark.skipif(not CAN, reason="there are no interpreters before 3.13")
def test_module_that_refuses_interpreters_is_named_in_a_line() -> None:
    said = "\n\nIMPORTANT: PLEASE READ\n\nIt was: module x does not support loading in subinterpreters\n"
    counts, refused = found({"cannot_load": {"numpy": said}})
    assert "interpreters" not in counts
    assert refused["interpreters"] == (
        "numpy cannot be imported there (It was: module x does not support loading in subinterpreters)"
    )


def test_kinds_that_were_named_are_the_only_ones() -> None:
    assert set(found({"kinds": ["processes"]})[0]) == {"sequential", "processes"}
    assert found({"kinds": ["async"]})[1] == {"async": "the function is no coroutine function"}


def test_there_are_no_more_workers_than_the_gil_and_the_cores_have_time_for() -> None:
    counts, _ = found(gil=0.59, free=0.0, waiting=0.41)
    assert counts["threads"] == [2, 4]
    assert counts["processes"] == [2, 4]
    assert found(gil=0.05, free=0.0, waiting=0.95)[0]["processes"] == [8]
