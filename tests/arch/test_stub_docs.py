"""Every docstring of fairlead._native's stub is what the extension says: the build makes them of it."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

from fairlead import _native

STUB = Path(__file__).parents[2] / "src" / "fairlead" / "_native.pyi"
Documented = ast.ClassDef | ast.FunctionDef


def words(text: str | None) -> list[str]:
    return (text or "").split()


def documented() -> list[tuple[Documented, Any]]:
    """Every class, function and method of the stub that has a docstring, and what it is at run time."""
    found: list[tuple[Documented, Any]] = []
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append((node, getattr(_native, node.name, None)))
        if isinstance(node, ast.ClassDef):
            owner = getattr(_native, node.name, None)
            found += [
                (each, inspect.getattr_static(owner, each.name, None))
                for each in node.body
                if isinstance(each, ast.FunctionDef)
            ]
    return [each for each in found if ast.get_docstring(each[0])]


def test_extension_has_the_docstrings_of_its_stub() -> None:
    found = documented()
    assert len(found) > 350
    different = [
        f"line {node.lineno}: {node.name}"
        for node, it in found
        if words(ast.get_docstring(node)) != words(getattr(it, "__doc__", None))
    ]
    assert different == []


def test_what_async_with_takes_names_the_base_that_pyright_asks_for() -> None:
    """Its __aenter__ is no coroutine function, without which pyright sees no AbstractAsyncContextManager."""
    bases = {
        node.name: [ast.unparse(base).partition("[")[0] for base in node.bases]
        for node in ast.parse(STUB.read_text()).body
        if isinstance(node, ast.ClassDef)
        and any(isinstance(each, ast.FunctionDef) and each.name == "__aenter__" for each in node.body)
    }
    assert "Lock" in bases
    assert [name for name, of in bases.items() if "AbstractAsyncContextManager" not in of] == []
