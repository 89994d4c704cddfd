"""Writes into docs/reference/other-programs.md the tables of what was measured, each between two comments.

    python examples/run.py NAME --json examples/results/NAME.json                          # for each program
    python examples/run.py NAME --foreign 2 --json examples/results/foreign-2/NAME.json    # for some
    python examples/run.py long-c-call --record | sed '/^$/q' > examples/results/long-c-call.txt
    python examples/page.py [--check]

With --check nothing is written; the exit status is 1 if the page is not what the results say.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from programs import PROGRAMS

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
from markdown_format import formatted  # noqa: E402

RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "reference" / "other-programs.md"
MODES = {
    "stock": "stock",
    "interval": "switch interval",
    "fairlead": "fairlead",
    "2 workers": "two worker processes under stock, where the server can start them",
}
UNHELPED = "long-c-call"
TABLE = re.compile(r"<!-- (\w+) -->.*?<!-- end -->", re.DOTALL)


def show(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}"


class Result:
    """The samples of one program."""

    def __init__(self, path: Path) -> None:
        read = json.loads(path.read_text())
        self.samples: list[dict[str, Any]] = read["samples"]
        self.versions: Mapping[str, str] = read["versions"]
        self.origin: str = read["origin"]
        self.title = PROGRAMS[path.stem].title

    def values(self, figure: str, mode: str) -> list[float]:
        return [s["figures"][figure] for s in self.samples if s["mode"] == mode and figure in s["figures"]]

    def classes(self) -> list[str]:
        """The prefixes of the kinds of requests; one, which is empty, where there is only one kind."""
        names = dict.fromkeys(name for sample in self.samples for name in sample["figures"])
        return [name.removesuffix("p50, ms") for name in names if name.endswith("p50, ms")]

    def cell(self, figure: str, *, worst: bool = False) -> str:
        parts = []
        for mode in MODES:
            if values := self.values(figure, mode):
                bracket = f"\u00a0[{show(max(values))}]" if worst else ""
                parts.append(f"{show(median(values))}{bracket}")
        return "\u00a0/ ".join(parts)  # a line breaks after a figure only

    def rows(self) -> Iterator[str]:
        share = self.cell("CPU share") if self.values("CPU share", "stock") else "-"
        for prefix in self.classes():
            what = f"{self.title}: {prefix.removesuffix(': ')}" if prefix else self.title
            latency = f"{self.cell(f'{prefix}p50, ms')} | {self.cell(f'{prefix}p99, ms', worst=True)}"
            yield f"| {what} | {latency} | {self.cell('requests/s')} | {share} | {self.noise()} |"

    def noise(self) -> str:
        """The highest share of the machine that other programs, and the host, took in any sample."""
        foreign = max((sample["foreign"] or 0.0) for sample in self.samples)
        return f"{foreign:.0%}"


def results(directory: Path) -> dict[str, Result]:
    return {name: Result(path) for name in PROGRAMS if (path := directory / f"{name}.json").exists()}


def table(found: Mapping[str, Result]) -> str:
    """The rows of the programs, and below them where they were measured."""
    head = "| program | p50, ms | p99, ms [worst round] | requests/s | computing | other load |"
    lines = [head, "|---" * 6 + "|", *(row for result in found.values() for row in result.rows())]
    origins: dict[str, list[str]] = {}
    for name, result in found.items():
        origins.setdefault(result.origin, []).append(name)
    for origin, names in sorted(origins.items(), key=lambda one: -len(one[1])):
        which = f"{', '.join(names)}: measured" if len(names) < len(found) / 2 else "Measured"
        lines.append(f"\n{which} on {origin}.")
    return "\n".join(lines)


def written(directory: Path) -> str:
    """The page, from the results in this directory."""
    quiet = results(directory)
    unhelped = quiet.pop(UNHELPED)
    some = next(iter(quiet.values()))
    rounds = len(some.values("requests/s", "stock"))
    turns = "1 round" if rounds == 1 else f"{rounds} rounds"
    versions = sorted(
        {f"{name}=={version}" for one in quiet.values() for name, version in one.versions.items()}
    )
    packages = textwrap.fill(" ".join(versions), 110, break_on_hyphens=False)
    said = (directory / f"{UNHELPED}.txt").read_text().strip()
    shown = [
        what for mode, what in MODES.items() if any(one.values("requests/s", mode) for one in quiet.values())
    ]
    tables = {
        "cell": f"Each cell is: {' / '.join(shown)}.",
        "where": f"{turns.capitalize()}, with\n\n```text\n{packages}\n```",
        "quiet": table(quiet),
        "foreign": table(results(directory / "foreign-2")),
        "unhelped": table({UNHELPED: unhelped}),
        "recording": f"```text\n{said}\n```",
    }

    def anew(match: re.Match[str]) -> str:
        return f"<!-- {match[1]} -->\n\n{tables[match[1]]}\n\n<!-- end -->"

    return formatted(TABLE.sub(anew, PAGE.read_text()))


def main() -> None:
    after = written(RESULTS)
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(after)
    elif PAGE.read_text() != after:
        raise SystemExit(f"{PAGE.name} is not what the results say: python examples/page.py")


if __name__ == "__main__":
    main()
