"""Rules for the C sources that no compiler checks, tested on their text.

Each rule is a function from a file's text to the lines that break it, and each is shown a
breach of itself, so that a rule which no longer sees anything fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "native"

INCLUDES = {
    "core": {"core"},
    "platform": {"platform", "core"},
    "bind": {"bind", "sim", "core"},
    "sim": {"sim", "core"},
    "probe": {"probe", "core"},
    "tests": {"core", "platform", "probe", "sim"},
}
"""The directories whose headers the files of a directory may include."""

WITHOUT_PYTHON = {"core", "platform", "sim"}
"""Directories that must build without Python."""

INTERNALS = re.compile(r"\bpycore_|\binternal/|\bPy_BUILD_CORE")
"""The interpreter's own headers, which only probe/ may know."""

Rule = Callable[[str], Iterator[tuple[int, str]]]


def sources(*directories: str) -> list[Path]:
    return [path for name in directories or INCLUDES for path in sorted((NATIVE / name).rglob("*.[ch]"))]


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def without_comments(text: str) -> str:
    """The text with comments blanked, so that positions and lines stay."""
    blank = re.compile(r'("(?:\\.|[^"\\\n])*")|/\*.*?\*/|//[^\n]*', re.DOTALL)
    return blank.sub(lambda m: m[1] or re.sub(r"[^\n]", " ", m[0]), text)


def calls(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """(line, arguments) of every call of a function whose name matches, found by counting brackets."""
    for match in re.finditer(rf"\b(?:{name})\(", text):
        depth, start, arguments, quoted = 1, match.end(), [], False
        for at in range(match.end(), len(text)):
            character = text[at]
            if character == '"' and text[at - 1] != "\\":
                quoted = not quoted
            if quoted:
                continue
            depth += (character in "([{") - (character in ")]}")
            if depth == 0 or (depth == 1 and character == ","):
                arguments.append(text[start:at].strip())
                start = at + 1
            if depth == 0:
                break
        yield line_of(text, match.start()), arguments


def literal(argument: str) -> str | None:
    """The text of adjoining string literals, or None when it is something else."""
    parts = re.findall(r'"((?:\\.|[^"\\])*)"', argument)
    rest = re.sub(r'"(?:\\.|[^"\\])*"', "", argument)
    return "".join(parts) if parts and re.fullmatch(r"[\sA-Za-z0-9_]*", rest) else None


def method_tables(text: str) -> Iterator[tuple[int, list[str]]]:
    """(line, fields) of every entry of every PyMethodDef table but the closing one."""
    for table in re.finditer(r"PyMethodDef\s+\w+\[\]\s*=\s*\{(.*?)\n\};", text, re.DOTALL):
        for entry in re.finditer(r'\{\s*"(.*?)\},', table[1], re.DOTALL):
            yield (
                line_of(text, table.start(1) + entry.start()),
                ['"' + f.strip() for f in entry[1].split(",")],
            )


def rule_methods_have_a_docstring_with_a_signature(text: str) -> Iterator[tuple[int, str]]:
    docs = dict(re.findall(r'PyDoc_STRVAR\((\w+),\s*"(\w+)\(\$(?:module|self|type)\b', text))
    for line, fields in method_tables(text):
        name = fields[0].strip('"')
        if docs.get(fields[-1].strip('"')) != name:
            yield line, f"{name} has no docstring that begins with its signature, {name}($module, ...)"


def rule_argument_formats_end_with_the_name_of_the_function(text: str) -> Iterator[tuple[int, str]]:
    names = {fields[0].strip('"') for _, fields in method_tables(text)}
    names |= set(re.findall(r'\.name\s*=\s*"fairlead\.[a-z_.]+\.(\w+)"', text))
    for line, arguments in calls(text, r"PyArg_ParseTuple(?:AndKeywords)?"):
        formats = [f for f in map(literal, arguments[1:]) if f is not None]
        if not formats or formats[0].partition(":")[2] not in names:
            yield line, "the format must end with :name, the name of a function or type of this file"


def rule_messages_say_something_and_match_their_arguments(text: str) -> Iterator[tuple[int, str]]:
    for line, arguments in calls(text, r"PyErr_(?:Format|SetString)"):
        message = literal(arguments[1])
        if message is None:
            yield line, "the message must be written out where it is raised"
        elif len(message) < 10 or message.endswith((".", "\\n")) or re.match(r"[A-Z][a-z]", message):
            yield line, f'"{message}" must be a clause: more than a word, no capital, no full stop'
        elif len(re.findall(r"%(?!%)", message.replace("%%", ""))) != len(arguments) - 2:
            yield line, f'"{message}" does not take {len(arguments) - 2} arguments'


def rule_public_types_name_the_package(text: str) -> Iterator[tuple[int, str]]:
    for block in re.finditer(
        r"(?:PyType_Spec|PyStructSequence_Desc)\s+\w+\s*=\s*\{(.*?)\n\};", text, re.DOTALL
    ):
        if not re.search(r'\.name\s*=\s*"fairlead\.[a-z_.]+\.[A-Z]\w*"', block[1]):
            yield line_of(text, block.start()), 'the type\'s name must be "fairlead.<public module>.<Type>"'


def rule_no_python_object_is_static(text: str) -> Iterator[tuple[int, str]]:
    for match in re.finditer(r"^static\s+(?:Py(?:Type)?Object)\s*\*?\s*\w+\s*(?:=|;)", text, re.MULTILINE):
        yield (
            line_of(text, match.start()),
            "objects belong into the module's state: statics are shared by interpreters",
        )


def rule_nothing_that_knows_only_one_interpreter(text: str) -> Iterator[tuple[int, str]]:
    for match in re.finditer(r"\b(?:PyGILState_\w+|PyState_FindModule|PyModule_Create2?)\b", text):
        yield line_of(text, match.start()), f"{match[0]} works in the main interpreter only"


def rule_threads_are_attached_again(text: str) -> Iterator[tuple[int, str]]:
    for body in re.finditer(r"^\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        begun, ended = body[1].count("Py_BEGIN_ALLOW_THREADS"), body[1].count("Py_END_ALLOW_THREADS")
        if begun != ended:
            yield line_of(text, body.start()), f"{begun} times BEGIN_ALLOW_THREADS, {ended} times END"


def rule_no_unbounded_or_vanishing_calls(text: str) -> Iterator[tuple[int, str]]:
    for match in re.finditer(r"\b(?:strcpy|strcat|sprintf|vsprintf|gets|alloca|assert)\s*\(", text):
        yield line_of(text, match.start()), f"{match[0]}) has no bound, or vanishes in a release build"


def rule_visible_functions_carry_the_prefix(text: str) -> Iterator[tuple[int, str]]:
    for match in re.finditer(
        r"^(?!static|typedef|PyMODINIT_FUNC)[a-z]\w*[\w *]*?\b(\w+)\([^;]*?\)\n\{", text, re.MULTILINE
    ):
        if not match[1].startswith("fl_"):
            yield (
                line_of(text, match.start()),
                f"{match[1]} is visible to the linker: call it fl_<object>_<verb> or make it static",
            )


BIND: list[tuple[Rule, str]] = [
    (
        rule_methods_have_a_docstring_with_a_signature,
        'static PyMethodDef methods[] = {\n    {"now", now, METH_NOARGS, NULL},\n    {NULL},\n};',
    ),
    (
        rule_argument_formats_end_with_the_name_of_the_function,
        'PyArg_ParseTuple(args, "O&", convert, &root);',
    ),
    (
        rule_messages_say_something_and_match_their_arguments,
        'PyErr_Format(PyExc_ValueError, "there is no %s in %d", name);',
    ),
    (rule_public_types_name_the_package, 'static PyType_Spec spec = {\n    .name = "Lock",\n};'),
    (rule_no_python_object_is_static, "static PyObject *cache = NULL;"),
    (rule_nothing_that_knows_only_one_interpreter, "state = PyGILState_Ensure();"),
    (rule_threads_are_attached_again, "int f(void)\n{\n    Py_BEGIN_ALLOW_THREADS\n}\n"),
]

EVERYWHERE: list[tuple[Rule, str]] = [
    (rule_no_unbounded_or_vanishing_calls, "strcpy(to, from);"),
    (rule_visible_functions_carry_the_prefix, "int helper(int a,\n           int b)\n{\n}\n"),
]


@pytest.mark.parametrize("rule", [rule for rule, _ in BIND], ids=lambda rule: rule.__name__)
def test_bind_follows(rule: Rule) -> None:
    assert breaches(rule, sources("bind")) == []


@pytest.mark.parametrize("rule", [rule for rule, _ in EVERYWHERE], ids=lambda rule: rule.__name__)
def test_product_sources_follow(rule: Rule) -> None:
    assert breaches(rule, sources("core", "platform", "bind", "probe")) == []


@pytest.mark.parametrize(
    ("rule", "breach"), BIND + EVERYWHERE, ids=lambda part: getattr(part, "__name__", "")
)
def test_rule_sees_a_breach_of_itself(rule: Rule, breach: str) -> None:
    assert len(list(rule(without_comments(breach)))) == 1


def breaches(rule: Rule, paths: list[Path]) -> list[str]:
    assert paths
    return [
        f"{path}:{line}: {what}"
        for path in paths
        for line, what in rule(without_comments(path.read_text(encoding="utf-8")))
    ]


def test_every_directory_has_its_include_rule() -> None:
    assert {path.name for path in NATIVE.iterdir() if path.is_dir()} <= set(INCLUDES)


def test_includes_stay_within_their_layer() -> None:
    found = []
    for name, allowed in INCLUDES.items():
        for path in sources(name):
            text = without_comments(path.read_text(encoding="utf-8"))
            for match in re.finditer(r'#\s*include\s+(["<])([^">]+)[">]', text):
                where = f"{path}:{line_of(text, match.start())}: {match[2]}"
                if match[1] == '"' and "/" in match[2] and match[2].split("/")[0] not in allowed:
                    found.append(f"{where}: {name} may include {sorted(allowed)} only")
                if name in WITHOUT_PYTHON and re.search(
                    r"python|structmember|pyconfig", match[2], re.IGNORECASE
                ):
                    found.append(f"{where}: {name} knows no Python")
            if name != "probe" and (match := INTERNALS.search(text)):
                found.append(
                    f"{path}:{line_of(text, match.start())}: {match[0]}: only probe/ may know internals"
                )
    assert found == []


def test_lines_are_at_most_110_columns_and_have_no_tabs() -> None:
    found = [
        f"{path}:{number}"
        for path in sources()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 110 or "\t" in line or line != line.rstrip()
    ]
    assert found == []
