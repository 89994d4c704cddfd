"""Writes what the stub says of fairlead._native as a header: docstrings and methods, for the extension's C.

    python native/module/docs.py src/fairlead/_native.pyi docs.h

The build runs it. So each signature and docstring is written once, where an editor looks for it. For C they
are FL_DOC(Class, property) and FL_DOC(module, function), with the signature that Python makes
__text_signature__ of; FL_TYPE_DOC(Class); FL_PARAMETERS(Class), the names that its constructor takes; and
of a record FL_FIELDS_Class, a list of {name, docstring}.

FL_METHODS_Class(prefix_) is the table of a class's methods: that of `acquire` is the C function
prefix_acquire, that of `__enter__` prefix_enter. Its signature says how C is called: without arguments
(METH_NOARGS), with the one that has no name and no default (METH_O), with several such (METH_FASTCALL), or
with some that may be named (METH_FASTCALL | METH_KEYWORDS).
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
    if given.kwarg is not None:
        words.append(f"**{given.kwarg.arg}")
    return f"{name}({', '.join(words)})\n--\n\n"


SLOTS = {"__await__", "__call__", "__int__", "__iter__", "__next__"}
"""Methods that the interpreter makes of a type's slots."""


def convention(function: ast.FunctionDef) -> str:
    """How its C function is called."""
    given = function.args
    if len(given.posonlyargs) > 0:
        unnamed, named = given.posonlyargs[1:], given.args + given.kwonlyargs
    else:
        unnamed, named = [], given.args[1:] + given.kwonlyargs
    if named:
        return "METH_FASTCALL | METH_KEYWORDS"
    if given.vararg is None and not unnamed:
        return "METH_NOARGS"
    return "METH_O" if len(unnamed) == 1 and not given.defaults else "METH_FASTCALL"


def entry(owner: str, function: ast.FunctionDef) -> str:
    """In a table of methods."""
    called, how = f"prefix##{function.name.strip('_')}", convention(function)
    if function.name == "__class_getitem__":
        called, how = "Py_GenericAlias", "METH_O | METH_CLASS"
    elif "METH_FASTCALL" in how:
        called = f"{'FL_FAST_NAMED' if 'METH_KEYWORDS' in how else 'FL_FAST'}({called})"
    return f'{{"{function.name}", {called}, {how}, FL_DOC_{owner}_{function.name}}}'


NO_COPIES = [
    '{"__copy__", fl_refuse_copy, METH_NOARGS, "__copy__($self)\\n--\\n\\nRefused."}',
    '{"__deepcopy__", fl_refuse_copy, METH_O, "__deepcopy__($self, memo, /)\\n--\\n\\nRefused."}',
]
"""Methods of every class but those in shared memory, whose copy is one more handle to the same."""


def of_class(node: ast.ClassDef) -> list[str]:
    """The definitions of a class and of what is in it."""
    lines, fields, methods = [], [], []
    text = ast.get_docstring(node) or ""
    record = any("structseq" in ast.unparse(base) for base in node.bases)
    for each in node.body:
        if not isinstance(each, ast.FunctionDef):
            continue
        decorators = {ast.unparse(decorator) for decorator in each.decorator_list}
        if each.name == "__new__":
            text = signature(each, node.name, None) + text
            named = [literal(given.arg) for given in (*each.args.args[1:], *each.args.kwonlyargs)]
            lines.append(f"#define FL_PARAMETERS_{node.name} {', '.join([*named, 'NULL'])}")
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
            if each.name not in SLOTS:
                methods.append(entry(node.name, each))
    if methods:
        shared = "Segment" in (node.name, *map(ast.unparse, node.bases))
        rows = ", ".join([*methods, *([] if shared else NO_COPIES), "{NULL, NULL, 0, NULL}"])
        lines.append(f"#define FL_METHODS_{node.name}(prefix) {rows}")
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
