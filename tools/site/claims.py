"""The pictures of the site's first page and of README: bars of the figures in benchmarks/results/.

python tools/site/claims.py      writes docs/images/claims.svg, which README shows
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import wrap

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "claims.svg"
ABOUT = (
    "Two cores, medians, and how many times fairlead's or the aim's [99 % interval]; shorter is better. "
    "benchmarks/results has machine, date and commit of each."
)
WIDTH, LABEL, LONGEST = 980, 196, 130
"""of the picture for README, of the names of its bars, and of the longest bar"""
STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.claim { font-size: 13px; font-weight: 600 }
.what { font-size: 11px; fill: #59636e }
.ground { fill: #ffffff } .bar { fill: #8c959f } .ours { fill: #00897b }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .what { fill: #9198a1 }
.ground { fill: #0d1117 } .bar { fill: #656c76 } .ours { fill: #26a69a }
}
</style>"""
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
SHOWN = {
    "stock": "stock CPython",
    "interval": "switch interval of 0.5 ms",
    "fairlead": "fairlead run",
    "2 workers": "two worker processes",
    "free-threaded": "CPython without a GIL",
    "c-call": "in a C call that keeps the GIL",
    "convoy": "has a convoy",
    "quick": "drops the GIL all the time",
    "threads": "has 1,000 threads",
}
"""What the benchmarks' modes are called here; others go by their own names."""
AGAINST = {"stock": "stock", "interval": "interval", "2 workers": "2 workers", "free-threaded": "no GIL"}
"""What is compared with `fairlead run`, and how the topics of these claims end."""
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Claim:
    """A sentence, and the claims of a run of the lab that show it."""

    text: str
    what: str
    """what the bars are, without the unit"""
    file: str
    unit: str
    topics: dict[str, str]
    """of each bar but ours, the claim with its time and then ours; the first must be settled"""
    ours: str = "fairlead"
    more: str = "explanation/measured.html"


@dataclass(frozen=True)
class Bar:
    name: str
    median: float
    spread: str


CLAIMS = (
    Claim(
        text="A server answers sooner beside a thread that computes",
        what="threaded echo server, 1 client, 1 computing thread: 99th percentile of the answers",
        file="own_servers.txt",
        topics={name: f"echo-1-1, {end}" for name, end in AGAINST.items()},
        unit="ms",
    ),
    Claim(
        text="Many threads start sooner",
        what="time to start 800 threads that compute",
        file="square_scheduled.txt",
        topics={"stock": "starts, GIL scheduled"},
        unit="s",
    ),
    Claim(
        text="One lock for threads and tasks costs less than a lock for tasks alone",
        what="async with, in a task, when the lock is free",
        file="own_pair.txt",
        topics={"asyncio.Lock": "async with Lock", "aiologic.Lock": "async with aiologic's"},
        ours="fairlead Lock",
        unit="ns",
        more="explanation/compared.html",
    ),
    Claim(
        text="Liveness checks are answered while the process is busy",
        what="the slowest answer of the endpoint, of 10 a second, by what the process does",
        file="own_endpoint.txt",
        topics={name: name for name in ("c-call", "convoy", "quick", "threads")},
        ours="the aim",
        unit="ms",
        more="reference/endpoint.html",
    ),
)


def bars(claim: Claim) -> list[Bar]:
    """The figures of lines such as "settled  async with Lock  x3.22 [3.01, 3.44]  524 ns / 163 ns"."""
    text = (RESULTS / claim.file).read_text(encoding="utf-8")
    figures = r"(x[\d.]+(?: \[[^]]+\]| or x[\d.]+)?) +([\d.]+) (\w+) / ([\d.]+) (\w+)"
    drawn, ours = [], 0.0
    for name, topic in claim.topics.items():
        found = re.search(rf"^(\w+) +{re.escape(topic)} +{figures}", text, re.MULTILINE)
        assert found is not None, f"{claim.file}: no claim {topic}"
        verdict, ratio = found[1], found[2]
        times = [float(found[at]) * UNITS[found[at + 1]] / UNITS[claim.unit] for at in (3, 5)]
        if not drawn and verdict == "open":
            raise ValueError(f"{claim.file}: {topic} is open")
        ours = ours or times[1]
        drawn.append(Bar(name, times[0], f" {ratio}"))
    return [*drawn, Bar(claim.ours, ours, "")]


def interpreter(claim: Claim) -> str:
    text = (RESULTS / claim.file).read_text(encoding="utf-8")
    found = re.search(r"Python (\d[\d.]*\w*)", text)
    assert found is not None, claim.file
    return f"CPython {found[1]}"


def short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


@dataclass(frozen=True)
class Row:
    """A bar as both pictures draw it."""

    name: str
    figure: float
    length: float
    """of the longest bar's"""
    ours: bool
    text: str
    spread: str


def rows(claim: Claim) -> list[Row]:
    drawn = bars(claim)
    longest = max(bar.median for bar in drawn)
    compared = any(bar.name.startswith("fairlead") for bar in drawn)
    return [
        Row(
            name=SHOWN.get(bar.name, bar.name),
            figure=bar.median,
            length=bar.median / longest,
            ours=not compared or bar.name.startswith("fairlead"),
            text=f"{short(bar.median)} {claim.unit}",
            spread=bar.spread,
        )
        for bar in drawn
    ]


def figure(claim: Claim) -> str:
    """The picture on the site: a row of text and a bar for each figure, which a telephone has room for."""
    lines = []
    for row in rows(claim):
        spread = row.spread and f" <small>{row.spread.strip()}</small>"
        ours = " ours" if row.ours else ""
        lines += [
            f'<div class="row"><span>{escape(row.name)}</span><span>{row.text}{spread}</span></div>',
            f'<div class="bar{ours}" data-figure="{row.figure:g}" style="width:{row.length:.3%}"></div>',
        ]
    return (
        f'<figure class="claim"><figcaption><strong>{escape(claim.text)}</strong><br>{escape(claim.what)}; '
        f'{interpreter(claim)} (<a href="{claim.more}">more</a>)</figcaption>{"".join(lines)}</figure>'
    )


def pictures() -> str:
    about = (
        f'{ABOUT} <a href="explanation/measured.html">The scheduler, measured</a> says where it misses, too.'
    )
    return f'<div class="claims">{"".join(figure(claim) for claim in CLAIMS)}</div><p>{about}</p>'


def column(x: int, claims: Sequence[Claim]) -> tuple[list[str], int]:
    """The claims below each other as SVG, and where the last one ends."""
    drawn, y = [], 8
    for claim in claims:
        y += 8
        heading = [("claim", line) for line in wrap(claim.text, 56)]
        heading += [("what", line) for line in wrap(f"{claim.what}; {interpreter(claim)}", 74)]
        for kind, line in heading:
            y += 16
            drawn.append(f'<text x="{x}" y="{y}" class="{kind}">{escape(line)}</text>')
        for row in rows(claim):
            y += 18
            long = max(row.length * LONGEST, 2)
            drawn.append(
                f'<text x="{x}" y="{y}">{escape(row.name)}</text>'
                f'<rect x="{x + LABEL}" y="{y - 10}" width="{long:.1f}" height="11"'
                f' class="{"ours" if row.ours else "bar"}"/>'
                f'<text x="{x + LABEL + long + 6:.1f}" y="{y}">{row.text}'
                f'<tspan class="what">{row.spread}</tspan></text>'
            )
    return drawn, y


def svg() -> str:
    """The picture in README, where no site is built: light or dark as the reader's system is."""
    left, left_end = column(16, CLAIMS[:3])
    right, right_end = column(WIDTH // 2 + 8, CLAIMS[3:])
    end = max(left_end, right_end) + 28
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {end + 14}" role="img">',
        f"<title>{escape('; '.join(claim.text for claim in CLAIMS))}</title>",
        STYLE,
        '<rect width="100%" height="100%" class="ground"/>',
        *left,
        *right,
        f'<text x="16" y="{end}" class="what">{escape(ABOUT)}</text>',
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(svg(), encoding="utf-8")
