"""What mkdocs asks of this repository: what is generated, links out of docs/, and llms.txt."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import experiments
import policy_map
import results_schema
import rooms
import schedules
from api import MODULES
from api import page as api_page
from claims import pictures
from cli import page as cli_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PROJECT = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "SECURITY.md": "project/security.md",
    "CODE_OF_CONDUCT.md": "project/code_of_conduct.md",
    "upstream/README.md": "project/upstream.md",
}
"""Pages from outside docs/, and their places on the site."""
ORIGIN = {place: source for source, place in PROJECT.items()}

DRAWN = {
    "rooms-native": (rooms.native_picture, "boxes for the rooms of native/ and arrows for their calls"),
    "rooms-python": (
        rooms.package_picture,
        "boxes for the packages of src/fairlead and arrows for their imports",
    ),
    "policy-map": (
        policy_map.picture,
        "four tables of cells, against stock CPython and against a short switch interval, quiet and beside "
        "two busy processes: green but for white and some red where no thread computes",
    ),
    "thread-start-schedules": (
        schedules.picture,
        "turns on the GIL from left to right, threads from top to bottom: under CPython's schedulers the "
        "lines of blue get longer with every thread that was started, under fairlead's they do not",
    ),
}
"""Pictures that a comment in a page stands for: what draws each, and what it shows."""

_ordered: list[Page] = []


def on_files(files: Files, config: MkDocsConfig) -> Files:
    generated = {"reference/cli.md": cli_page(), "reference/lab.schema.json": results_schema.text()}
    generated |= {f"reference/api/{name}.md": api_page(name) for name in MODULES}
    generated |= {
        f"reference/experiments/{family.id}.md": experiments.page(family) for family in experiments.known()
    }
    generated |= {f"images/{name}.svg": draw() for name, (draw, _) in DRAWN.items()}
    generated |= {place: (ROOT / source).read_text(encoding="utf-8") for source, place in PROJECT.items()}
    for place, text in generated.items():
        files.append(File.generated(config, place, content=text))
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:  # noqa: ARG001 - mkdocs's
    _ordered[:] = nav.pages
    return nav


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Links lead to where a file of the repository stands on the site; to other files there is none."""
    place = page.file.src_uri
    here = ORIGIN.get(place, f"docs/{place}")

    def moved(match: re.Match[str]) -> str:
        target, hash_, anchor = match["target"].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        source = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        goal = PROJECT.get(source) or (source.removeprefix("docs/") if source.startswith("docs/") else None)
        if goal is None:
            return match["text"] if (ROOT / source).exists() else match[0]
        return f"[{match['text']}]({posixpath.relpath(goal, posixpath.dirname(place) or '.')}{hash_}{anchor})"

    # GitHub wants a bar in a table's code escaped, Markdown for Python shows the escape
    markdown = re.sub(r"`[^`\n]*`", lambda code: code[0].replace("\\|", "|"), markdown)
    # on the first page; the pictures' links are those of the site
    markdown = markdown.replace("<!-- pictures -->", pictures())
    markdown = re.sub(r"(?<!!)\[(?P<text>[^\]\[]*)\]\((?P<target>[^)\s]+)\)", moved, markdown)

    def drawn(match: re.Match[str]) -> str:
        image = posixpath.relpath(f"images/{match[1]}.svg", posixpath.dirname(place) or ".")
        return f"![{DRAWN[match[1]][1]}]({image})"

    return re.sub(r"<!-- drawn: ([\w-]+) -->", drawn, markdown)


def summary(text: str) -> str:
    """What the reader of a page gets, from its first paragraph."""
    body = re.sub(r"<!--.*?-->|^```.*?^```|^\[[^\]]*\]\([^)]*\)$", "", text, flags=re.DOTALL | re.MULTILINE)
    for part in re.split(r"\n\s*\n", body):
        line = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(part.split()))
        if line and not line.startswith(("#", "|", "!", "-", "* ", "1.")):
            return " ".join(re.split(r"(?<=[.])\s", line)[:2]).rstrip(":")
    return ""


def heading(page: Page) -> str:
    """The title of the page itself: navigation shortens it to what its group leaves unsaid."""
    found = re.search(r"^# (.*)", page.markdown or "", re.MULTILINE)
    return found[1] if found else str(page.title)


def on_post_build(config: MkDocsConfig) -> None:
    """llms.txt: the pages with a line each; llms-full.txt: their texts."""
    site = Path(config.site_dir)
    short = [f"# {config.site_name}\n", f"> {config.site_description}\n"]
    full = []
    section = None
    for page in _ordered:
        top = page.ancestors[-1].title if page.ancestors else "Start"
        if top != section:
            section = top
            short.append(f"\n## {section}\n")
        about = summary(page.markdown or "")
        short.append(f"- [{heading(page)}]({page.url})" + (f": {about}" if about else ""))
        full.append(f"<!-- {page.url} -->\n\n{page.markdown}")
    (site / "llms.txt").write_text("\n".join(short) + "\n", encoding="utf-8")
    (site / "llms-full.txt").write_text("\n\n".join(full) + "\n", encoding="utf-8")
