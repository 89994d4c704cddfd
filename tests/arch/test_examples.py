"""Every public name is used in a listing of the documents, which test_docs.py runs."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
LISTING = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PUBLIC = [
    "fairlead.advice",
    "fairlead.errors",
    "fairlead.gil",
    "fairlead.gil.simulation",
    "fairlead.lowlevel",
    "fairlead.pools",
    "fairlead.sync",
    "fairlead.sync.shared",
]


@pytest.fixture(scope="module")
def words() -> set[str]:
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    listings = [text for path in documents for text in LISTING.findall(path.read_text(encoding="utf-8"))]
    return set(re.findall(r"\w+", "\n".join(listings)))


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_has_an_example_that_runs(module: str, words: set[str]) -> None:
    assert set(importlib.import_module(module).__all__) - words == set()
