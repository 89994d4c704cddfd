"""Every row of docs/reference/compatibility.md names a test that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairlead.gil.observe import tested

pytestmark = pytest.mark.once

CLONE = Path(__file__).parents[2]
PAGE = (CLONE / "docs" / "reference" / "compatibility.md").read_text()
NAMED = re.compile(r"`((?:tests|native)/[\w/.]+\.(?:py|c))(?:::(\w+))?`")


def test_page_names_tests_and_releases_that_are_there() -> None:
    named = NAMED.findall(PAGE)
    assert len(named) > 15
    for path, test in named:
        text = (CLONE / path).read_text()
        assert not test or re.search(rf"\b{test}\(", text), f"there is no {test} in {path}"
    releases = ", ".join(f"{major}.{minor}.{micro}" for (major, minor), micro in tested.TESTED.items())
    assert f"({releases})" in PAGE
