"""Rules for the C sources that no compiler checks, tested on their text.

Each rule is a function from a file's text to the lines that break it, and each is shown a
breach of itself, so that a rule which no longer sees anything fails.
"""

from __future__ import annotations

import ast
import graphlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sources import tool

pytestmark = pytest.mark.once

NATIVE = Path(__file__).parents[2] / "native"
ROOMS = tool("site/rooms.py")
CODE = ROOMS.read_native()

MAY_USE = {
    "machine": "",
    "machine/os": "machine",
    "sync/wait": "machine",
    "sync/locks": "machine sync/wait",
    "sync/coordination": "machine sync/wait sync/locks",
    "sync/processes": "machine sync/wait sync/locks",
    "interpreters": "machine sync/wait sync/locks",
    "gil/trace": "machine",
    "gil/policy": "",
    "gil/simulator": "gil/policy",
    "gil/interpreter": "",
    "sync/bind/base": "machine sync/wait interpreters gil/interpreter",
    "sync/bind/wait": "machine sync/wait sync/locks sync/coordination sync/bind/base",
    "sync/bind/locks": "machine sync/wait sync/locks sync/bind/base sync/bind/wait",
    "sync/bind/coordination": "machine sync/wait sync/locks sync/coordination interpreters sync/bind/base"
    " sync/bind/wait sync/bind/locks",
    "sync/bind/processes": "machine sync/processes sync/bind/base",
    "machine/bind": "machine sync/bind/base",
    "interpreters/bind": "machine sync/wait sync/locks interpreters sync/bind/base sync/bind/wait",
    "sync/bind/queues": "machine sync/wait sync/locks sync/coordination interpreters sync/bind/base"
    " sync/bind/wait interpreters/bind",
    "module": "machine sync/wait interpreters gil/simulator machine/bind interpreters/bind sync/bind/base"
    " sync/bind/wait sync/bind/locks sync/bind/coordination sync/bind/queues sync/bind/processes",
    "gil/threads": "machine gil/trace gil/interpreter",
    "gil/hooks": "machine gil/trace gil/interpreter gil/threads",
    "gil/schedule": "machine gil/policy gil/interpreter gil/threads gil/hooks",
    "gil/observe": "machine gil/trace gil/interpreter gil/threads gil/hooks gil/schedule",
    "gil/serve": "machine gil/trace gil/threads gil/hooks gil/observe gil/schedule",
    "gil/bind": "machine gil/trace gil/interpreter gil/threads gil/hooks gil/observe gil/schedule gil/serve",
}
"""The rooms, and the rooms whose headers the files of each may include and whose functions they may call,
besides its own."""

WITHOUT_PYTHON = {room for room in MAY_USE if "bind" not in room and not room.startswith("gil/")}
WITHOUT_PYTHON = WITHOUT_PYTHON - {"module"} | {"gil/trace", "gil/policy", "gil/simulator"}
"""Rooms that must build without Python."""

INTERNALS = re.compile(r"\bpycore_|\binternal/|\bPy_BUILD_CORE")
"""The interpreter's own headers, which only gil/ may know."""

STUB = {
    node.name: {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    for node in ast.parse((NATIVE.parent / "src/fairlead/_native.pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ClassDef)
}
"""The methods of each class, of which the build makes the tables of methods."""

Rule = Callable[[str], Iterator[tuple[int, str]]]


PRODUCT = [*MAY_USE]
BINDINGS = [room for room in MAY_USE if "bind" in room.split("/") and room != "gil/bind"] + ["module"]


def sources(rooms: list[str]) -> list[Path]:
    return [path for room in rooms for path in sorted((NATIVE / room).glob("*.[ch]"))]


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
        said = fields[-1].strip('"')  # a variable, or of FL_DOC(owner, name) the end
        if docs.get(said, said.removesuffix(")")) != name:
            yield line, f"{name} has no docstring that begins with its signature, {name}($module, ...)"


def rule_argument_formats_end_with_the_name_of_the_function(text: str) -> Iterator[tuple[int, str]]:
    names = {fields[0].strip('"') for _, fields in method_tables(text)}
    for of_stub in re.findall(r"\b(?:FL_(?:WRAPPER_|PART_)?SLOTS(?:_AND)?|QUEUE)\((\w+),", text):
        names |= {of_stub} | STUB.get(of_stub, set())
    names |= set(re.findall(r'(?:\.name\s*=\s*|\bFL_TYPE\()"fairlead\.[a-z_.]+\.(\w+)"', text))
    for line, arguments in calls(text, r"(?:PyArg_ParseTuple(?:AndKeywords)?|new_by)"):
        if any(re.search(r"\bformat$", argument.strip()) for argument in arguments):
            continue  # of new_by(), whose callers write it out
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
    assert breaches(rule, sources(BINDINGS)) == []


@pytest.mark.parametrize("rule", [rule for rule, _ in EVERYWHERE], ids=lambda rule: rule.__name__)
def test_product_sources_follow(rule: Rule) -> None:
    assert breaches(rule, sources(PRODUCT)) == []


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


def test_rooms_lie_one_above_the_other() -> None:
    below = {room: set(names.split()) for room, names in MAY_USE.items()}
    assert list(graphlib.TopologicalSorter(below).static_order())


def test_every_room_is_in_the_table() -> None:
    rooms = {str(path.parent.relative_to(NATIVE)) for path in NATIVE.rglob("*.[ch]")}
    assert rooms == {*MAY_USE, "tests", "tests/model"}


def test_each_concern_has_a_readme_that_names_its_rooms_and_points_at_files() -> None:
    concerns = {room.split("/")[0] for room in [*MAY_USE, "tests"]}
    for concern in sorted(concerns):
        readme = NATIVE / concern / "README.md"
        text = readme.read_text(encoding="utf-8")
        rooms = [room.removeprefix(f"{concern}/") for room in MAY_USE if room.startswith(f"{concern}/")]
        assert [room for room in rooms if f"`{room}/`" not in text] == []
        links = re.findall(r"\]\(([^)]+)\)", text)
        assert links
        assert [link for link in links if not (readme.parent / link).is_file()] == []


def test_includes_stay_within_their_room_and_those_below() -> None:
    found = []
    for room, below in MAY_USE.items():
        allowed = {room, *below.split()}
        for path in sources([room]):
            text = without_comments(path.read_text(encoding="utf-8"))
            for match in re.finditer(r'#\s*include\s+(["<])([^">]+)[">]', text):
                where = f"{path}:{line_of(text, match.start())}: {match[2]}"
                made = match[2] == "docs.h"  # by the build
                if match[1] == '"' and not made and match[2].rpartition("/")[0] not in allowed:
                    found.append(f"{where}: {room} may include {sorted(allowed)} only")
                if room in WITHOUT_PYTHON and re.search(
                    r"python|structmember|pyconfig", match[2], re.IGNORECASE
                ):
                    found.append(f"{where}: {room} knows no Python")
            if not room.startswith("gil/") and (match := INTERNALS.search(text)):
                found.append(
                    f"{path}:{line_of(text, match.start())}: {match[0]}: only gil/ may know internals"
                )
    assert found == []


def test_calls_stay_within_their_room_and_those_below() -> None:
    """Of functions and of variables, also in another room's macros. What a pointer calls is not seen."""
    found = {
        f"{user} -> {used}: {name}, in {sorted(path.name for path in paths)}"
        for (user, used), names in CODE.calls().items()
        for name, paths in names.items()
        if used not in MAY_USE[user].split()
    }
    assert found == set()


LOW = """
int fl_f(int a)
{
    return a;
}
const int fl_table[] = {1};
_Thread_local int fl_here;
int (*fl_hook)(int);
int fl_first_made[2];
int fl_second_made[2];
"""

LOW_HEADER = """
int fl_f(int a);
#define FL_TWICE(x) (fl_f(x) + FL_ONE)
#define FL_ONE fl_table[0]
"""

HIGH_HEADER = """
static inline int fl_inline(void)
{
    return fl_f(0);
}
"""

HIGH = """
#define MADE(of) fl_##of##_made
static int f(void)
{
    /* fl_second_made */ return "fl_second_made" + fl_hook(FL_TWICE(fl_here)) + MADE(first);
}
"""

TOP = """
static int f(void)
{
    return fl_inline();
}
"""


def test_a_call_is_seen_wherever_it_stands(tmp_path: Path) -> None:
    texts = {"low/l.c": LOW, "low/l.h": LOW_HEADER, "high/h.h": HIGH_HEADER, "high/h.c": HIGH, "top/t.c": TOP}
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    calls = ROOMS.read_native(tmp_path).calls()
    assert calls.keys() == {("high", "low"), ("top", "high")}
    assert calls["top", "high"].keys() == {"fl_inline"}
    assert calls["high", "low"].keys() == {"fl_f", "fl_table", "fl_here", "fl_hook", "fl_first_made"}
    assert {path.suffix for path in calls["high", "low"]["fl_f"]} == {".h", ".c"}


def test_a_header_declares_what_its_own_room_defines() -> None:
    """machine/os has what machine declares; in the rooms that all bindings use it is the very file."""
    found = set()
    for name, header in CODE.declared.items():
        room, by_file = CODE.room(header), CODE.room(header) in ("sync/bind/base", "sync/bind/wait")
        for path in CODE.defined.get(name, ()):
            if CODE.room(path) not in (room, f"{room}/os") or (
                by_file and not path.stem.startswith(header.stem)
            ):
                found.add(f"{header.relative_to(NATIVE)}: {name} is in {path.relative_to(NATIVE)}")
    assert found == set()


def fields_of_thread_states(text: str) -> set[str]:
    """Where a field of a PyThreadState is read, or its place asked for."""
    names = "|".join(re.findall(r"\bPyThreadState\s*\*\s*(?:const\s+)?(\w+)\b", text)) or r"(?!)"
    of = rf"\b(?:{names})|\bPyThreadState_\w+\([^()]*\)|\(PyThreadState \*\)[^;]*?\)"
    return set(re.findall(rf"(?:{of})\s*->\s*\w+|offsetof\(PyThreadState,[^)]*\)", text))


def test_only_compat_knows_what_a_thread_state_has() -> None:
    states = "PyThreadState *here = f(); here->id; PyThreadState_Get()->interp; ((PyThreadState *)at)->id;"
    assert len(fields_of_thread_states(states + " offsetof(PyThreadState, interp)")) == 4
    found = {
        path.relative_to(NATIVE).as_posix(): fields
        for path in sources(PRODUCT)
        if (fields := fields_of_thread_states(without_comments(path.read_text(encoding="utf-8"))))
    }
    assert found.keys() == {"gil/interpreter/compat.h"}


def test_no_type_has_two_meanings() -> None:
    found: dict[str, set[str]] = {}
    for path in sources(PRODUCT):
        text = without_comments(path.read_text(encoding="utf-8"))
        for name in re.findall(r"^\}\s*(fl_\w+);|^typedef (?:struct|enum) \w+ (fl_\w+);", text, re.MULTILINE):
            found.setdefault(name[0] or name[1], set()).add(str(path.relative_to(NATIVE)))
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_lines_are_at_most_110_columns_and_have_no_tabs() -> None:
    found = [
        f"{path}:{number}"
        for path in sources([*MAY_USE, "tests", "tests/model"])
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 110 or "\t" in line or line != line.rstrip()
    ]
    assert found == []


def test_what_musl_loads_leaves_the_model_of_thread_locals_to_one_header() -> None:
    """musl refuses to load what asks for "initial-exec"; the hooks are for the GNU C library only."""
    asks = {
        path.relative_to(NATIVE).as_posix()
        for path in NATIVE.rglob("*.[ch]")
        if "tls_model" in path.read_text()
    }
    assert asks == {"machine/thread.h", "gil/threads/registry.h"}
