"""Writes the docstrings of fairlead._native into its stub, where an editor looks for them.

    python tools/stub_docs.py

The C sources are where they are written. tests/arch/test_stub_docs.py holds the stub to them.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path
from typing import Any

from fairlead import _native

STUB = Path(__file__).parents[1] / "src" / "fairlead" / "_native.pyi"
LONGEST_LINE = 110
Documented = ast.ClassDef | ast.FunctionDef


def documentation(owner: Any, name: str) -> str | None:
    """What C says of it; None: nothing of ours, as of what every object has, or nothing that is public."""
    found = inspect.getattr_static(owner, name, None)
    special = name.startswith("__")
    if (name.startswith("_") and not special) or (special and not inspect.ismethoddescriptor(found)):
        return None
    if special and type(found).__name__ == "wrapper_descriptor":
        return None  # the interpreter's words for a slot
    text = getattr(found, "__doc__", None)
    return inspect.cleandoc(text) if isinstance(text, str) and text else None


def documented(tree: ast.Module) -> list[tuple[Documented, str | None]]:
    """Every class, function and method of the stub, with what its docstring is to be."""
    found: list[tuple[Documented, str | None]] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append((node, documentation(_native, node.name)))
        if isinstance(node, ast.ClassDef) and hasattr(_native, node.name):
            owner = getattr(_native, node.name)
            found += [
                (each, documentation(owner, each.name))
                for each in node.body
                if isinstance(each, ast.FunctionDef)
            ]
    return found


def _without(lines: list[str], node: Documented) -> None:
    """The lines without the docstring of this node."""
    if ast.get_docstring(node) is None:
        return
    first = node.body[0]
    assert first.end_lineno is not None
    rest = len(node.body) > 1
    lines[first.lineno - 1 : first.end_lineno] = [] if rest else [" " * first.col_offset + "..."]


def _docstring(text: str, indent: str) -> list[str]:
    paragraphs = ('"""' + text.replace("\\", "\\\\")).split("\n\n")
    wide = LONGEST_LINE - len(indent) - (0 if paragraphs[1:] else len('"""'))
    filled = [textwrap.wrap(paragraph, wide, break_on_hyphens=False) for paragraph in paragraphs]
    wrapped = [line for lines in filled for line in ("", *lines)][1:]
    if wrapped[1:] or text.endswith('"'):
        wrapped.append('"""')
    else:
        wrapped[0] += '"""'
    return [f"{indent}{line}".rstrip() for line in wrapped]


def written(source: str) -> str:
    """The stub with the docstrings that C has, and no others."""
    lines = source.splitlines()
    for node, _ in reversed(documented(ast.parse(source))):
        _without(lines, node)
    bare = "\n".join(lines) + "\n"
    lines = bare.splitlines()
    for node, text in reversed(documented(ast.parse(bare))):
        if text is None:
            continue
        first = node.body[0]
        indent = " " * (node.col_offset + 4)
        block = _docstring(text, indent)
        if not (isinstance(first, ast.Expr) and ast.unparse(first) == "..."):
            decorators = getattr(first, "decorator_list", [])
            start = min([first.lineno, *(each.lineno for each in decorators)]) - 1
            lines[start:start] = block
        elif first.lineno == node.lineno or lines[first.lineno - 1].strip() != "...":
            line = lines[first.lineno - 1]
            lines[first.lineno - 1 : first.lineno] = [line[: first.col_offset].rstrip(), *block]
        else:
            lines[first.lineno - 1 : first.lineno] = block
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    STUB.write_text(written(STUB.read_text()))
