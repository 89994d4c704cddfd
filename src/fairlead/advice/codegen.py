"""The choice as a program: complete, to be pasted and run."""

from __future__ import annotations

import ast
import builtins

from fairlead.advice.child.loading import elsewhere
from fairlead.advice.target import Target
from fairlead.record.advice import NAMES, Kind


def code(target: Target, kind: Kind, workers: int, *, coroutines: bool, requests: int, items: int) -> str:
    """A program that makes the calls in that way and leaves the results in ``results``. Where the items were
    given in code, ``items`` is the caller's; so is a function that has no module to be imported from."""
    awaits = coroutines and kind != "async"
    items_from = elsewhere(target.expression)
    imports = [
        *["import asyncio"] * awaits,
        *["import json"] * (target.inputs is not None),
        *["from itertools import cycle, islice"] * (requests > items),
        *["from pathlib import Path"] * (target.inputs is not None),
    ]
    own = [f"from fairlead.pools import {NAMES[kind]}"] if kind != "sequential" else []
    source = []
    if target.module is not None:
        names = {target.module: {target.name.partition(".")[0], *_free(target.expression)}}
        if items_from is not None:
            names.setdefault(items_from[0], set()).add(items_from[1].partition(".")[0].removesuffix("()"))
        source = [f"from {module} import {', '.join(sorted(names[module]))}" for module in sorted(names)]
    given = f"islice(cycle(items), {requests})" if requests > items else "items"
    function = target.name
    body = []
    if target.inputs is not None:
        body.append(
            f"items = [json.loads(line) for line in Path({str(target.inputs)!r}).open() if line.strip()]"
        )
    elif target.expression:
        body.append(f"items = {items_from[1] if items_from else target.expression.strip()}")
    definition = []
    if kind == "sequential" and coroutines:
        definition = ["async def in_turn(items):", f"    return [await {function}(item) for item in {given}]"]
        body.append("results = asyncio.run(in_turn(items))")
    elif kind == "sequential":
        body.append(f"results = [{function}(item) for item in {given}]")
    else:
        if awaits:
            definition = ["def call(item):", f"    return asyncio.run({function}(item))"]
            function = "call"
        body += [
            f"with {NAMES[kind]}({workers}) as pool:",
            f"    results = list(pool.map({function}, {given}))",
        ]
    guarded = ['if __name__ == "__main__":', *(f"    {line}" for line in body)]
    head = [part for part in (imports, own, source) if part]
    blocks = ["\n\n".join("\n".join(part) for part in head)] if head else []
    blocks += ["\n".join(part) for part in (definition, guarded) if part]
    return "\n\n\n".join(blocks) + "\n"


def _free(expression: str) -> set[str]:
    """Names that an expression takes from the module that it was evaluated in."""
    if not expression or elsewhere(expression):
        return set()
    found = [
        node for node in ast.walk(ast.parse(expression.strip(), mode="eval")) if isinstance(node, ast.Name)
    ]
    bound = {node.id for node in found if not isinstance(node.ctx, ast.Load)}
    return {node.id for node in found} - bound - set(vars(builtins))
