"""Writes what the stub says of fairlead._native as a header: its docstrings, for the extension's C.

    python native/module/docs.py src/fairlead/_native.pyi docs.h

The build runs it. So each signature and docstring is written once, where an editor looks for it. For C they
are FL_DOC(Class, method) and FL_DOC(module, function), with the signature that Python makes
__text_signature__ of; FL_TYPE_DOC(Class); and of a record FL_FIELDS_Class, a list of {name, docstring}.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path


def literal(text: str) -> str:
    """The text as a string of C."""
    lines = [line.replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n")]
    return '"' + "\\n".join(lines) + '"'


def signature(function: ast.FunctionDef, name: str, first: str | None) -> str:
    """What stands before the docstring; `first` is what the interpreter passes by itself."""
    given = function.args
    defaults = [None] * (len(given.posonlyargs) + len(given.args) - len(given.defaults)) + given.defaults
    words = [
        each.arg + ("" if default is None else f"={ast.unparse(default)}")
        for each, default in zip([*given.posonlyargs, *given.args], defaults, strict=True)
    ]
    before = len(given.posonlyargs)
    if first is None:
        del words[0]  # cls of a constructor
        before -= before > 0
    elif first == "$module":
        words.insert(0, first)
        before += 1
    else:
        words[0] = first
        before = max(before, 1)
    if before:
        words.insert(before, "/")
    if given.vararg is not None:
        words.append(f"*{given.vararg.arg}")
    elif given.kwonlyargs:
        words.append("*")
    words += [
        each.arg + ("" if default is None else f"={ast.unparse(default)}")
        for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    return f"{name}({', '.join(words)})\n--\n\n"


def of_class(node: ast.ClassDef) -> list[str]:
    """The definitions of a class and of what is in it."""
    lines, fields = [], []
    text = ast.get_docstring(node) or ""
    record = any("structseq" in ast.unparse(base) for base in node.bases)
    for each in node.body:
        if not isinstance(each, ast.FunctionDef):
            continue
        decorators = {ast.unparse(decorator) for decorator in each.decorator_list}
        if each.name == "__new__":
            text = signature(each, node.name, None) + text
            continue
        said = ast.get_docstring(each)
        if said is None:
            continue
        if record:
            fields.append(f"{{{literal(each.name)}, {literal(said)}}}")
        elif "property" in decorators:
            lines.append(f"#define FL_DOC_{node.name}_{each.name} {literal(said)}")
        else:
            whole = signature(each, each.name, "$type" if "classmethod" in decorators else "$self") + said
            lines.append(f"#define FL_DOC_{node.name}_{each.name} {literal(whole)}")
    if fields:
        lines.append(f"#define FL_FIELDS_{node.name} {', '.join(fields)}")
    return [f"#define FL_TYPE_DOC_{node.name} {literal(text)}", *lines]


def header(stub: str) -> str:
    """The whole header, of the stub's text."""
    lines = ["/* Made of src/fairlead/_native.pyi by native/module/docs.py. */"]
    for node in ast.parse(stub).body:
        if isinstance(node, ast.ClassDef):
            lines += of_class(node)
        elif isinstance(node, ast.FunctionDef):
            whole = signature(node, node.name, "$module") + (ast.get_docstring(node) or "")
            lines.append(f"#define FL_DOC_module_{node.name} {literal(whole)}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(header(Path(sys.argv[1]).read_text()))
