"""An editor shows of fairlead._native what C says of it: its stub has the same docstrings."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "stub_docs.py"))


def words(text: str | None) -> list[str]:
    return (text or "").split()


def test_stub_has_the_docstrings_of_the_extension() -> None:
    found = TOOL["documented"](ast.parse(TOOL["STUB"].read_text()))
    assert sum(text is not None for _, text in found) > 300
    different = [
        f"line {node.lineno}: {node.name}"
        for node, text in found
        if words(ast.get_docstring(node)) != words(text)
    ]
    assert different == [], "python tools/stub_docs.py writes them anew"
