"""Measures stock CPython, the patched ones, and fairlead on stock, in turns; writes results/GROUP.json.

    python upstream/measure.py [--only convoy-1,single] [--rounds 3] [--quick]

The harness, the servers and the load are those of benchmarks/. Each sample is a process of its own; in each
round each variant is taken once for each row, and the order rotates from round to round.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from variants import BUILD, HERE, ROOT, python_of

sys.path.insert(0, str(ROOT / "benchmarks"))

from gil_cpu_threads import WORK
from gil_open_loop import Cell
from gil_squares import EXPERIMENTS
from harness import FIGURES, MachineShares, Row, Way, answer, arguments, load, run, subject

RESULTS = HERE / "results"
SCHEDULED = BUILD / "v-stock" / "bin"
WAYS = {
    **{name: Way(python=str(python_of(name))) for name in ("stock", "a", "b", "ab")},
    "fairlead": Way((str(SCHEDULED / "fairlead"), "run", "--"), python=str(SCHEDULED / "python")),
}
MODES = list(WAYS)
COMPUTING = (0, 1, 4)
SQUARES = ("thread_start", "mutex", "semaphore")


def take(measure: Callable[[Way], FIGURES]) -> Callable[[str], FIGURES]:
    def one(mode: str) -> FIGURES:
        shares = MachineShares()
        figures = measure(WAYS[mode])
        return {**figures, "stolen by host": shares.figures()["stolen by host"]}

    return one


def threads(count: int) -> str:
    return f"{count} CPU thread{'s' * (count != 1)}"


def convoy(clients: int) -> Callable[[Namespace], list[Row]]:
    def rows(options: Namespace) -> list[Row]:
        def one(cpu_threads: int) -> Row:
            def measure(way: Way) -> FIGURES:
                with subject("echo_server", way, cpu_threads=cpu_threads) as (_, facts):
                    return load(facts, clients=clients, seconds=options.seconds, warm_up=options.seconds / 3)

            return Row(f"{clients} clients, {threads(cpu_threads)}", take(measure), MODES)

        return [one(cpu_threads) for cpu_threads in COMPUTING]

    return rows


def open_loop(options: Namespace) -> list[Row]:
    settings = Namespace(
        mixture={0.1: 45.0, 1.0: 40.0, 20.0: 15.0}, seed=1, foreign=0, seconds=1.5 * options.seconds
    )
    cells = [Cell(0.5, cpu_threads, WAYS, settings) for cpu_threads in COMPUTING]
    return [Row(f"load 0.5, {threads(cell.cpu_threads)}", cell.take, MODES) for cell in cells]


def squares(options: Namespace) -> list[Row]:
    def one(square: str, n: int) -> Row:
        path = str(EXPERIMENTS / f"square_{square}.py")

        def measure(way: Way) -> FIGURES:
            with subject("square", way, path=path, n=n) as (process, _):
                return {"seconds": answer(process)["wall_s"]}

        return Row(f"{square}, n = {n}", take(measure), MODES)

    sizes = (20,) if options.quick else (50, 100, 200)
    return [one(square, n) for square in SQUARES for n in sizes]


def battle(options: Namespace) -> list[Row]:
    """A countdown of one length, in so many threads: what their turns cost."""
    return [compute("countdown", count, options) for count in (1, 2, 4, 8)]


def compute(work: str, count: int, options: Namespace) -> Row:
    scale, runs = (0.01, 1) if options.quick else (1.0, 3)

    def measure(way: Way) -> FIGURES:
        with subject("compute", way, work=work, threads=count, scale=scale, runs=runs) as (process, _):
            return answer(process)

    return Row(f"countdown, {threads(count)}" if work == "countdown" else work, take(measure), MODES)


def single(options: Namespace) -> list[Row]:
    def pair(way: Way) -> FIGURES:
        with subject("pair", way, hooks="stock", calls=2000, runs=20 if options.quick else 200) as (
            process,
            _,
        ):
            return answer(process)

    return [*(compute(work, 1, options) for work in WORK), Row("release and retake", take(pair), MODES)]


@contextmanager
def packages() -> Iterator[None]:
    """The servers' packages are pure Python (or can be): one copy serves all variants."""
    os.environ["PYTHONPATH"] = str(BUILD / "site")
    try:
        yield
    finally:
        del os.environ["PYTHONPATH"]


def servers(options: Namespace) -> list[Row]:
    def waitress(way: Way) -> FIGURES:
        with packages(), subject("http_server", way, cpu_threads=1, kind="waitress") as (_, facts):
            return load(facts, clients=4, seconds=options.seconds, warm_up=options.seconds / 2, http="/")

    def streams(way: Way) -> FIGURES:
        with subject("asyncio_server", way, cpu_threads=1) as (_, facts):
            return load(facts, clients=4, seconds=options.seconds, warm_up=options.seconds / 2)

    def timer(way: Way) -> FIGURES:
        with subject("asyncio_timer", way, cpu_threads=1, seconds=options.seconds) as (process, _):
            return answer(process)

    found = {
        "Flask under waitress": waitress,
        "asyncio echo server": streams,
        "asyncio timer, lateness": timer,
    }
    return [Row(f"{name}, 1 CPU thread", take(measure), MODES) for name, measure in found.items()]


GROUPS = {
    "convoy-1": convoy(1),
    "convoy-16": convoy(16),
    "convoy-64": convoy(64),
    "open-loop": open_loop,
    "squares": squares,
    "battle": battle,
    "servers": servers,
    "single": single,
}


def main() -> None:
    parser = arguments(__doc__ or "", rounds=3)
    parser.add_argument("--only", default=",".join(GROUPS))
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.quick:
        options.seconds = 0.2
    options.results.mkdir(exist_ok=True)
    for name in options.only.split(","):
        options.json = options.results / f"{name}.json"
        run(f"upstream: {name}", GROUPS[name](options), options)


if __name__ == "__main__":
    main()
