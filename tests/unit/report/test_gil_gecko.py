"""A recording for the Firefox Profiler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import exit_status

from fairlead.record.gil_summary import GilSummary

pytestmark = pytest.mark.ends


@pytest.fixture(scope="module")
def profile(convoy: Path) -> Any:
    assert exit_status("report", convoy, "--format", "firefox") == 0
    return json.loads(convoy.with_name("convoy.flrec.firefox.json").read_text())


def markers(thread: Any) -> list[dict[str, Any]]:
    schema = thread["markers"]["schema"]
    return [{name: row[place] for name, place in schema.items()} for row in thread["markers"]["data"]]


def test_profile_has_what_the_format_asks_for(profile: Any) -> None:
    """By docs-developer/gecko-profile-format.md of the Firefox Profiler."""
    assert profile.keys() == {"meta", "libs", "processes", "pausedRanges", "threads"}
    assert profile["meta"]["version"] == 24
    kinds = {schema["name"] for schema in profile["meta"]["markerSchema"]}
    assert len(profile["threads"]) >= 2
    for thread in profile["threads"]:
        assert isinstance(thread["name"], str)
        assert isinstance(thread["tid"], int)
        for table in ("samples", "frameTable", "stackTable"):
            assert sorted(thread[table]["schema"].values()) == list(range(len(thread[table]["schema"])))
            assert thread[table]["data"] == []
        for marker in markers(thread):
            assert thread["stringTable"][marker["name"]] == marker["data"]["type"]
            assert marker["data"]["type"] in kinds
            assert marker["phase"] == 1
            assert 0 <= marker["startTime"] <= marker["endTime"]
            assert marker["category"] < len(profile["meta"]["categories"])


def test_markers_add_up_to_what_threads_held_and_waited_and_name_the_holder(
    profile: Any, convoy_summary: GilSummary
) -> None:
    told = {thread["name"]: markers(thread) for thread in profile["threads"]}
    for thread in convoy_summary.threads:
        for kind, seconds in (("GilHold", thread.held_seconds), ("GilWait", thread.waited_seconds)):
            found = [one for one in told[thread.name] if one["data"]["type"] == kind]
            total = sum(one["endTime"] - one["startTime"] for one in found)
            assert total == pytest.approx(seconds * 1e3, abs=1e-3)
    [io] = [thread for thread in profile["threads"] if thread["name"] == "io"]
    behind = [one["data"]["behind"] for one in markers(io) if one["data"]["type"] == "GilWait"]
    assert behind.count("cpu") > len(behind) / 2
