"""Which layer may import which. ``LAYERS`` is the one place that says so; ARCHITECTURE.md explains it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from sources import PACKAGE, modules, nodes, tree

from fairlead.lab.catalogue import registry

pytestmark = pytest.mark.once

BOTTOM = {"errors", "machine"}
"""What every layer may use."""

LAYERS: dict[str, set[str]] = {
    # the bottom: the two extensions, the errors, and this machine
    "_native": set(),
    "_probe": set(),
    "errors": set(),
    "machine": {"_native", "errors"},
    # mend
    "wait": {"_native"},
    "sync": {"wait", "_native"},
    "lowlevel": {"wait", "_native"},
    "pools.engine": {"sync", "_native"},
    "pools.serialization": {"pools.engine"},
    "pools.process": {"pools.engine", "pools.serialization", "_native"},
    "pools.interpreter": {"pools.engine", "pools.serialization", "_native"},
    "pools.event_loop": {"pools.engine", "pools.serialization", "wait", "_native"},
    "pools.distributed": {"pools.engine", "pools.serialization", "_native"},
    "pools.from_thread": {"pools.engine"},
    "pools.executor": {"pools.engine", "pools.serialization", "pools.from_thread", "sync", "_native"},
    "pools.choose": {"pools.engine", "pools.interpreter", "pools.serialization", "_native"},
    "pools": {
        *("pools.engine", "pools.serialization", "pools.process", "pools.interpreter", "pools.event_loop"),
        *("pools.distributed", "pools.from_thread", "pools.executor", "pools.choose", "sync", "_native"),
    },
    # measured in turns
    "measure": set(),
    # see
    "record": set(),
    "judge": {"record"},
    "gil.analysis": {"judge", "record"},
    "gil.observe": {"gil.analysis", "judge", "_probe", "record"},
    "gil.schedule": {"gil.observe", "measure", "_probe", "record"},
    "gil.endpoint": {"gil.observe", "_probe", "record"},
    "gil.simulation": {"_native", "record"},
    "gil": {"gil.analysis", "gil.observe", "gil.schedule", "gil.endpoint", "gil.simulation"},
    # measure, choose, show
    "lab.isolation": set(),
    "lab.catalogue": {"lab.isolation", "record"},
    "lab.run": {"lab.analysis", "lab.catalogue", "lab.isolation", "measure", "record"},
    "lab.analysis": {"lab.catalogue", "measure", "record"},
    "lab": {"lab.run", "lab.catalogue", "lab.isolation"},
    "lab.experiments": set(),
    "advice": {
        *("pools", "pools.engine", "pools.serialization", "pools.choose", "gil", "record"),
        *("lab.run", "lab.analysis", "lab.catalogue", "lab.isolation", "measure"),
    },
    "report": set(),
    "report.common": {"record"},
    "report.summary": {"report.common", "record"},
    "report.comparison": {"report.common", "record"},
    "report.gil": {"report.common", "record"},
    "report.advice": {"report.common", "record"},
    "pytest_plugin": {"gil", "gil.observe"},
    "ipython": {"gil", "gil.observe"},
}
"""A layer, by the longest name that fits a module, and what it may import besides ``BOTTOM`` and itself."""

LAYERS["cli"] = set(LAYERS) - {"lab.experiments", "pytest_plugin", "ipython"}
LAYERS["__main__"] = {"cli"}

ALONE = {"_native", "_probe", "errors", "machine", "lab.experiments"}
"""Layers that may not even use ``BOTTOM``: they are it, or they run on interpreters that have no fairlead."""

EXTRAS = {"cloudpickle", "dask", "jinja2", "numpy", "perfetto", "psutil", "rich", "scipy"}
"""Third-party libraries that only some commands need; importing one costs more than all of fairlead."""


@functools.cache
def layer_of(module: str) -> str | None:
    parts = module.split(".")
    names = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((name for name in names if name in LAYERS), None)


def imports(module: str, path: Path, *, top_level_only: bool = False) -> Iterator[tuple[int, str]]:
    """(line, absolute name) of what a module imports; ``from a import b`` counts as both a and a.b."""
    statements = executed_at_import(tree(path)) if top_level_only else nodes(path)
    package = ["fairlead", *module.split(".")] if module else ["fairlead"]
    if path.name != "__init__.py":
        package.pop()
    for node in statements:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            yield node.lineno, source
            for alias in node.names:
                yield node.lineno, f"{source}.{alias.name}"


def executed_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below ``node`` that run at import: none in functions or TYPE_CHECKING blocks."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from executed_at_import(child)


def test_every_module_belongs_to_a_layer_and_every_layer_has_one() -> None:
    assert [name for name in modules() if name and layer_of(name) is None] == []
    assert set(LAYERS) - set(modules()) == {"_native", "_probe"}
    order = list(TopologicalSorter(LAYERS).static_order())
    assert order.index("errors") < order.index("machine") < order.index("cli")


def needs(path: Path) -> tuple[str, ...]:
    """What an experiment needs besides a standard library: it skips itself where that is absent."""
    if path.name == "probe_fairlead.py":
        return ("fairlead",)
    found = [one.needs for one in registry.catalogue().values() if one.path == path]
    return found[0] if found else ()


def forbidden(module: str, path: Path) -> list[str]:
    mine = layer_of(module)
    assert mine is not None
    if mine == "lab.experiments" and "fairlead" in needs(path):
        return []
    allowed = {mine} | LAYERS[mine] | (set() if mine in ALONE else BOTTOM)
    known = set(modules()) | {"_native", "_probe"}
    return [
        f"{path}:{line}: {mine} may not import {target}"
        for line, name in imports(module, path)
        if name.startswith("fairlead.")
        and (target := name.removeprefix("fairlead.")) in known
        and layer_of(target) not in allowed
    ]


def test_layers_import_only_what_the_table_allows_and_the_package_nothing() -> None:
    assert [line for name, path in modules().items() if name for line in forbidden(name, path)] == []
    assert list(imports("", PACKAGE / "__init__.py", top_level_only=True)) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("errors", "from fairlead import machine"),
        ("record.sample", "from ..lab.catalogue.registry import catalogue"),
        ("report.common", "def late():\n    import fairlead.lab.catalogue.registry\n"),
        ("lab.experiments.square_probe", "from fairlead.errors import FairleadError"),
    ],
)
def test_layers_an_upward_import_is_found_however_it_is_written(
    tmp_path: Path, module: str, source: str
) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert len(forbidden(module, path)) >= 1


def test_lab_never_prints() -> None:
    found = [
        f"{path}:{node.lineno}"
        for name, path in modules().items()
        if (layer_of(name) or "").partition(".")[0] == "lab" and layer_of(name) != "lab.experiments"
        for node in nodes(path)
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print")
        or (isinstance(node, ast.Attribute) and ast.unparse(node) in {"sys.stdout", "sys.stderr"})
    ]
    assert found == []


def test_help_of_the_command_needs_no_extra() -> None:
    """``fairlead --help`` must work with click alone, so nothing it imports on its way may need an extra."""
    known = modules()
    seen: set[str] = set()
    waiting = ["cli"]
    while waiting:
        module = waiting.pop()
        if module in seen or module not in known:
            continue
        seen.add(module)
        for line, name in imports(module, known[module], top_level_only=True):
            top, _, rest = name.partition(".")
            assert top not in EXTRAS, f"{module}:{line}: {name} is imported on the way to fairlead --help"
            if top == "fairlead":
                parts = rest.split(".")
                waiting += [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
    assert "cli" in seen


def test_no_file_is_longer_than_can_be_read_in_one_sitting() -> None:
    root = Path(__file__).parents[2]
    files = [
        path
        for room in ("native", "src", "benchmarks", "tools", "examples", "upstream")
        for path in (root / room).rglob("*")
        if path.suffix in {".c", ".h", ".py"}
    ]
    assert len(files) > 500
    assert [str(path) for path in files if path.read_bytes().count(b"\n") > 500] == []
