"""What a release says about itself holds: stability by module, kinds of changes, licences."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]


def test_modules_whose_stability_is_stated_exist() -> None:
    page = (ROOT / "docs" / "reference" / "stability.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`([\w.]+)`", row)]

    assert "fairlead.sync" in named
    assert [name for name in named if importlib.util.find_spec(name) is None] == []


def test_fragments_of_the_changelog_have_a_kind_that_is_joined_and_there_are_none_before_a_release() -> None:
    kinds = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]["type"]
    joined = re.compile(rf"\+[a-z0-9-]+\.(?:{'|'.join(kind['directory'] for kind in kinds)})\.md")
    fragments = {path.name for path in (ROOT / "changes").iterdir()} - {"README.md"}
    released = "## 0.1.0 (unreleased)" not in (ROOT / "CHANGELOG.md").read_text()

    assert [name for name in fragments if not (released and joined.fullmatch(name))] == []


def test_every_dependency_has_its_licence_stated() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    needed = [*project["dependencies"], *(name for extra in extras for name in extra)]
    page = (ROOT / "docs" / "reference" / "stability.md").read_text()
    stated = re.findall(r"^\|[^|]*\| ([\w-]+) \| [^|]*\w", page, re.MULTILINE)

    assert {re.split(r"[<>=\[; ]", name)[0] for name in needed} <= set(stated)
