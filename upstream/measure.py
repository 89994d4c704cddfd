"""Measures stock CPython, the patched ones, and fairlead on stock, in turns; writes results/GROUP.json.

    python upstream/measure.py [--only convoy-1,programs] [--rounds 5] [--quick]

No experiment of the lab: the variants are builds of one version, known by their digests, and a row has many
figures. The servers and the load are those of benchmarks/. Each sample is a process of its own; in each round
each variant is taken once for each row, and the order rotates from round to round. A group that was measured
to the end of these very builds is not measured again: remove its file for that.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from variants import BUILD, FAIRLEAD, ROOT, SERIES, digests, python_of, results

from fairlead.lab.catalogue.registry import DIRECTORY
from fairlead.lab.isolation.other_load import Meter

sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tools"), str(DIRECTORY)]

import arrivals  # noqa: E402
import own_pyperformance  # noqa: E402
from keep import origin  # noqa: E402
from processes import FIGURES, Way, answer, load, steps_per_ms, subject  # noqa: E402
from regrtest import sources  # noqa: E402

SCHEDULED = FAIRLEAD / "bin"
WAYS = {
    **{name: Way(python=str(python_of(name))) for name in SERIES},
    "fairlead": Way((str(SCHEDULED / "fairlead"), "run", "--"), python=str(SCHEDULED / "python")),
}
MODES = list(WAYS)
AGAIN = {**WAYS, "stock again": WAYS["stock"]}
"""The second stock says what the differences of one build to itself are."""
COMPUTING = (0, 1, 4)
PROGRAMS = ("nbody", "richards", "raytrace", "json_dumps", "regex_compile", "generators", "pathlib")
"""Of pyperformance's, one of each kind; the last makes system calls, and so drops the GIL."""
SQUARES = ("thread_start", "mutex", "semaphore")


class Row(NamedTuple):
    name: str
    take: Callable[[str], FIGURES]
    """One sample of a mode."""
    modes: Sequence[str]


def take(measure: Callable[[Way], FIGURES]) -> Callable[[str], FIGURES]:
    return lambda mode: measure(WAYS[mode])


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
    requests = arrivals.requests_of(arrivals.MIXTURE, 0.5)

    def one(cpu_threads: int) -> Row:
        def measure(way: Way) -> FIGURES:
            how = {"cpu_threads": cpu_threads, "rate": steps_per_ms(), "seconds": 1.5 * options.seconds}
            return arrivals.measured(way, requests, **how, seed=1)

        return Row(f"load 0.5, {threads(cpu_threads)}", take(measure), MODES)

    return [one(cpu_threads) for cpu_threads in COMPUTING]


def probed(way: Way, path: Path, **params: Any) -> Any:
    """What an experiment of the lab prints."""
    done = subprocess.run(
        [*way.command, way.python, path, json.dumps(params)],
        env={**os.environ, "PYTHONPATH": str(DIRECTORY)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def squares(options: Namespace) -> list[Row]:
    def one(square: str, n: int) -> Row:
        def measure(way: Way) -> FIGURES:
            found = probed(way, DIRECTORY / f"square_{square}.py", n=n, timeout_s=300)  # stock may need it
            return {"seconds": found["wall_s"]}

        return Row(f"{square}, n = {n}", take(measure), MODES)

    sizes = (20,) if options.quick else (50, 100, 200)
    return [one(square, n) for square in SQUARES for n in sizes]


def battle(options: Namespace) -> list[Row]:
    """A countdown of one length, in so many threads: what their turns cost."""
    scale, runs = (0.01, 1) if options.quick else (1.0, 3)

    def one(count: int) -> Row:
        def measure(way: Way) -> FIGURES:
            settings = {"work": "countdown", "threads": count, "scale": scale, "runs": runs}
            with subject("compute", way, **settings) as (process, _):
                return answer(process)

        return Row(f"countdown, {threads(count)}", take(measure), MODES)

    return [one(count) for count in (1, 2, 4, 8)]


def pair(options: Namespace) -> list[Row]:
    def measure(way: Way) -> FIGURES:
        found = probed(way, ROOT / "benchmarks" / "own_gil_pair.py", n=20 if options.quick else 200)
        return {"pair ns": found["details"]["metrics"]["pair_s"] * 1e9}

    return [Row("release and retake", take(measure), MODES)]


def programs(options: Namespace) -> list[Row]:
    """Programs of one thread, of pyperformance."""
    place = own_pyperformance.installed(BUILD / "site")
    values, loops = (1, 1) if options.quick else (10, None)

    def one(name: str) -> Row:
        def measure(mode: str) -> FIGURES:
            with packages():
                return {"seconds": own_pyperformance.quickest(name, place, AGAIN[mode], values, loops)}

        return Row(name, measure, list(AGAIN))

    return [one(name) for name in PROGRAMS]


@contextmanager
def packages() -> Iterator[None]:
    """Those of servers and programs are pure Python (or can be): one copy serves all variants."""
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
    "pair": pair,
    "programs": programs,
}


def accept() -> None:
    """The release that was built, which may be later than those that fairlead was tested on."""
    command = [python_of("stock"), "-c", "import platform; print(platform.python_version())"]
    release = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    os.environ["FAIRLEAD_UNTESTED"] = release


def measured(rows: Sequence[Row], rounds: int) -> list[dict[str, Any]]:
    samples, meter = [], Meter()
    for number in range(rounds):
        for row in rows:
            first = number % len(row.modes)
            for mode in [*row.modes[first:], *row.modes[:first]]:
                meter.begin()
                found = row.take(mode)
                foreign = meter.end()
                figures = {**found, "stolen by host": meter.stolen_share or 0.0}
                sample = {"round": number, "row": row.name, "mode": mode, "figures": figures}
                samples.append({**sample, "foreign": foreign})
    return samples


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a smoke run: figures mean nothing")
    parser.add_argument("--only", default=",".join(GROUPS))
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 1, 0.2
    where = results(quick=options.quick)
    where.mkdir(exist_ok=True)
    accept()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what was started, too
    builds = {**digests(), "fairlead": sources()}
    facts = {"builds": builds, "rounds": options.rounds, "seconds": options.seconds}
    for name in options.only.split(","):
        path = where / f"{name}.json"
        if path.exists() and facts.items() <= json.loads(path.read_text()).items():
            print(f"{name}: measured already")
            continue
        samples = measured(GROUPS[name](options), options.rounds)
        path.write_text(json.dumps({"origin": origin(""), **facts, "samples": samples}))
        print(f"{name}: {len(samples)} samples", flush=True)


if __name__ == "__main__":
    main()
