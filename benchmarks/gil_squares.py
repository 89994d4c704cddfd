"""Do n threads start, pass a lock and wake up in a time that grows like n?

    python benchmarks/gil_squares.py [--squares thread_start,mutex,semaphore] [--sizes 100,200,400,800]
                                     [--rounds 3] [--repeats 50]

The programs are the lab's experiments. Stock CPython, `sys.setswitchinterval(.0005)` and `fairlead run` take
turns at every size; the last goes on at the largest size until it has had `repeats` rounds, for its outliers.
"""

from __future__ import annotations

import math
from argparse import Namespace
from pathlib import Path
from statistics import linear_regression, median

from harness import FIGURES, Row, Sample, Target, answer, arguments, run, show, subject, ways

import fairlead.lab

EXPERIMENTS = Path(fairlead.lab.__file__).parent / "experiments"


def seconds(square: str, n: int, mode: str) -> FIGURES:
    path = str(EXPERIMENTS / f"square_{square}.py")
    with subject("square", ways()[mode], path=path, n=n) as (process, _):
        result = answer(process)
    if "wall_s" not in result:
        raise RuntimeError(f"{square}, n = {n}, {mode}: {result}")
    return {"seconds": result["wall_s"]}


def row(square: str, n: int, options: Namespace) -> Row:
    repeats = options.repeats if n == options.sizes[-1] else 0
    faster = Target("seconds", "fairlead", of="stock", at_most=1 / 30)
    return Row(
        f"{square}, n = {n}",
        lambda mode: seconds(square, n, mode),
        list(ways()),
        [faster] if repeats else [],
        rounds={"fairlead": max(options.rounds, repeats)},
    )


def times_of(samples: list[Sample], square: str, n: int, mode: str) -> list[float]:
    return [s.figures["seconds"] for s in samples if (s.row, s.mode) == (f"{square}, n = {n}", mode)]


def exponent(samples: list[Sample], square: str, mode: str, sizes: list[int]) -> float:
    """Of the power law through the medians."""
    times = [math.log(median(times_of(samples, square, n, mode))) for n in sizes]
    return linear_regression([math.log(n) for n in sizes], times).slope


def report(samples: list[Sample], squares: list[str], sizes: list[int]) -> None:
    for square in squares:
        if not all(times_of(samples, square, n, mode) for n in sizes for mode in ways()):
            continue
        print(f"\n{square}")
        for mode in ways():
            found = exponent(samples, square, mode, sizes)
            verdict = (
                "" if mode != "fairlead" else f"   must be <= 1.15: {'met' if found <= 1.15 else 'MISSED'}"
            )
            print(f"    exponent, {mode:<10} {found:.2f}{verdict}")
        times = times_of(samples, square, sizes[-1], "fairlead")
        middle, longest = median(times), max(times)
        verdict = "met" if longest <= 3 * middle else "MISSED"
        print(
            f"    {len(times)} runs at {sizes[-1]}: median {show(middle)} s, longest {show(longest)} s, "
            f"{longest / middle:.2f} x   must be <= 3: {verdict}"
        )


def main() -> None:
    parser = arguments(__doc__ or "", rounds=3)
    parser.add_argument("--squares", default="thread_start,mutex,semaphore")
    parser.add_argument("--sizes", default="100,200,400,800")
    parser.add_argument("--repeats", type=int, default=50)
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.rounds, options.repeats = "20,40", 1, 1
    options.sizes = [int(size) for size in options.sizes.split(",")]
    squares = options.squares.split(",")
    rows = [row(square, n, options) for square in squares for n in options.sizes]
    samples = run("Do n threads start, pass a lock and wake up in a time that grows like n?", rows, options)
    report(samples, squares, options.sizes)


if __name__ == "__main__":
    main()
