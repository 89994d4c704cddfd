"""Pages with figures show what benchmarks printed, and no figure that was typed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "name",
    [
        "explanation/compared.md",
        "explanation/how-exact.md",
        "explanation/measured.md",
        "reference/endpoint.md",
    ],
)
def test_every_block_of_the_page_is_in_a_result_that_is_kept(name: str) -> None:
    page = (ROOT / "docs" / name).read_text()
    results = [file.read_text() for file in sorted((ROOT / "benchmarks" / "results").glob("*.txt"))]
    blocks = re.findall(r"```text\n(.*?)```", page, re.S)
    assert blocks
    assert [block for block in blocks if not any(block in result for result in results)] == []
