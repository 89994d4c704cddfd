"""Does ``fairlead advise`` tell the truth? Twenty programs, whose truth is measured here, each asked about.

    python benchmarks/advise_truth.py [--budget 12] [--rounds 3] [--times] [PROGRAM ...]

The truth of a program is how long it takes as it would be written: its calls in turn, or with each pool, its
start and its end counted, in new processes, in turns, the median of the rounds. Advice is right if what it
recommends takes at most 1.15 times as long as the fastest way that comes to the same results. Each time that
it predicts should be within 30 % of the true one. 19 of 20 have to be right, and none may change results: the
exit status says whether both hold. Other programs on the machine make a truth of their own: the load is
printed with it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from statistics import median

import fairlead
from fairlead.errors import AdviceError
from fairlead.lab.isolation import other_load, subprocess_runner
from fairlead.record.advice import NAMES, Advice, Candidate, Kind, in_workers

SUBJECTS = Path(__file__).parent / "subjects"
RIGHT = 1.15
"""How many times as long as the fastest the recommended way may take."""
NEAR = 0.30
"""How far a predicted time may be off, as a share of the true one."""
Place = tuple[Kind, int]


@dataclass(frozen=True)
class Program:
    name: str
    items: str
    """An expression with the names of the subject."""
    ways: tuple[Place, ...]
    """That are tried besides those which the advice has measured."""


ALONE: Place = ("sequential", 1)
POOLS: tuple[Place, ...] = (("threads", 2), ("interpreters", 2), ("processes", 2), ("processes", 4))
COMPUTES = (ALONE, *POOLS)
WAITS: tuple[Place, ...] = (ALONE, ("threads", 8), ("threads", 64), ("processes", 8))
LOOPS: tuple[Place, ...] = (ALONE, ("async", 32), ("async", 128))

PROGRAMS = (
    Program("primes", "[20_000] * 60", COMPUTES),
    Program("steps", "range(100_000, 102_000)", COMPUTES),
    Program("tailed", "range(300)", COMPUTES),
    Program("addresses", "range(200)", COMPUTES),
    Program("records", "range(120)", COMPUTES),
    Program("digest", "range(100)", COMPUTES),
    Program("ordered", "range(60)", COMPUTES),
    Program("blurred", "range(60)", COMPUTES),
    Program("scaled", "range(60)", COMPUTES),
    Program("fetched", "range(100)", WAITS),
    Program("asked", "range(200)", LOOPS),
    Program("flaky", "range(300)", WAITS),
    Program("mixed", "range(100)", (*COMPUTES, ("processes", 8))),
    Program("next_number", "range(10_000)", COMPUTES),
    Program("short_sum", "range(50)", COMPUTES),
    Program("predicted", "range(300)", COMPUTES),
    Program("remembered", "range(300)", COMPUTES),
    Program("counted", "parts()", COMPUTES),
    Program("expanded", "[400_000] * 40", COMPUTES),
    Program("summed", "range(200)", COMPUTES),
)


@dataclass
class Truth:
    """What a program takes in each way."""

    seconds: dict[Place, list[float]] = field(default_factory=dict)
    marks: dict[Place, set[str]] = field(default_factory=dict)
    foreign: list[float] = field(default_factory=list)

    def of(self, place: Place) -> float:
        return median(self.seconds[place])

    def is_right(self, place: Place) -> bool:
        """Whether it comes to the results of calls in turn."""
        return place in self.seconds and self.marks[place] == self.marks[ALONE]

    @property
    def best(self) -> Place:
        return min(filter(self.is_right, self.seconds), key=self.of)


def measure(program: Program, truth: Truth, places: Iterable[Place], backwards: bool) -> None:
    """One round."""
    ordered = list(dict.fromkeys(places))
    with subprocess_runner.adopting() as adopt:
        meter = other_load.Meter(adopt=adopt)
        for kind, workers in ordered[::-1] if backwards else ordered:
            if kind == "interpreters" and sys.version_info < (3, 13):
                continue
            meter.begin()
            words = [program.name, program.items, kind, str(workers)]
            command = [sys.executable, str(SUBJECTS / "advise_once.py"), *words]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
            if (foreign := meter.end()) is not None:
                truth.foreign.append(foreign)
            if done.returncode == 0:
                seconds, mark = json.loads(done.stdout)
                truth.seconds.setdefault((kind, workers), []).append(seconds)
                truth.marks.setdefault((kind, workers), set()).add(mark)


def ask(program: Program, budget: float) -> Advice:
    module = import_module("advise_programs")
    items = eval(program.items, vars(module))
    return fairlead.advise(getattr(module, program.name), items, budget=budget)


def judge(program: Program, budget: float, rounds: int, times: bool) -> tuple[bool, bool, int, int]:
    """Prints what was advised beside the truth; (right, changes results, times near, times predicted)."""
    truth = Truth()
    measure(program, truth, program.ways, backwards=False)
    begin = time.monotonic()
    try:
        advice = ask(program, budget)
    except AdviceError as refusal:
        print(f"{program.name:12} no advice: {refusal}", flush=True)
        return False, False, 0, 0
    took = time.monotonic() - begin
    predicted = [one for one in advice.candidates if one.status == "measured" and one.total_s is not None]
    predicted = [one for one in predicted if one.kind != "free-threaded"]
    places = [*program.ways, *((one.kind, one.workers) for one in predicted)]
    for number in range(1, rounds + 1):
        measure(program, truth, places, backwards=number % 2 == 1)
    pick: Place = advice.choice.kind, advice.choice.workers
    harmful = not truth.is_right(pick)
    right = not harmful and truth.of(pick) <= RIGHT * truth.of(truth.best)
    off = {one: _off(one, truth) for one in predicted if (one.kind, one.workers) in truth.seconds}
    near = sum(share <= NEAR for share in off.values())
    word = "CHANGES RESULTS" if harmful else "right" if right else "WRONG"
    loss = "not known" if advice.choice.loss is None else f"{advice.choice.loss:.0%}"
    print(
        f"{program.name:12} {word:5} {_name(pick):24} best {_name(truth.best):24} "
        f"x{truth.of(pick) / truth.of(truth.best):.2f}, expected loss {loss}; {near} of {len(off)} near; "
        f"advice {took:.0f} s, others took {max(one.foreign or 0.0 for one in predicted):.0%} of it and "
        f"{median(truth.foreign or [0.0]):.0%} of the truth",
        flush=True,
    )
    for one, share in off.items() if times else ():
        assert one.total_s is not None
        place: Place = one.kind, one.workers
        true = truth.of(place)
        shown = f"{one.total_s:8.3f} s said, {true:8.3f} s true, x{one.total_s / true:.2f}"
        print(f"    {_name(place):24} {shown}{'' if share <= NEAR else '  OFF'}")
    return right, harmful, near, len(off)


def _off(one: Candidate, truth: Truth) -> float:
    assert one.total_s is not None
    true = truth.of((one.kind, one.workers))
    return max(one.total_s / true, true / one.total_s) - 1


def _name(place: Place) -> str:
    kind, workers = place
    return NAMES[kind] if kind == "sequential" else f"{NAMES[kind]}, {in_workers(workers)}"


def serve() -> None:
    """Answers after 20 ms, until standard input ends."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        await asyncio.sleep(0.02)
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        server.close()
        os._exit(0)

    asyncio.run(main())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="all of them")
    parser.add_argument("--budget", type=float, default=12.0, help="seconds for each")
    parser.add_argument("--rounds", type=int, default=3, help="of the truth, after the advice")
    parser.add_argument("--times", action="store_true", help="print each predicted time beside the true one")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    sys.path.insert(0, str(SUBJECTS))
    names = [program.name for program in PROGRAMS]
    if unknown := set(asked.programs) - set(names):
        parser.error(f"there is no program {', '.join(unknown)}; there are {', '.join(names)}")
    programs = [one for one in PROGRAMS if not asked.programs or one.name in asked.programs]
    if asked.serve:
        serve()
        return 0
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        os.environ["FAIRLEAD_TRUTH_PORT"] = server.stdout.readline().strip()
        print(f"CPython {platform.python_version()}, {asked.budget:g} s each")
        found = [judge(program, asked.budget, asked.rounds, asked.times) for program in programs]
    finally:
        server.stdin.close()
        server.wait()
    right, harmful, near, predicted = (sum(column) for column in zip(*found, strict=True))
    print(
        f"{right} of {len(programs)} right, {harmful} that change results; "
        f"{near} of {predicted} predicted times within {NEAR:.0%}"
    )
    return 0 if harmful == 0 and right >= len(programs) - len(programs) // 20 else 1


if __name__ == "__main__":
    sys.exit(main())
