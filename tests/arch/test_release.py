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


def test_fragments_of_the_changelog_have_a_kind_that_is_joined() -> None:
    kinds = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]["type"]
    known = {kind["directory"] for kind in kinds}
    fragments = [path.name for path in (ROOT / "changes").glob("*.md")]

    assert [name for name in fragments if name.split(".")[1:-1][-1:] not in [[kind] for kind in known]] == []


def test_every_dependency_has_its_licence_stated() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    needed = [*project["dependencies"], *(name for extra in extras for name in extra)]
    page = (ROOT / "docs" / "reference" / "stability.md").read_text()
    stated = re.findall(r"^\|[^|]*\| ([\w-]+) \| [^|]*\w", page, re.MULTILINE)

    assert {re.split(r"[<>=\[; ]", name)[0] for name in needed} <= set(stated)
