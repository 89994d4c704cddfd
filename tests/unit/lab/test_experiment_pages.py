"""The pages of docs/reference/experiments: what the declarations say, and what runs gave."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from fairlead.lab.analysis.summarise import summarise
from fairlead.lab.catalogue import registry
from fairlead.record.sample import Sample

pytestmark = pytest.mark.ends

ROOT = Path(__file__).parents[3]


def test_pages_say_of_every_experiment_what_it_declares() -> None:
    script = runpy.run_path(str(ROOT / "tools" / "experiment_pages.py"))
    for family in script["known"]():
        page = (script["PAGES"] / f"{family.id}.md").read_text(encoding="utf-8")
        for topic in family.topics:
            again = "run tools/experiment_pages.py with a run that has it"
            assert script["declared"](topic) in page, f"{topic.id} is not as declared: {again}"
        measured = len(re.findall(r"^What came out on [^`]*:\n\n```text$", page, re.MULTILINE))
        assert measured + page.count(f"\n{script['NOT_MEASURED']}") == len(family.topics)
        assert measured >= len(family.topics) / 2, f"{family.id}: half of it was never measured"


def test_page_keeps_what_a_run_has_no_sample_of_with_the_machine_it_came_from() -> None:
    script = runpy.run_path(str(ROOT / "tools" / "experiment_pages.py"))
    family = next(one for one in script["known"]() if one.id == "square")
    mutex, other = (next(t for t in family.topics if t.id == i) for i in ("square.mutex", "cured.mutex"))
    run = summarise(
        Sample(
            experiment=mutex.id, params={"n": n, "work": "sleep0", "policy": "other", "cores": "all"},
            interpreter={"name": "3.15", "implementation": "CPython", "version": "3.15.2"},
            environment={"processor": "New One", "cores": 3, "kernel": "Linux 7"}, status="ok",
            wall_s=n / 1000, round=number, details={"metrics": {}},
        )
        for n in (50, 100) for number in range(5)
    )  # fmt: skip
    old = script["before"](script["PAGES"] / "square.md")
    page = script["page_of"](family, run, old)
    assert "\nWhat came out on New One, 3 cores, Linux 7, CPython 3.15.2:\n\n```text\nsquare.mutex" in page
    assert old[mutex.id] not in page
    assert old[other.id] in page
    assert "New One" not in old[other.id]


def test_every_experiment_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference" / "experiments.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z]+\.[a-z0-9-]+[a-z0-9])`", text))
    for work, ways in re.findall(r"^\| `([a-z]+\.[a-z]+-)` \| (.*) \|$", text, re.MULTILINE):
        named |= {work + way for way in re.findall(r"`([a-z-]+)`", ways)}
    known = registry.catalogue()
    assert named - ({one.subject.group for one in known.values()} - set(known)) == set(known)
