"""The documents as a whole: every page is in the navigation, every link leads somewhere, and what is
generated from the code (man pages, API, experiments, pictures) is
whole. ``make site``, which builds the site, is as strict.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from sources import tool

from fairlead.report.common import units

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), ROOT / "upstream" / "README.md", *DOCS.rglob("*.md")])
NAVIGATION = re.findall(r": ([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)

api, claims, cli, experiments, rooms = (
    tool(f"site/{name}.py") for name in ("api", "claims", "cli", "experiments", "rooms")
)


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```|`[^`\n]*`(?!\])|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Anchors of the headings that mean the same to GitHub and to mkdocs."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = [
        re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ (.*)$", text, re.M)
    ]
    github = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    ascii_ones = [unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode() for title in titles]
    mkdocs = {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in ascii_ones}
    return github & mkdocs


def test_every_page_is_in_the_navigation_once() -> None:
    pages = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")]
    generated = ["reference/cli.md"]
    generated += [f"reference/experiments/{family.id}.md" for family in experiments.known()]
    others = [page for page in NAVIGATION if not page.startswith(("project/", "reference/api/"))]
    assert sorted(others) == sorted([*pages, *generated])


def test_every_page_but_parts_of_a_whole_is_in_the_index() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"README.md"}
    parts = {page for page in pages if page.startswith("reference/pools/")}
    assert set(re.findall(r"\]\(([\w/.-]+\.md)\)", index)) == pages - parts


def test_every_public_module_has_its_page_of_the_api() -> None:
    assert [f"reference/api/{name}.md" for name in api.MODULES] == [
        page for page in NAVIGATION if page.startswith("reference/api/")
    ]


def test_links_and_anchors_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8"))):
            if "://" in link or link.startswith("mailto:"):
                continue
            target, _, anchor = link.partition("#")
            goal = page.parent / target if target else page
            if not goal.exists() or (anchor and anchor not in anchors(goal)):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []


def test_every_command_has_a_man_page_also_where_the_core_cannot_run(tmp_path: Path) -> None:
    script = ROOT / "tools" / "site" / "cli.py"
    subprocess.run([sys.executable, script, tmp_path], check=True)
    commands = [context.command_path.replace(" ", "-") for context in cli.contexts()]
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == cli.man_pages()
    assert {f"{name}.1" for name in commands} == set(cli.man_pages())


def test_the_page_of_the_command_names_every_option() -> None:
    page = cli.page()
    for context in cli.contexts():
        for parameter in context.command.get_params(context):
            if not getattr(parameter, "hidden", False) and parameter.param_type_name == "option":
                assert parameter.opts[0] in page


@pytest.mark.parametrize("module", api.MODULES)
def test_every_public_name_has_a_docstring_and_its_section(module: str) -> None:
    page = api.page(module)
    found = importlib.import_module(module)
    assert sorted(re.findall(r"^### (\w+) ", page, re.MULTILINE)) == sorted(found.__all__)
    values = {name: getattr(found, name) for name in found.__all__}
    assert [name for name, value in values.items() if api.documented(value) and not value.__doc__] == []


@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda claim: claim.file)
def test_pictures_of_the_first_page_show_what_their_results_say(claim: Any) -> None:
    drawn = claims.bars(claim)
    ours = [bar for bar in drawn if bar.name.startswith("fairlead")]
    assert len(drawn) > 1
    for bar in ours:  # shortest but for what takes more processes, or another interpreter
        others = [one for one in drawn if one.name not in (bar.name, "2 workers", "free-threaded")]
        assert all(bar.median < other.median for other in others)
    text = (ROOT / "benchmarks" / "results" / claim.file).read_text(encoding="utf-8")
    for bar in drawn:
        topic = claim.topics.get(bar.name, next(iter(claim.topics.values())))
        time = units.seconds(bar.median * claims.UNITS[claim.unit])
        place = f"{time} / " if bar.name in claim.topics else f"/ {time}"
        assert re.search(rf"^\w+ +{re.escape(topic)} .*{re.escape(place)}", text, re.MULTILINE)


def test_the_floors_of_the_architecture_are_those_of_the_sources() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for rooms_and_edges in (rooms.native(), rooms.package()):
        assert f"```\n{rooms.floors_text(*rooms_and_edges)}```\n" in text, "run tools/site/rooms.py"


def test_the_picture_of_readme_is_what_the_results_say() -> None:
    assert claims.PICTURE.read_text(encoding="utf-8") == claims.svg(), "run tools/site/claims.py"


def test_no_picture_is_made_of_figures_that_were_taken_in_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = claims.CLAIMS[0]
    printed = (claims.RESULTS / claim.file).read_text(encoding="utf-8")
    topic = claim.topics["stock"]
    (tmp_path / claim.file).write_text(re.sub(rf"^(settled|rough)(?= +{topic})", "open", printed, flags=re.M))
    monkeypatch.setattr(claims, "RESULTS", tmp_path)
    with pytest.raises(ValueError, match=f"{topic} is open"):
        claims.bars(claim)
