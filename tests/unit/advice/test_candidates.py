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


INTERPRETERS = {"interpreters": [2, 4]} if CAN else {}


@pytest.mark.parametrize(
    ("facts", "seen", "counts"),
    [
        ({}, {}, {"sequential": [1], "threads": [2], "processes": [2, 4], **INTERPRETERS}),
        ({}, WAITS, {"threads": [2, 4, 8, 16, 32, 64], "processes": [8]}),
        ({}, {"gil": 0.59, "free": 0.0, "waiting": 0.41}, {"threads": [2, 4], "processes": [2, 4]}),
        ({}, {"gil": 0.05, "free": 0.0, "waiting": 0.95}, {"processes": [8]}),
        ({}, {"coroutines": True}, {"processes": [2, 4]}),
        ({"requests": 3}, WAITS, {"threads": [2, 3]}),
    ],
    ids=["computes", "waits", "waits and computes", "mostly waits", "coroutines that compute", "few calls"],
)
def test_counts_of_workers_are_those_that_cores_waiting_and_calls_have_work_for(
    facts: dict[str, Any], seen: dict[str, Any], counts: dict[str, list[int]]
) -> None:
    chosen, _ = found(facts, **seen)
    assert {kind: chosen[kind] for kind in counts} == counts
    assert "async" not in chosen or "coroutines" in seen


IN_PROCESS = {"sequential", "threads"}


@pytest.mark.parametrize(
    ("facts", "seen", "kinds", "kind", "why"),
    [
        ({"requests": 1}, {}, {"sequential"}, "", ""),
        ({}, {"accumulates": ("total",)}, {"sequential"}, "threads",
         "calls change what they share (total), and know no lock"),
        ({}, {"accumulates": ("total",), "guarded": True, **WAITS}, IN_PROCESS, "processes",
         "each worker would change its own"),
        ({}, {"changes_items": True, "gil": 0.1, "free": 0.9}, IN_PROCESS, "processes",
         "they would change copies"),
        ({"cannot_be_sent": "a lock cannot be pickled"}, {}, IN_PROCESS, "", ""),
        ({}, {"coroutines": True, **WAITS}, {"sequential", "async"}, "processes",
         "a loop waits for all of them at once"),
        ({"kinds": ["processes"]}, {}, {"sequential", "processes"}, "", ""),
        ({"kinds": ["async"]}, {}, {"sequential"}, "async", "the function is no coroutine function"),
    ],
    ids=[
        "one call", "shared state", "state under a lock", "items that change", "what cannot be sent",
        "coroutines that wait", "a kind by name", "a kind that does not fit",
    ],
)  # fmt: skip
def test_kinds_that_do_not_fit_are_refused_with_the_reason(
    facts: dict[str, Any], seen: dict[str, Any], kinds: set[str], kind: str, why: str
) -> None:
    chosen, refused = found(facts, **seen)
    assert set(chosen) == kinds
    assert why in refused.get(kind, "")


def test_coroutines_that_wait_are_counted_by_how_many_a_loop_may_have() -> None:
    assert found(coroutines=True, **WAITS)[0] == {"sequential": [1], "async": [8, 32, 100]}


@pytest.mark.skipif(not CAN, reason="there are no interpreters before 3.13")
def test_module_that_refuses_interpreters_is_named_in_a_line() -> None:
    said = "\n\nIMPORTANT: PLEASE READ\n\nIt was: module x does not support loading in subinterpreters\n"
    counts, refused = found({"cannot_load": {"numpy": said}})
    assert "interpreters" not in counts
    assert refused["interpreters"] == (
        "numpy cannot be imported there (It was: module x does not support loading in subinterpreters)"
    )
