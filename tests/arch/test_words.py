"""Names and words: one family of errors, and a text that an engineer reads once.

``tools/words.py`` has the rules for texts; this file holds the repository to them.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from sources import PACKAGE, modules, nodes, tool, tree

from fairlead import errors

pytestmark = pytest.mark.once

words = tool("words.py")

STANDARD = {"QueueEmpty", "QueueFull", "QueueShutDown"}
"""asyncio's own names: a program that comes from asyncio changes its import only."""

PEERS = {"Pool": "an Executor's face; and fairlead.pools.multiprocessing's, after multiprocessing's"}
"""Public names with two meanings, because each of their modules follows another's names."""


def types(path: Path) -> Iterator[str]:
    """The public classes of a module, and its names for types (``Kind = Literal[...]``)."""
    for node in nodes(path):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
    for node in tree(path).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) if re.fullmatch(r"[A-Z]\w*[a-z]\w*", name):
                yield name


def test_no_type_has_two_meanings() -> None:
    places: defaultdict[str, set[str]] = defaultdict(set)
    for path in modules().values():
        for name in types(path):
            places[name].add(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in places.items() if len(found) > 1 and name not in PEERS} == {}


def functions_by_module() -> dict[str, set[str]]:
    """The public functions of each module of the package."""
    return {
        f"fairlead.{name}".removesuffix("."): {
            node.name
            for node in tree(path).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
        }
        for name, path in modules().items()
    }


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """(module, name) of each name that a module imports from the package, and uses without the module's."""
    here = ["fairlead", *path.relative_to(PACKAGE).with_suffix("").parts]
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            above = ".".join(here[: -node.level]) if node.level else ""
            module = ".".join(filter(None, [above, node.module]))
            yield from ((module, alias.name) for alias in node.names if alias.asname is None)


def test_no_function_that_is_imported_by_its_name_alone_has_two_meanings() -> None:
    """``summary_html.render`` says by its module what it renders; a bare ``render`` would not.

    A command's function has the command's name, whatever the function behind it is called.
    """
    known = functions_by_module()
    places: defaultdict[str, set[str]] = defaultdict(set)
    for path in modules().values():
        for module, name in imported(path):
            if name in known.get(module, ()) and not module.startswith("fairlead.cli"):
                places[name].add(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_errors_end_in_error_and_warnings_in_warning() -> None:
    for name, found in vars(errors).items():
        if isinstance(found, type) and issubclass(found, errors.FairleadError) and name not in STANDARD:
            ending = "Warning" if issubclass(found, Warning) else "Error"
            assert name.endswith(ending), f"errors.{name} is to be called {name}{ending}"


def test_texts_have_no_home_made_words_and_no_long_sentences() -> None:
    assert words.complaints() == []


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("A lock is free, and whoever comes takes it.", "whoever"),
        ("Who waits may be passed.", "who"),
        ("The task is told.", "told"),
        ("Nobody is woken.", "nobody"),
        ("* an item\n* " + "word " * 41, "long"),
        ("| a cell | " + "word " * 41 + "|", "long"),
    ],
)
def test_a_breach_of_each_kind_is_found(text: str, rule: str) -> None:
    assert [name for name, _, _ in words.breaches(text)] == [rule]


def test_words_of_comments_are_found_in_c_alone() -> None:
    assert words.pronouns("int held;\n/* 0: nobody, or somebody else */") == [
        ("pronoun", 2, "nobody"),
        ("pronoun", 2, "somebody"),
    ]
    text = 'int who; /* whose lock it is */\n/* Who waits is\n * told. */\n"who"'
    assert words.actors(text) == [("actor", 2, "Who"), ("actor", 3, "told")]


@pytest.mark.parametrize(
    "line",
    [
        "def {}_who_waits_is_woken() -> None:",
        "async def {}_loop_is_told() -> None:",
        "static void {}_it_leaves_nobody_waiting(void)",
        "class {}_queue_tells_its_state():",
    ],
)
def test_a_test_whose_name_hides_its_actor_is_found(line: str) -> None:
    assert [rule for rule, _, _ in words.names(line.format("test"))] == ["name"]
    assert words.names("def test_whole_waiter_whose_time_is_over_retells_nothing(told: bool) -> None:") == []


@pytest.mark.parametrize(
    "text",
    ["    whoever", "`whoever`", "```\nwhoever\n```", "```\n" + "line\n" * 41 + "```", "word " * 40 + "."],
)
def test_code_and_short_sentences_are_no_breach(text: str) -> None:
    assert words.breaches(text) == []
