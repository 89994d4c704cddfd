"""Pages with figures show what a kept command printed, and no figure that was typed."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
KEPT = {path.name: path.read_text() for path in RESULTS.glob("*.txt")}
MEASURED = ("explanation/measured.md", "explanation/beside.md")
"""Every block of these is a result."""
WITHOUT_COMMAND = {"gil_policy_map", "judge", "judge_peers"}
"""Kept before tools/keep.py, until they are taken again."""
NUMBER = re.compile(r"(?<!\w)(?<!\d\.)\d+(?:[.,]\d+)*")


def load_figures() -> Any:
    """tools/figures.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        return SimpleNamespace(**runpy.run_path(str(ROOT / "tools" / "figures.py")))


FIGURES = load_figures()
PAGES = {str(path.relative_to(ROOT)).removeprefix("docs/"): path.read_text() for path in FIGURES.PAGES}


def sections() -> Iterator[tuple[str, str, list[str]]]:
    """Of each section that shows kept results: its page, its text, and the results that it names."""
    for page, text in PAGES.items():
        for section in re.split(r"^##+ ", text, flags=re.MULTILINE):
            files = named(section)
            if files or page in MEASURED:
                yield page, section, files


def named(text: str) -> list[str]:
    return re.findall(FIGURES.FILE, "".join(found[0] for found in FIGURES.SENTENCE.finditer(text)))


def test_every_page_says_of_its_figures_where_they_were_measured() -> None:
    stale = [page for page, text in PAGES.items() if FIGURES.anew(text) != text]
    assert stale == [], "python tools/figures.py"


def test_every_block_and_table_is_in_a_result_that_its_section_names() -> None:
    lost, found = [], 0
    for page, section, files in sections():
        blocks = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
        rows = re.findall(r"^\|.* \| \d.* \|$", section, re.MULTILINE)
        for shown in [*blocks, *rows]:
            found += 1
            if not any(plain(shown) in plain(KEPT.get(file, "")) for file in files):
                lost.append((page, shown))
    assert found > 20
    assert lost == []


def plain(text: str) -> str:
    """Without what Markdown cannot show, or shows by a backslash."""
    return re.sub(r"\w+\.<locals>\.|[<>\\]", "", text)


def test_every_page_has_the_command_of_the_results_that_it_names() -> None:
    for page, text in PAGES.items():
        said = " ".join(text.split())
        assert [file for file in named(text) if command(file) not in said] == [], page


def command(file: str) -> str:
    """The command that printed a kept result; "" of an old one."""
    found = re.match(r".*\n\$ (.*)", KEPT.get(file, ""))
    return " ".join(found[1].split()) if found else ""


@pytest.mark.parametrize("page", MEASURED)
def test_each_number_in_the_prose_of_the_measured_pages_is_in_a_result_that_they_name(page: str) -> None:
    prose = re.sub(r"```.*?```", "", PAGES[page], flags=re.DOTALL)
    prose = re.sub(r"`[^`]*`|^\|.*$|\]\([^)]*\)|CPython [\d.]+", "", prose, flags=re.MULTILINE)
    files = {file for name in MEASURED for file in named(PAGES[name])}
    known = {number for file in files for number in NUMBER.findall(KEPT.get(file, ""))}
    assert set(NUMBER.findall(prose)) - known == set()


def test_every_kept_result_begins_with_its_origin_and_its_command() -> None:
    begin = re.compile(r".+; (?:Linux \S+|kernel unknown); (?:date unknown.* )?\d{4}-\d\d-\d\d; commit \w+.*")
    assert [name for name, text in KEPT.items() if not begin.fullmatch(text.partition("\n")[0])] == []
    without = {name.removesuffix(".txt") for name in KEPT if not command(name)}
    assert without - WITHOUT_COMMAND == set(), "python tools/keep.py NAME COMMAND ..."


def test_no_kept_result_is_left_that_no_page_shows_and_no_tool_reads() -> None:
    tools = [path.read_text() for path in (ROOT / "tools").rglob("*.py")]
    assert [name for name in KEPT if not any(name in text for text in (*PAGES.values(), *tools))] == []


def test_the_policy_map_has_what_the_simulator_says_of_the_present_policy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    script = runpy.run_path(str(ROOT / "benchmarks" / "gil_policy_map.py"))
    kept = KEPT["gil_policy_map.txt"].splitlines()
    cell = ("1ms", 0.5, 1, 0)
    assert script["line"](cell, script["ratios"](cell)) in kept, "run benchmarks/gil_policy_map.py"
    assert sum(line.startswith(f"{work} ") for line in kept for work in script["WORK"]) == len(
        script["CELLS"]
    )
