"""Checks the documents for words and sentences that an engineer would have to read twice.

    python tools/words.py      lists what is wrong, and ends with 1 if anything is

No banned word (``BANNED``) and no sentence of more than ``LONGEST`` words in the documents; no pronoun in
place of an actor (``PRONOUN``) in the sources (``sources()``), comments included. What an editor or the
command line shows of the code (``shown()``) is checked for banned words, the comments in C of the rooms
``CLEAN`` for "who" and "told", and the names of tests for all of these (``NAME``).
``tests/arch/test_words.py`` runs this in ``make lint``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 40

BANNED = {
    "who": r"(?:(?<=^)|(?<=[.:;,] ))who (?:comes?|waits?|looks?|sleeps?|holds?|arrives?|stops?|forks?)\b",
    "whoever": r"\bwhoever\b",
    "somebody": r"\bsomebody(?: else)?\b",
    "anybody": r"\banybody(?:'s)?\b",
    "nobody": r"\bnobody(?:'s)?\b",
    "told": r"\b(?:is|are|be|was|were) told\b",
    "give on": r"\bg(?:ive|ives|iven|ave|iving) on\b",
    "cure": r"\b(?:cure|cures|cured)\b",
    "mend": r"\bmend(?:s|ed|ing)?\b",
    "look": r"\bstacks are looks\b",
}
"""Home-made words by their names, with the expression that finds each."""

PRONOUN = r"\b(?:who(?:m?ever)|(?:some|any|no|every)body|(?:some|any|every)one)\b"
"""What stands for a thread, task, waiter, holder, caller or process that could be named."""


ACTOR = r"(?<!`)\b(?:whom?|told)\b"
"""Words of a comment in C for which the name of a thread, waiter, caller or notification would stand."""

CLEAN = ("gil", "interpreters", "machine", "module", "sync", "tests")
"""The rooms of native/ whose comments name every actor."""

NAME = (
    r"\b(?:def|void|class) test_(?:\w+_)?"
    r"(?:who(?:m|ever)?|(?:some|any|no|every)bod(?:y|ys|ies)|told|tells?)(?:_\w+)?\("
)
"""A test whose name does not name its actor, or says "told" for reported, shown, raised or distinguished."""


@cache
def documents() -> frozenset[Path]:
    return frozenset(
        [
            ROOT / "README.md",
            ROOT / "CONTRIBUTING.md",
            ROOT / "ARCHITECTURE.md",
            *(ROOT / "docs").rglob("*.md"),
            *(ROOT / "native").rglob("*.md"),
        ]
    )


@cache
def shown() -> frozenset[Path]:
    """The docstrings of the core, and the texts of the command line."""
    package = ROOT / "src" / "fairlead"
    return frozenset([package / "_native.pyi", *(package / "cli").rglob("*.py")])


@cache
def sources() -> frozenset[Path]:
    """All that is written by hand in C and Python, but for the tests in Python."""
    folders = [ROOT / name for name in ("native", "src", "benchmarks", "examples")]
    return frozenset(
        path for folder in folders for end in ("c", "h", "py") for path in folder.rglob(f"*.{end}")
    )


@cache
def tests() -> frozenset[Path]:
    return frozenset([*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "native" / "tests").rglob("test_*.c")])


@cache
def clean() -> frozenset[Path]:
    rooms = [ROOT / "native" / name for name in CLEAN]
    return frozenset(path for room in rooms for end in ("c", "h") for path in room.rglob(f"*.{end}"))


def prose(text: str) -> str:
    """The text without code, links' targets and comments, with line numbers kept."""
    blank = re.compile(r"^```.*?^```|<!--.*?-->|^    .*?$|`[^`\n]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
    return blank.sub(lambda m: re.sub(r"[^\n]+", "" if m[0].startswith(("```", "    ")) else "x", m[0]), text)


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """(line, sentence) of each sentence; items of lists, cells of tables and headings end one."""
    for block in re.finditer(r"(?:^.*\S.*$\n?)+", text, re.MULTILINE):
        for part in re.finditer(r"(?:(?!\n\s*(?:[*#|-]|\d+\.) )[^|])+", block[0]):
            start = text.count("\n", 0, block.start() + part.start()) + 1
            for sentence in re.split(r"(?<=[.!?:;])\s+", part[0]):
                yield start, sentence


def banned(text: str) -> list[tuple[str, int, str]]:
    """(rule, line, what) of every banned word."""
    return [
        (rule, text.count("\n", 0, match.start()) + 1, match[0])
        for rule, expression in BANNED.items()
        for match in re.finditer(expression, text, re.IGNORECASE | re.MULTILINE)
    ]


def pronouns(text: str) -> list[tuple[str, int, str]]:
    """(rule, line, what) of every pronoun in place of an actor."""
    return [
        ("pronoun", text.count("\n", 0, match.start()) + 1, match[0])
        for match in re.finditer(PRONOUN, text, re.IGNORECASE)
    ]


def actors(text: str) -> list[tuple[str, int, str]]:
    """(rule, line, what) of every comment in C that does not name its actor."""
    return [
        ("actor", text.count("\n", 0, comment.start() + match.start()) + 1, match[0])
        for comment in re.finditer(r"/\*.*?\*/", text, re.DOTALL)
        for match in re.finditer(ACTOR, comment[0], re.IGNORECASE)
    ]


def names(text: str) -> list[tuple[str, int, str]]:
    """(rule, line, what) of every test whose name does not name its actor."""
    return [
        ("name", text.count("\n", 0, match.start()) + 1, match[0].rstrip("("))
        for match in re.finditer(NAME, text)
    ]


def breaches(text: str) -> list[tuple[str, int, str]]:
    """(rule, line, what) of every breach in a document."""
    text = prose(text)
    found = banned(text)
    for line, sentence in sentences(text):
        words = re.findall(r"\w[\w'-]*", sentence)
        if len(words) > LONGEST:
            found.append(("long", line, f"{len(words)} words: {' '.join(words[:8])} ..."))
    return found


def breaches_of(path: Path) -> list[tuple[str, int, str]]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return breaches(text)
    found = names(text) if path in tests() else []
    if path in sources():
        found += pronouns(text)
    if path in shown():
        found += banned(text)
    if path in clean():
        found += actors(text)
    return found


def complaints() -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: {rule}: {what}"
        for path in sorted(documents() | shown() | sources() | tests())
        for rule, line, what in breaches_of(path)
    ]


def main() -> int:
    lines = complaints()
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
