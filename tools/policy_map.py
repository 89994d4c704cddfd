"""Draw what the GIL's scheduling policy does to requests, over a matrix of servers, as the simulator has it.

    tools/policy_map.py OUT.svg [--seconds 10] [--seeds 1,2]

Each cell is one server of benchmarks/gil_policy_matrix.py: its requests, its load, and the computing threads
beside it, on two cores. The number is the mean slowdown of its requests (latency / the request's own GIL
time) under the policy, as a part of what it is under stock CPython: .1 is ten times better. The geometric
mean over the seeds. docs/images/policy-map.svg is made by this.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import fmean

from fairlead.gil import simulation as sim

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from gil_policy_matrix import WORK, three_ways

LOADS = (0.1, 0.3, 0.5, 0.7, 0.8)
COMPUTING = (0, 1, 4)
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


def run(job: tuple[Cell, int, float]) -> tuple[float, float]:
    """Ours / stock, and ours / the short interval, of one cell and seed."""
    (work, load, computing, foreign), seed, seconds = job
    kinds, more = WORK[work]
    program = sim.open_server(kinds, load=load, cpu_threads=computing, cpu_processes=foreign, **more)
    options = argparse.Namespace(seed=seed, seconds=seconds)
    stock, interval, ours = (found["slowdown"] for found in three_ways(program, kinds, options, 2))
    return ours / stock, ours / interval


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
    columns = list(itertools.product(COMPUTING, LOADS))
    drawn = [f'<text x="8" y="{top + 16}" font-weight="600">{title}</text>']
    for place, (computing, load) in enumerate(columns):
        x = LEFT + place * WIDE + (computing > 0) * 8 + (computing > 1) * 8
        if load == LOADS[0]:
            beside = "no computing thread" if computing == 0 else f"{computing} computing"
            drawn.append(f'<text x="{x}" y="{top + 33}">{beside}</text>')
        drawn.append(f'<text x="{x + WIDE / 2}" y="{top + HEAD - 6}" text-anchor="middle">{load:g}</text>')
        for line, work in enumerate(WORK):
            ratio, y = ratios[work, load, computing], top + HEAD + line * HIGH
            drawn.append(
                f'<rect x="{x}" y="{y}" width="{WIDE - 1}" height="{HIGH - 1}" fill="{shade(ratio)}"/>'
                f'<text x="{x + WIDE / 2}" y="{y + 15}" text-anchor="middle">{number(ratio)}</text>'
            )
    for line, work in enumerate(WORK):
        drawn.append(f'<text x="8" y="{top + HEAD + line * HIGH + 15}">{NAMES[work]}</text>')
    return drawn


def picture(found: dict[Cell, tuple[float, float]]) -> str:
    """The drawing, as SVG."""
    high = HEAD + len(WORK) * HIGH + GAP
    width = LEFT + len(COMPUTING) * len(LOADS) * WIDE + 24
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seeds", default="1,2")
    options = parser.parse_args()
    seeds = list(map(int, options.seeds.split(",")))
    foreigns = sorted({foreign for foreign, _ in PANELS})
    cells: list[Cell] = list(itertools.product(WORK, LOADS, COMPUTING, foreigns))
    jobs = [(cell, seed, options.seconds) for cell in cells for seed in seeds]
    found: dict[Cell, list[tuple[float, float]]] = {cell: [] for cell in cells}
    with ProcessPoolExecutor() as pool:
        for (cell, _, _), values in zip(jobs, pool.map(run, jobs, chunksize=4), strict=True):
            found[cell].append(values)
    means = {
        cell: (
            math.exp(fmean(math.log(one) for one, _ in values)),
            math.exp(fmean(math.log(other) for _, other in values)),
        )
        for cell, values in found.items()
    }
    options.out.write_text(picture(means))
    for side, rival in enumerate(("stock", "switch interval .5 ms")):
        for foreign in foreigns:
            ratios = [values[side] for cell, values in means.items() if cell[3] == foreign]
            worse = sum(ratio > 1.1 for ratio in ratios)
            mean = math.exp(fmean(map(math.log, ratios)))
            print(
                f"{rival}, {foreign} busy processes: geometric mean {mean:.2f},"
                f" worst {max(ratios):.2f}, above 1.1 in {worse} of {len(ratios)} cells"
            )


if __name__ == "__main__":
    main()
