"""Reference pages of the public modules: every name of ``__all__``, its signature and its docstring.

Signatures come from the source, those of the C core from its stub; docstrings from the objects themselves.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import fairlead._native as native

MODULES = (
    "fairlead.sync",
    "fairlead.sync.shared",
    "fairlead.lowlevel",
    "fairlead.pools",
    "fairlead.advice",
    "fairlead.gil",
    "fairlead.gil.simulation",
    "fairlead.machine",
    "fairlead.errors",
)
WIDTH = 88
STUB = Path(__file__).parents[2] / "src" / "fairlead" / "_native.pyi"
SECTION = re.compile(r"^(Args|Raises|Returns|Attributes|Yields):\n((?:(?: +.*)?(?:\n|\Z))+)", re.MULTILINE)
CODE = re.compile(r"(```python.*?```|``?[^`]+``?|^    [^\n]*$)", re.MULTILINE | re.DOTALL)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def stubs() -> dict[str, list[ast.stmt]]:
    found: dict[str, list[ast.stmt]] = {}
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | Function):
            found.setdefault(node.name, []).append(node)
    return found


def nodes(name: str, value: object) -> list[ast.stmt]:
    """The definitions of a public object; several if it is overloaded, none if it has no source."""
    if getattr(native, name, None) is value and name in stubs():
        return stubs()[name]
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(value))).body[:1]  # type: ignore[arg-type]
    except (OSError, TypeError):
        return []


def parameters(node: Function, bound: bool) -> list[str]:
    def shown(arg: ast.arg, default: ast.expr | None) -> str:
        text = ast.unparse(arg)
        if default is None:
            return text
        return text + (" = " if arg.annotation else "=") + ast.unparse(default)

    args = node.args
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
    shown_ones = [shown(arg, default) for arg, default in zip(positional, defaults, strict=True)]
    if args.posonlyargs:
        shown_ones.insert(len(args.posonlyargs), "/")
    if bound:
        del shown_ones[0]
        if shown_ones[:1] == ["/"]:
            del shown_ones[0]
    if args.vararg:
        shown_ones.append("*" + ast.unparse(args.vararg))
    elif args.kwonlyargs:
        shown_ones.append("*")
    shown_ones += [
        shown(arg, default) for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
    ]
    if args.kwarg:
        shown_ones.append("**" + ast.unparse(args.kwarg))
    return shown_ones


def call(name: str, shown: list[str], returns: ast.expr | None, prefix: str = "") -> str:
    end = f" -> {ast.unparse(returns)}" if returns else ""
    line = f"{prefix}{name}({', '.join(shown)}){end}"
    if len(line) <= WIDTH or not shown:
        return line
    return f"{prefix}{name}(\n" + "".join(f"    {text},\n" for text in shown) + f"){end}"


def has(node: Function, decorator: str) -> bool:
    return any(decorator in ast.unparse(found) for found in node.decorator_list)


def function(node: Function, bound: bool) -> str:
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    if has(node, "property"):
        return f"{node.name}: {ast.unparse(node.returns) if node.returns else 'Any'}"
    return call(node.name, parameters(node, bound and not has(node, "staticmethod")), node.returns, prefix)


def constructor(node: ast.ClassDef) -> Iterator[str]:
    """How an object is made, then its fields if the class is declared by them."""
    made = [part for part in node.body if isinstance(part, Function) and part.name in ("__new__", "__init__")]
    yield from (call(node.name, parameters(part, True), None) for part in made)
    if not made:
        bases = [
            text for base in node.bases if not (text := ast.unparse(base)).startswith(("Generic", "Any"))
        ]
        yield f"class {node.name}({', '.join(bases)})" if bases else f"class {node.name}"
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and not ast.unparse(part.target).startswith("_"):
            yield f"    {ast.unparse(part.target)}: {ast.unparse(part.annotation)}"


def prose(doc: str | None) -> str:
    """A docstring as Markdown: lists of arguments and errors, and examples, get their form."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", inspect.cleandoc(doc or ""))
    text = re.sub(r"::$", ":", text, flags=re.MULTILINE)
    text = re.sub(
        r"^(?:>>> |\.\.\. ).*(?:\n(?:>>> |\.\.\. ).*)*",
        lambda match: f"```python\n{re.sub(r'(?m)^(?:>>> |[.]{3} )', '', match[0])}\n```",
        text,
        flags=re.MULTILINE,
    )
    parts = CODE.split(SECTION.sub(section, text))
    return "".join(part if place % 2 else outside_code(part) for place, part in enumerate(parts))


def outside_code(text: str) -> str:
    return re.sub(r"\bdocs/([\w/.-]+)\.md", r"[\1](../../\1.md)", text.replace("<", "\\<"))


def section(match: re.Match[str]) -> str:
    body = textwrap.dedent(match[2]).strip()
    items = re.split(r"\n(?=[\w*, .]+: )", re.sub(r"\n +", " ", body))
    lines = [re.sub(r"^([\w*, .]+): ", r"`\1`: ", " ".join(item.split())) for item in items]
    return f"**{match[1]}**\n\n" + "\n".join(f"- {line}" for line in lines) + "\n\n"


def member_docs(name: str, value: object) -> str:
    return prose(getattr(getattr(value, name, None), "__doc__", None))


def members(owner: str, node: ast.ClassDef, value: object) -> Iterator[str]:
    grouped: dict[str, list[str]] = {}
    for part in node.body:
        if isinstance(part, Function) and not part.name.startswith("_") and not has(part, ".setter"):
            grouped.setdefault(part.name, []).append(function(part, True))
    for name, signatures in grouped.items():
        yield f"#### {name} {{ #{owner}.{name} }}\n"
        yield "```python\n" + "\n".join(signatures) + "\n```\n"
        yield member_docs(name, value) + "\n"


def documented(value: object) -> bool:
    """Whether an object has a docstring of its own."""
    return isinstance(value, type) or inspect.isroutine(value)


def entry(name: str, value: object) -> Iterator[str]:
    yield f"### {name} {{ #{name} }}\n"
    found = nodes(name, value)
    signatures: list[str] = []
    for node in found:
        if isinstance(node, ast.ClassDef):
            signatures += constructor(node)
        elif isinstance(node, Function):
            signatures.append(function(node, False))
    if signatures:
        yield "```python\n" + "\n".join(signatures) + "\n```\n"
    if documented(value):
        yield prose(value.__doc__) + "\n"
    else:  # an alias of a type, or a constant: it says itself what it is
        yield f"```python\n{name} = {value!r}\n```\n".replace("typing.", "")
    for node in found:
        if isinstance(node, ast.ClassDef):
            yield from members(name, node, value)


def page(module_name: str) -> str:
    module: ModuleType = import_module(module_name)
    values = {name: getattr(module, name) for name in sorted(module.__all__)}
    classes = {name: value for name, value in values.items() if isinstance(value, type)}
    others = {name: value for name, value in values.items() if name not in classes}
    lines = [f"# API: {module_name}\n", prose(module.__doc__) + "\n"]
    for title, group in (("Classes", classes), ("Functions and values", others)):
        if group:
            lines.append(f"## {title}\n")
            for name, value in group.items():
                lines += entry(name, value)
    return "\n".join(lines)
