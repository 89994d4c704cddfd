"""A file or folder that a comment, a docstring or a page names exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
FOLDERS = ("native", "src", "tests", "tools", "benchmarks", "upstream", "examples", "docs", "changes")
PATH = re.compile(rf"(?<![\w./*~\x22-])(?:{'|'.join(FOLDERS)})(?:/[\w.-]*[\w-])+(?![\w*{{])")
SOURCE = re.compile(r"(?<![\w/.<-])(?!pycore_)[a-z_]+\.[ch]\b")
PLACEHOLDER = re.compile(r"(?<![A-Z])(?:NAME|ROOM|MODULE|SUITE|GROUP)(?![A-Z])")
FROM_ELSEWHERE = {"docs.h", "ucontext.h", "ceval_gil.c", "gil_under_test.h"}
"""A header that the build makes, one of the C library, CPython's file, and its copy by upstream/."""


def texts() -> Iterator[Path]:
    for pattern in ("*.md", "Makefile", "*.toml", "*.yml", "meson.build", ".ci/run", ".github/**/*.*"):
        yield from ROOT.glob(pattern)
    for folder in FOLDERS:
        files = (ROOT / folder).rglob("*")
        yield from (path for path in files if path.suffix in {".py", ".pyi", ".c", ".h", ".md", ".build"})


def named(pattern: re.Pattern[str]) -> Iterator[tuple[Path, str, str]]:
    """The file, what it names, and where."""
    for path in texts():
        text = path.read_text(encoding="utf-8")
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield path, match[0], f"{path.relative_to(ROOT)}:{line}: {match[0]}"


def exists(name: str, beside: Path) -> bool:
    """From the root, from where #include begins, or beside the file; a module may be without its ending."""
    bases = (ROOT, ROOT / "native", beside.parent)
    return any((base / f"{name}{end}").exists() for base in bases for end in ("", ".py", ".c", ".h"))


def test_paths_that_are_named_exist() -> None:
    found = [(path, name, where) for path, name, where in named(PATH) if not PLACEHOLDER.search(name)]
    assert len(found) > 300
    assert [where for path, name, where in found if not exists(name, path)] == []


def test_sources_in_c_that_are_named_exist() -> None:
    known = {path.name for path in texts()} | FROM_ELSEWHERE
    assert [where for _, name, where in named(SOURCE) if name not in known] == []
