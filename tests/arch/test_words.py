"""Names and words: one family of errors, and a text that an engineer reads once.

``tools/words.py`` has the rules for texts; this file holds the repository to them.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from fairlead import errors

SPEC = importlib.util.spec_from_file_location("words", Path(__file__).parents[2] / "tools" / "words.py")
assert SPEC is not None
assert SPEC.loader is not None
words = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(words)

STANDARD = {"QueueEmpty", "QueueFull", "QueueShutDown"}
"""asyncio's own names: a program that comes from asyncio changes its import only."""


def test_errors_end_in_error_and_warnings_in_warning() -> None:
    for name, found in vars(errors).items():
        if isinstance(found, type) and issubclass(found, errors.FairleadError) and name not in STANDARD:
            ending = "Warning" if issubclass(found, Warning) else "Error"
            assert name.endswith(ending), f"errors.{name} is to be called {name}{ending}"


def test_documents_have_no_more_home_made_words_and_long_sentences_than_are_allowed() -> None:
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


def test_a_pronoun_is_found_in_the_comments_of_a_source() -> None:
    assert words.pronouns("int held;\n/* 0: nobody, or somebody else */") == [
        ("pronoun", 2, "nobody"),
        ("pronoun", 2, "somebody"),
    ]


@pytest.mark.parametrize(
    "text",
    ["    whoever", "`whoever`", "```\nwhoever\n```", "```\n" + "line\n" * 41 + "```", "word " * 40 + "."],
)
def test_code_and_short_sentences_are_no_breach(text: str) -> None:
    assert words.breaches(text) == []
