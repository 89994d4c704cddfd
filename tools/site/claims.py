"""The pictures of the site's first page: bars of the figures in benchmarks/results/."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
SHOWN = {
    "stock": "stock CPython",
    "interval": "switch interval of 0.5 ms",
    "fairlead": "fairlead run",
    "alone": "without the computing thread",
    "C call": "in a C call that keeps the GIL",
    "convoy": "has a convoy",
    "quick": "drops the GIL all the time",
    "1,000 threads": "has 1,000 threads",
    "fork": "forks all the time",
    "exec": "starts programs all the time",
}
"""What the benchmarks' modes are called here; others go by their own names."""


@dataclass(frozen=True)
class Claim:
    """A sentence, and the row of a results file that shows it."""

    text: str
    what: str
    """what the bars are, without the unit"""
    file: str
    block: str
    """the heading of the figures in the file"""
    row: str
    """its row; "" where each line of the block has one figure"""
    unit: str
    scale: float = 1.0
    """how many of the file's units are one of `unit`"""
    more: str = "explanation/measured.html"


@dataclass(frozen=True)
class Bar:
    name: str
    median: float
    least: float
    most: float


CLAIMS = (
    Claim(
        text="A server answers sooner beside a thread that computes",
        what="Starlette under uvicorn, 4 clients, 1 computing thread: 99th percentile of the answers",
        file="gil_servers.txt",
        block="Starlette under uvicorn, synchronous endpoint, 1 CPU threads, 4 clients",
        row="p99 us",
        unit="ms",
        scale=1000,
    ),
    Claim(
        text="Short requests wait less for long ones",
        what="requests of 0.1, 1 and 20 ms, 1 computing thread: 99th percentile of those of 1 ms",
        file="gil_open_loop.txt",
        block="load 0.5, 1 CPU threads, 0 foreign processes",
        row="1 ms p99, ms",
        unit="ms",
    ),
    Claim(
        text="Many threads start sooner",
        what="time to start 800 threads that compute",
        file="gil_squares.txt",
        block="thread_start, n = 800",
        row="seconds",
        unit="s",
    ),
    Claim(
        text="One lock for threads and tasks costs less than a lock for tasks alone",
        what="async with, in a task, when the lock is free",
        file="sync_pair.txt",
        block="async lock, async with",
        row="",
        unit="ns",
        more="explanation/compared.html",
    ),
    Claim(
        text="Liveness checks are answered while the process is busy",
        what="the slowest answer of the endpoint, of 10 a second, by what the process does",
        file="gil_endpoint.txt",
        block="answers, 10 a second",
        row="worst ms",
        unit="ms",
        more="reference/endpoint.html",
    ),
)


def number(text: str) -> float:
    return float(text.replace(",", ""))


def bars(claim: Claim) -> list[Bar]:
    """The claim's figures. The heading is that of the whole line: one with a mark of noise is another."""
    lines = (RESULTS / claim.file).read_text(encoding="utf-8").splitlines()
    start = lines.index(claim.block) + 1
    end = next((n for n in range(start, len(lines)) if not lines[n]), len(lines))
    rows = [re.split(r" {2,}", line.strip()) for line in lines[start:end]]
    if not claim.row:  # name, figure, ratio (least to most): of these the figure has no range
        found = [(name, *[number(figure.removesuffix(f" {claim.unit}"))] * 3) for name, figure, *_ in rows]
    else:
        cells = next(cells for label, *cells in rows if label == claim.row)
        matches = [re.fullmatch(r"(.+) ([\d.,]+) \[([\d.,]+)\.\.([\d.,]+)\]", cell) for cell in cells]
        found = [(m[1], number(m[2]), number(m[3]), number(m[4])) for m in matches if m is not None]
        assert len(found) == len(cells), f"{claim.file}: {cells}"
    return [Bar(name, *(figure / claim.scale for figure in figures)) for name, *figures in found]


def interpreter(claim: Claim) -> str:
    text = (RESULTS / claim.file).read_text(encoding="utf-8")
    found = re.search(r"^c?python ([\d.]+)", text, re.MULTILINE | re.IGNORECASE)
    assert found is not None, claim.file
    return f"CPython {found[1]}"


def short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def figure(claim: Claim) -> str:
    """The picture: a row of text and a bar for each figure, which a telephone has room for."""
    drawn = bars(claim)
    longest = max(bar.median for bar in drawn)
    compared = any(bar.name.startswith("fairlead") for bar in drawn)
    rows = []
    for bar in drawn:
        spread = "" if bar.least == bar.most else f" <small>[{short(bar.least)} to {short(bar.most)}]</small>"
        name = SHOWN.get(bar.name, bar.name)
        ours = "" if compared and not bar.name.startswith("fairlead") else " ours"
        figures = f"{short(bar.median)} {claim.unit}{spread}"
        length = f"{bar.median / longest:.3%}"
        rows += [
            f'<div class="row"><span>{escape(name)}</span><span>{figures}</span></div>',
            f'<div class="bar{ours}" data-figure="{bar.median:g}" style="width:{length}"></div>',
        ]
    return (
        f'<figure class="claim"><figcaption><strong>{escape(claim.text)}</strong><br>{escape(claim.what)}; '
        f'{interpreter(claim)} (<a href="{claim.more}">more</a>)</figcaption>{"".join(rows)}</figure>'
    )


def pictures() -> str:
    about = (
        "Two cores, medians [least to most]; shorter is better. "
        '<a href="explanation/measured.html">The scheduler, measured</a> says where it misses, too.'
    )
    return f'<div class="claims">{"".join(figure(claim) for claim in CLAIMS)}</div><p>{about}</p>'
