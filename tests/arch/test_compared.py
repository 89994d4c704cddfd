"""Pages with figures show what benchmarks printed, and no figure that was typed."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
MEASURED_PAGES = ("explanation/measured.md", "explanation/beside.md")
BLOCKS = ("explanation/compared.md", "explanation/how-exact.md", "reference/endpoint.md")
PAGES = [(ROOT / "docs" / name).read_text() for name in MEASURED_PAGES]
MEASURED = "\n".join(PAGES)
FILES = sorted(set(re.findall(r"`benchmarks/results/(gil_\w+\.txt)`", MEASURED)))
BOUND = {"at most": "<=", "at least": ">="}


@pytest.fixture(scope="module")
def figures() -> Any:
    """tools/figures.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        return SimpleNamespace(**runpy.run_path(str(ROOT / "tools" / "figures.py")))


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_of_the_page_is_in_a_result_that_is_named_below_it(name: str, figures: Any) -> None:
    page = (ROOT / "docs" / name).read_text()
    lost = []
    for found in re.finditer(r"```text\n(.*?)```", page, re.S):
        section = page[found.end() :].partition("\n## ")[0]
        files = re.findall(figures.FILE, "".join(m[0] for m in figures.SENTENCE.finditer(section)))
        if not any(found[1] in (RESULTS / file).read_text() for file in files):
            lost.append(found[1])
    assert "```text" in page
    assert lost == []


def test_what_servers_lose_to_each_tool_is_in_the_result_of_the_comparison() -> None:
    page = (ROOT / "docs" / "explanation" / "how-exact.md").read_text()
    rows = re.findall(r"^\| [^|]+ \|(?: [\d.]+ \[[\d. ]+\] \|)+$", page, re.MULTILINE)
    kept = (RESULTS / "judge_peers.txt").read_text().splitlines()
    assert len(rows) == 10
    assert set(rows) <= set(kept)


def test_every_page_says_of_its_figures_where_they_were_measured(figures: Any) -> None:
    pages = {path.relative_to(ROOT): path.read_text() for path in figures.PAGES}
    stale = [path for path, page in pages.items() if figures.anew(page) != page]
    assert stale == [], "python tools/figures.py"
    for name in (*MEASURED_PAGES, *BLOCKS, "explanation/judge.md"):
        page = pages[Path("docs", name)]
        assert re.search(figures.FILE, figures.SENTENCE.sub("", page)) is None, (
            f"{name}: not below the figures"
        )
    for section in MEASURED.split("\n## ")[1:]:
        heading = section.partition("\n")[0]
        assert figures.SENTENCE.search(section) or heading == "Where it misses its aims", heading


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
    others = ("program", "figure", "machine", "CPython", row["figure"])
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
        if f"ython {row.get('CPython', '')}" not in (RESULTS / file).read_text():
            continue
        for heading, lines in blocks(file):
            text = lines if row["figure"] != "exponent" else [" / ".join(lines)]
            if heading.startswith(row["program"]) and any(
                all(one in line for one in wanted) for line in text
            ):
                return True
    return False


def test_each_figure_of_the_measured_pages_is_in_the_result_that_its_section_names() -> None:
    assert all(len(page.splitlines()) <= 200 for page in PAGES)
    assert len(list(rows())) > 40
    assert [row for files, row in rows() if not shown(row, files)] == []


def test_each_number_in_the_prose_of_the_measured_pages_is_in_a_result_that_they_name() -> None:
    prose = re.sub(r"`[^`]*`|^\|.*$|\]\([^)]*\)|CPython [\d.]+", "", MEASURED, flags=re.MULTILINE)
    number = re.compile(r"(?<!\w)(?<!\d\.)\d+(?:[.,]\d+)*")
    known = {found for file in FILES for found in number.findall((RESULTS / file).read_text())}
    assert set(number.findall(prose)) - known == set()


def test_the_server_of_readme_is_that_of_the_kept_result() -> None:
    kept = json.loads((ROOT / "examples" / "results" / "gunicorn-flask.json").read_text())
    readme = (ROOT / "README.md").read_text()
    rows = re.findall(
        r"^\| (?:.*gunicorn.*|the same with .*) \| ([\d.]+) \| ([\d.]+) \|$", readme, re.MULTILINE
    )
    for mode, row in zip(("stock", "interval", "fairlead"), rows, strict=True):
        for figure, shown in zip(("p50, ms", "p99, ms"), row, strict=True):
            value = median(one["figures"][figure] for one in kept["samples"] if one["mode"] == mode)
            assert float(shown) == float(f"{value:.2g}"), (mode, figure)
    assert f"measured on {kept['origin']}." in " ".join(readme.split())


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
