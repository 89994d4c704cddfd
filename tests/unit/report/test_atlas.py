"""The atlas: one picture a claim, one row a machine and interpreter."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
import summaries
from commands import exit_status

from fairlead.record.summary import Summary
from fairlead.report.comparison import atlas

pytestmark = pytest.mark.ends


def machine(name: str, seed: int = 1) -> Summary:
    found = summaries.realistic(seed)
    return replace(found, environment={**found.environment, "hostname": name})


def pictures(page: str) -> list[ET.Element]:
    return [ET.fromstring(one) for one in re.findall(r"<svg class=\"atlas\".*?</svg>", page, re.DOTALL)]


def test_every_claim_has_a_picture_with_a_row_of_each_machine_and_interpreter() -> None:
    runs = [("runs/a", machine("north")), ("runs/b", machine("south", 2))]
    page = atlas.render(runs)
    wanted: dict[tuple[str, str], int] = {}
    for _, run in runs:
        for claim in run.claims:
            key = claim.experiment, claim.topic
            wanted[key] = wanted.get(key, 0) + 1
    drawn = pictures(page)
    assert wanted
    assert [len(one.findall("circle")) for one in drawn] == list(wanted.values())
    for one in drawn:
        assert len(one.findall("path[@class='threshold']")) == 1
        for circle in one.findall("circle"):
            assert 0 <= float(circle.attrib["cx"]) <= 560
    assert "north, " in page
    assert "south, " in page
    assert "<script" not in page
    assert len(page) < 500_000


def test_a_dot_lies_within_its_interval_and_machines_of_one_name_are_distinguished() -> None:
    page = atlas.render([("runs/a", machine("north")), ("runs/b", machine("north", 2))])
    assert "north (runs/a), " in page
    assert "north (runs/b), " in page
    for one in pictures(page):
        spans = [line for line in one.findall("line") if line.attrib["class"].startswith("span")]
        assert spans
        for span in spans:
            middle = next(c for c in one.findall("circle") if c.attrib["cy"] == span.attrib["y1"])
            x1, x2 = float(span.attrib["x1"]), float(span.attrib["x2"])
            assert x1 <= float(middle.attrib["cx"]) <= x2


def test_names_are_text_and_runs_without_claims_say_so() -> None:
    page = atlas.render([("<b>", machine("<script>alert(1)</script>")), ("b", machine("b"))])
    assert "<script" not in page
    bare = [(name, replace(machine(name), claims=())) for name in ("a", "b")]
    assert "The runs have no claim" in atlas.render(bare)


def test_atlas_without_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "samples.jsonl").touch()
    assert exit_status("lab", "compare", tmp_path, "--atlas") == 2
    assert capsys.readouterr().err.startswith("fairlead: --atlas is a page")
