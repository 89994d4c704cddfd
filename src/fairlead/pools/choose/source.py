"""The syntax trees of functions."""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from types import CodeType
from typing import Any

from fairlead.pools.choose.labels import Doubt
from fairlead.pools.serialization.function import codes

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def source_of(code: CodeType) -> Any:
    """The syntax tree of what was compiled to this code, and not of what its file has by now."""
    lines = linecache.getlines(code.co_filename)
    if not lines and code.co_filename == "<string>" and "-c" in sys.orig_argv:
        lines = [sys.orig_argv[sys.orig_argv.index("-c") + 1]]
    tree, known = _compiled(code.co_filename, "".join(lines))
    nodes: list[Any] = tree.get((code.co_name, code.co_firstlineno), []) if code in known else []
    if len(nodes) > 1:  # lambdas of one line
        places = [place for place in code.co_positions() if None not in place and place[3]]
        nodes = [
            node for node in nodes
            if places and all(
                (node.body.lineno, node.body.col_offset) <= (begin, left)
                and (end, right) <= (node.body.end_lineno, node.body.end_col_offset)
                for begin, end, left, right in places
            )
        ]  # fmt: skip
    if not nodes:
        raise Doubt(f"the source of {code.co_qualname}() cannot be found")
    return nodes[-1]  # the innermost one


@functools.lru_cache(32)
def _compiled(file: str, source: str) -> tuple[dict[tuple[str, int], list[Any]], set[CodeType]]:
    try:
        tree = ast.parse(source)
        known = {*codes(compile(source, file, "exec", dont_inherit=True))}
    except (SyntaxError, ValueError):
        return {}, set()
    nodes: dict[tuple[str, int], list[Any]] = {}
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            nodes.setdefault((getattr(node, "name", "<lambda>"), first_line(node)), []).append(node)
    return nodes, known


def first_line(node: Any) -> int:
    first: Any = (*getattr(node, "decorator_list", ()), node)[0]
    line: int = first.lineno
    return line
