"""Puts kept outputs of benchmarks into the documents, and says where each was measured.

    python tools/figures.py [--check]

* A sentence that begins with "Measured on" and ends with files of benchmarks/results in parentheses is
  written anew from what these files begin with: machine, kernel, date, commit, interpreter.
* Between "<!-- kept: FILE -->" and "<!-- end -->" comes the whole of such a file, with such a sentence.

With --check nothing is written; the exit status is 1 if a page has something else.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from markdown_format import formatted

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FILE = r"`benchmarks/results/(\w+\.txt)`"
SENTENCE = re.compile(rf"Measured on (?:(?!\n\n)(?!Measured on ).)*?\(({FILE}(?:,\s{FILE})*)\)\.", re.DOTALL)
KEPT = re.compile(r"<!-- kept: (\w+\.txt) -->.*?<!-- end -->", re.DOTALL)


def origin(name: str) -> str:
    """What a kept result says of itself: "2 cores of AMD EPYC; Linux 6.18; 2026-11-28; commit 4ed3e628"."""
    if not (RESULTS / name).exists():
        return "X"  # still to be measured
    text = (RESULTS / name).read_text(encoding="utf-8")
    first = text.partition("\n")[0]
    python = re.search(r"^c?python ([\d.]+\w*)", text, re.MULTILINE | re.IGNORECASE)
    return f"{first}; CPython {python[1]}" if python and "CPython" not in first else first


def sentence(*names: str) -> str:
    origins = {origin(name) for name in names}
    if len(origins) > 1:
        raise SystemExit(f"{', '.join(names)} were not measured together: give each a sentence of its own")
    return f"Measured on {origins.pop()} ({', '.join(f'`benchmarks/results/{name}`' for name in names)})."


def kept(name: str) -> str:
    """What stands between the two comments: the command, and tables as they are, other outputs as text, of a
    run of the lab the claims."""
    if not (RESULTS / name).exists():
        return "No output is kept yet: run the command."
    shown = (RESULTS / name).read_text(encoding="utf-8").partition("\n")[2].strip()
    command, _, rest = shown.partition("\n\n") if shown.startswith("$ ") else ("", "", shown)
    rest = rest.rpartition("\n\n")[2] if "\nverdict" in rest else rest
    begin = f"`{command[2:]}`:\n\n" if command else ""
    block = rest if "\n|" in rest else f"```text\n{rest}\n```"
    return f"{begin}{block}\n\n{sentence(name)}"


def anew(page: str) -> str:
    """The page with what the files say now."""
    written = SENTENCE.sub(lambda found: sentence(*re.findall(FILE, found[1])), page)
    written = KEPT.sub(
        lambda found: f"<!-- kept: {found[1]} -->\n\n{kept(found[1])}\n\n<!-- end -->", written
    )
    return formatted(written) if written.split() != page.split() else page


def main() -> None:
    for path in PAGES:
        before = path.read_text(encoding="utf-8")
        if (after := anew(before)) != before:
            if "--check" in sys.argv[1:]:
                raise SystemExit(f"{path.relative_to(ROOT)} has other figures: python tools/figures.py")
            path.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
