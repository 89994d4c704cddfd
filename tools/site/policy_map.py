"""The figures of benchmarks/results/gil_policy_map.txt as tables of coloured cells."""

from __future__ import annotations

import math
import re
from pathlib import Path

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "gil_policy_map.txt"
PANELS = {
    (0, "stock"): "against stock, quiet machine",
    (2, "stock"): "against stock, beside two busy processes",
    (0, "interval"): "against sys.setswitchinterval(.0005), quiet machine",
    (2, "interval"): "against sys.setswitchinterval(.0005), beside two busy processes",
}
NAMES = {
    "8us": "8 us",
    "100us": "0.1 ms",
    "300us": "0.3 ms",
    "1ms": "1 ms",
    "5ms": "5 ms",
    "20ms": "20 ms",
    "50ms": "50 ms",
    "2ms-steps": "2 ms in six steps",
    "mixed": "0.1, 1 and 20 ms",
    "mixed-waits": "the same, two waits each",
}
WIDE, HIGH, LEFT, HEAD, GAP = 34, 22, 150, 58, 26

Cell = tuple[str, float, int, int]
"""Requests, load, computing threads, and busy processes on the same cores."""


def figures() -> dict[Cell, tuple[float, float]]:
    """The policy's mean slowdown as a part of stock's, and of the short interval's."""
    rows = re.findall(
        r"^(\S+) (\S+) (\d+) (\d+)  (\S+) (\S+)$", RESULTS.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {
        (work, float(load), int(computing), int(foreign)): (float(stock), float(interval))
        for work, load, computing, foreign, stock, interval in rows
    }


def shade(ratio: float) -> str:
    """Green the better, red the worse, white within a tenth of no difference."""
    strength = min(abs(math.log(ratio)) / math.log(30), 1.0) ** 0.6 if not 0.9 < ratio < 1.1 else 0.0
    red, green, blue = (22, 140, 90) if ratio < 1 else (200, 40, 40)
    mixed = (round(255 + (part - 255) * strength * 0.85) for part in (red, green, blue))
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def number(ratio: float) -> str:
    if ratio >= 0.995:
        return f"{ratio:.1f}"
    return f"{ratio:.{2 if ratio >= 0.095 else 3}f}".lstrip("0")


def panel(title: str, top: int, ratios: dict[tuple[str, float, int], float]) -> list[str]:
    columns = sorted({(computing, load) for _, load, computing in ratios})
    lowest = min(load for _, load in columns)
    drawn = [f'<text x="8" y="{top + 16}" font-weight="600">{title}</text>']
    for place, (computing, load) in enumerate(columns):
        x = LEFT + place * WIDE + (computing > 0) * 8 + (computing > 1) * 8
        if load == lowest:
            beside = "no computing thread" if computing == 0 else f"{computing} computing"
            drawn.append(f'<text x="{x}" y="{top + 33}">{beside}</text>')
        drawn.append(f'<text x="{x + WIDE / 2}" y="{top + HEAD - 6}" text-anchor="middle">{load:g}</text>')
        for line, work in enumerate(NAMES):
            ratio, y = ratios[work, load, computing], top + HEAD + line * HIGH
            drawn.append(
                f'<rect x="{x}" y="{y}" width="{WIDE - 1}" height="{HIGH - 1}" fill="{shade(ratio)}"/>'
                f'<text x="{x + WIDE / 2}" y="{y + 15}" text-anchor="middle">{number(ratio)}</text>'
            )
    for line, work in enumerate(NAMES):
        drawn.append(f'<text x="8" y="{top + HEAD + line * HIGH + 15}">{NAMES[work]}</text>')
    return drawn


def picture() -> str:
    """The drawing, as SVG."""
    found = figures()
    high = HEAD + len(NAMES) * HIGH + GAP
    width = LEFT + len({cell[1:3] for cell in found}) * WIDE + 24
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {len(PANELS) * high}" role="img"'
        " aria-label=\"Mean slowdown of requests under the policy, as a part of stock's and of a short"
        ' switch interval\'s, by request, load and computing threads" font-family="system-ui, sans-serif"'
        ' font-size="11" fill="#1f2937">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for place, ((foreign, rival), title) in enumerate(PANELS.items()):
        side = 0 if rival == "stock" else 1
        ratios = {cell[:3]: values[side] for cell, values in found.items() if cell[3] == foreign}
        drawn += panel(title, place * high, ratios)
    return "\n".join([*drawn, "</svg>", ""])
