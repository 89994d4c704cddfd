"""Pages with figures show what benchmarks printed, and no figure that was typed."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [(ROOT / "docs" / "explanation" / name).read_text() for name in ("measured.md", "beside.md")]
MEASURED = "\n".join(PAGES)
FILES = re.findall(r"`benchmarks/results/(gil_\w+\.txt)`", MEASURED)
BOUND = {"at most": "<=", "at least": ">="}


@pytest.mark.parametrize(
    "name",
    [
        "explanation/compared.md",
        "explanation/how-exact.md",
        "reference/endpoint.md",
    ],
)
def test_every_block_of_the_page_is_in_a_result_that_is_kept(name: str) -> None:
    page = (ROOT / "docs" / name).read_text()
    results = [file.read_text() for file in sorted(RESULTS.glob("*.txt"))]
    blocks = re.findall(r"```text\n(.*?)```", page, re.S)
    assert blocks
    assert [block for block in blocks if not any(block in result for result in results)] == []


def blocks(file: str) -> Iterator[tuple[str, list[str]]]:
    """The heading of each block of a kept result, and its lines with one space between columns."""
    for block in (RESULTS / file).read_text().split("\n\n"):
        heading, *lines = block.splitlines()
        yield heading, [re.sub(r" +", " ", line).strip() for line in lines]


def rows() -> Iterator[tuple[list[str], dict[str, str]]]:
    """Each row of the pages by its columns, with the files that its section names.

    A table without a column for the figure has it at the head of the programs' column.
    """
    for section in MEASURED.split("\n## ")[1:]:
        files = re.findall(r"`benchmarks/results/(gil_\w+\.txt)`", section) or FILES
        columns: list[str] = []
        for line in section.splitlines():
            cells = [cell.strip() for cell in line.split("|")[1:-1]]
            if not cells:
                columns = []
            elif not columns:
                columns = cells
            elif cells[0] != "--":
                figure = {} if "figure" in columns else {"figure": columns[0], "program": cells[0]}
                yield files, dict(zip(columns, cells, strict=True)) | figure


def printed(row: dict[str, str]) -> set[str]:
    """What the line of a kept result has that shows this row."""
    others = ("program", "figure", "machine", row["figure"])
    figures = {mode: cell for mode, cell in row.items() if mode not in others and cell}
    if "aim" in row:
        word, value = re.fullmatch(r"(at \w+) (.*)", row["aim"]).groups()  # type: ignore[union-attr]
        bound = f"must be {BOUND[word]} {value}"
        if "median" in row:  # which misses, though not each round does
            return {f"{row['figure']} {row['median']}", bound}
        return {f"{row['figure']} {row['measured']}", bound, "MISSED"}
    if row["figure"] == "exponent":
        return {f"exponent, {mode} {figure}" for mode, figure in figures.items()}
    return {row["figure"] + " ", *(f"{mode} {figure}" for mode, figure in figures.items())}


def shown(row: dict[str, str], files: list[str]) -> bool:
    wanted = printed(row)
    for file in files:
        if row.get("machine", "quiet") != ("busy" if file.endswith("_busy.txt") else "quiet"):
            continue
        for heading, lines in blocks(file):
            text = lines if row["figure"] != "exponent" else [" / ".join(lines)]
            if heading.startswith(row["program"]) and any(
                all(one in line for one in wanted) for line in text
            ):
                return True
    return False


def test_each_figure_of_the_measured_pages_is_in_the_result_that_its_section_names() -> None:
    assert all(len(page.splitlines()) <= 180 for page in PAGES)
    assert len(list(rows())) > 40
    assert [row for files, row in rows() if not shown(row, files)] == []


def test_each_number_in_the_prose_of_the_measured_pages_is_in_a_result_that_they_name() -> None:
    prose = re.sub(r"`[^`]*`|^\|.*$|\]\([^)]*\)|CPython [\d.]+", "", MEASURED, flags=re.MULTILINE)
    number = re.compile(r"(?<!\w)(?<!\d\.)\d+(?:[.,]\d+)*")
    known = {found for file in FILES for found in number.findall((RESULTS / file).read_text())}
    assert set(number.findall(prose)) - known == set()


def test_every_missed_aim_is_on_the_measured_pages() -> None:
    missed = sum((RESULTS / file).read_text().count("MISSED") for file in FILES)
    assert sum("measured" in row for _, row in rows()) == missed > 0


def test_every_median_that_is_listed_misses_its_aim() -> None:
    listed = [row for _, row in rows() if "median" in row]
    assert listed
    for row in listed:
        median, bound = float(row["median"].partition(" ")[0]), float(row["aim"].rpartition(" ")[2])
        assert median > bound if row["aim"].startswith("at most") else median < bound


def test_every_kept_result_begins_with_machine_kernel_date_and_commit() -> None:
    begin = re.compile(
        r".+; (?:Linux \S+|kernel unknown); (?:date unknown, kept )?\d{4}-\d\d-\d\d.*; commit \w+.*"
    )
    first = {file.name: file.read_text().partition("\n")[0] for file in RESULTS.glob("*.txt")}
    assert [name for name, line in first.items() if not begin.fullmatch(line)] == []


def test_the_policy_map_has_what_the_simulator_says_of_the_present_policy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    script = runpy.run_path(str(ROOT / "benchmarks" / "gil_policy_map.py"))
    kept = (RESULTS / "gil_policy_map.txt").read_text().splitlines()
    cell = ("1ms", 0.5, 1, 0)
    assert script["line"](cell, script["ratios"](cell)) in kept, "run benchmarks/gil_policy_map.py"
    assert sum(line.startswith(f"{work} ") for line in kept for work in script["WORK"]) == len(
        script["CELLS"]
    )
