"""What a program's file says of its globals: which of them a worker may have otherwise, that imports the file
without what stands under ``if __name__ == "__main__":``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairlead.pools.serialization.function import named_by

MainFacts = tuple[frozenset[str], frozenset[str], dict[str, Any]]
"""Names that are stored where a worker does not, names of what may be changed there, and what the file itself
says that names stand for."""

_READERS = {"len", "sum", "min", "max", "sorted", "enumerate", "zip", "any", "all", "list", "tuple", "set"}
_READING = {"get", "items", "keys", "values", "index", "count", "copy"}


def read(file: str) -> MainFacts:
    """Looks under the guard, and into functions, which may be called there."""
    none: frozenset[str] = frozenset()
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return none, none, {}
    said: dict[str, Any] = {}
    stored = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    changed: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.If) and "__name__" in ast.dump(statement.test):
            stored.update(_stored(statement.body))
            for inner in statement.body:
                changed.update(_changed(inner, under_guard=True))
        else:
            for name in _stored([statement]):
                said[name] = ... if name in said else _said(statement)
            for node in ast.walk(statement):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                    changed.update(_changed(node, under_guard=False))
    return frozenset(stored), frozenset(changed), said


def _stored(statements: list[ast.stmt]) -> Iterator[str]:
    return named_by(compile(ast.Module(statements, []), "", "exec"), "STORE_NAME")


def _said(statement: Any) -> Any:
    """What an assignment of a literal assigns; Ellipsis for all else."""
    try:
        return ast.literal_eval(statement.value)
    except (AttributeError, ValueError):
        return ...


def _changed(tree: ast.AST, *, under_guard: bool) -> Iterator[str]:
    """Names of which it does more than to read what they stand for. A loop under the guard may change what it
    takes out."""
    reads: set[ast.AST] = set()
    for node in ast.walk(tree):  # each before what is in it
        if (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)) or (
            isinstance(node, ast.Attribute) and node.attr in _READING
        ):
            reads.add(node.value)
        elif isinstance(node, ast.Compare):
            reads.update(node.comparators)
        elif isinstance(node, ast.For | ast.comprehension) and not under_guard:
            reads.add(node.iter)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _READERS:
            reads.update(node.args)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in reads:
            yield node.id
