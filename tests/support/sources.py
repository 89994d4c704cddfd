"""The modules of the package, each read and parsed once, and those of tools/."""

from __future__ import annotations

import ast
import functools
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import fairlead

PACKAGE = Path(fairlead.__file__).parent
TOOLS = Path(__file__).parents[2] / "tools"


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


def tool(path: str) -> ModuleType:
    """The program at this path below tools/, as a module."""
    name = "tools_" + path.removesuffix(".py").replace("/", "_")
    spec = importlib.util.spec_from_file_location(name, TOOLS / path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
