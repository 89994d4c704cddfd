"""The modules of the package, each read and parsed once."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import fairlead

PACKAGE = Path(fairlead.__file__).parent


@functools.cache
def modules() -> dict[str, Path]:
    """Every one by its name without the leading "fairlead."; the package itself is ""."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All of its tree."""
    return tuple(ast.walk(tree(path)))
