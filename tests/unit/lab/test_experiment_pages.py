"""The site's pages of the lab's experiments say what the declarations say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from fairlead.lab.catalogue import registry

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[3]


def test_pages_say_of_every_experiment_what_it_declares() -> None:
    script = runpy.run_path(str(ROOT / "tools" / "site" / "experiments.py"))
    pages = {family.id: script["page"](family) for family in script["known"]()}
    everything = "\n".join(pages.values())
    for experiment in registry.catalogue().values():
        heading = experiment.subject.group or experiment.id
        assert f"\n## {heading}: " in everything
        assert f"$ fairlead lab run {heading}\n" in everything
    assert {"square", "gil", "models", "party"} == set(pages)
    credit = "\n- Ilya Egorov: Performance, in the documentation of aiologic (CC-BY-4.0), https://"
    assert credit in pages["square"]
    assert "Skvortsov" in pages["gil"]
    assert "Skvortsov" not in pages["square"]
    assert "| `work` | sleep0 | sleep0, yield, spin | how those already through" in pages["square"]
    assert "| CPython, 2 cores | work sleep0, scheduler off | elapsed | n = 100: 40.7 ms" in pages["square"]


def test_every_experiment_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference" / "experiments.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z]+\.[a-z0-9-]+[a-z0-9])`", text))
    for work, ways in re.findall(r"^\| `([a-z]+\.[a-z]+-)` \| (.*) \|$", text, re.MULTILINE):
        named |= {work + way for way in re.findall(r"`([a-z-]+)`", ways)}
    known = registry.catalogue()
    assert named - ({one.subject.group for one in known.values()} - set(known)) == set(known)
