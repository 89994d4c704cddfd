"""Does ``fairlead advise`` give the right answer? Forty programs of which it is known, each asked about.

    python benchmarks/advise_truth.py [--budget 12] [--others] [PROGRAM ...]

Prints what was advised, what would be right, and why that is known. At least 19 of the first 20 have to be
right, and 18 of the second, which --others asks about; and no advice may be one that changes results: the
exit status says whether both hold. Needs at least two cores, and a machine that is left alone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from harness import origin

import fairlead
from fairlead.errors import AdviceError, UsageError
from fairlead.record.advice import Advice, headline

SUBJECTS = Path(__file__).parent / "subjects"
OWN_GIL = frozenset({"processes", "interpreters"})
THREADS = frozenset({"threads"})
ALONE = frozenset({"sequential"})
LOOP = frozenset({"async"})


MANY = 1200
"""Calls of some milliseconds: so many that processes are faster whatever their start takes."""


@dataclass(frozen=True)
class Program:
    name: str
    items: Iterable[Any] | str
    right: frozenset[str]
    why: str
    harmful: frozenset[str] = frozenset()
    """Kinds that would change what comes out."""
    requests: int | None = None
    module: str = "advise_programs"


PROGRAMS = (
    Program("primes", [20_000] * 150, OWN_GIL, "computes in Python: one GIL lets one thread at a time"),
    Program(
        "mandelbrot", [row % 200 for row in range(1000)], OWN_GIL, "the same, with calls of different length"
    ),
    Program("addresses", range(200), OWN_GIL, "re keeps the GIL"),
    Program("records", range(400), OWN_GIL, "json keeps the GIL, and its results are small"),
    Program("digest", range(150), THREADS, "hashlib lets go of the GIL for large data; threads send nothing"),
    Program("compressed", range(60), THREADS, "so does zlib"),
    Program(
        "ordered", range(60), THREADS, "numpy lets go of it to draw and to sort; numpy refuses interpreters"
    ),
    Program("blurred", range(60), THREADS, "and to compute with large arrays"),
    Program(
        "search",
        range(100),
        THREADS | OWN_GIL,
        "sqlite3 lets go of it to search; what its threads share inside SQLite may make processes faster",
    ),
    Program("fetched", range(100), THREADS, "waits for a server; threads are the cheapest that can"),
    Program("slept", range(200), LOOP, "coroutines that wait"),
    Program("asked", range(200), LOOP, "coroutines that wait for a server"),
    Program("next_number", range(10_000), ALONE, "is over sooner than it is handed to a worker"),
    Program("short_sum", range(50), ALONE, "takes less altogether than a pool takes to start"),
    Program("huge", [1], ALONE, "one call: there is nothing to make beside it"),
    Program(
        "counted",
        range(100),
        ALONE,
        "every call reads and writes one number",
        frozenset({"threads"}) | OWN_GIL,
    ),
    Program("tallied", range(100), ALONE, "counts without a lock", frozenset({"threads"}) | OWN_GIL),
    Program("tallied_with_lock", range(100), THREADS, "waits, and counts under a lock", OWN_GIL),
    Program("sorted_in_place", "shuffled_rows", ALONE, "changes its items, with the GIL held", OWN_GIL),
    Program(
        "mixed",
        range(120),
        OWN_GIL,
        "waits and computes: more workers than cores, and no GIL in common",
        requests=MANY,
    ),
)


def _other(
    name: str,
    items: Iterable[Any],
    right: frozenset[str],
    why: str,
    harmful: frozenset[str] = frozenset(),
    requests: int | None = None,
) -> Program:
    return Program(name, items, right, why, harmful, requests, module="advise_others")


OTHERS = (
    _other(
        "half_slept",
        range(200),
        OWN_GIL,
        "waits as long as it computes with the GIL",
        requests=MANY,
    ),
    _other("mostly_slept", range(200), THREADS, "waits; threads are the cheapest that can"),
    _other("started", range(100), THREADS, "waits for a process"),
    _other(
        "computed_in_a_loop",
        range(150),
        OWN_GIL,
        "coroutines that only compute: a loop has nothing to do",
        requests=MANY,
    ),
    _other("slept_in_a_loop", range(200), LOOP, "coroutines that wait, some of them for long"),
    _other("grouped", [60_000] * 100, OWN_GIL, "fills dictionaries, with the GIL held", requests=MANY),
    _other("packed", range(60), THREADS, "bz2 lets go of the GIL"),
    _other("returned", [400_000] * 60, ALONE, "its result takes longer to be sent than to be made"),
    _other("hashed", range(10_000), ALONE, "is over sooner than it is handed to a worker"),
    _other("looked_up", range(10_000), ALONE, "so is this"),
    _other("said", range(10_000), ALONE, "and this"),
    _other("generator", range(150), ALONE, "computes with the GIL, and its result cannot be sent"),
    _other("lock", range(100), THREADS, "waits, and its result cannot be sent", OWN_GIL),
    _other("numbered", range(150), ALONE, "takes numbers from a counter", THREADS | OWN_GIL),
    _other("appended", range(200), ALONE, "appends to a list of all calls", THREADS | OWN_GIL),
    _other("summed", range(150), ALONE, "adds to a sum of all calls", THREADS | OWN_GIL),
    _other("cached", [1, 2, 3] * 100, ALONE, "computes three times and remembers"),
    _other("tailed", range(150), OWN_GIL, "computes, some calls for twenty times as long", requests=MANY),
    _other("tailed_sleep", range(300), THREADS, "waits, some calls for long"),
    _other("exact", range(100), OWN_GIL, "decimal keeps the GIL", requests=MANY),
)


def ask(program: Program, budget: float) -> Advice:
    module = import_module(program.module)
    items = program.items
    if isinstance(items, str):
        items = getattr(module, items)()
    function = getattr(module, program.name)
    return fairlead.advise(function, items, budget=budget, requests=program.requests)


def serve(port_to: Any) -> None:
    """Answers after 20 ms, until standard input ends."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        await asyncio.sleep(0.02)
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
        print(server.sockets[0].getsockname()[1], file=port_to, flush=True)
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
    parser.add_argument("--others", action="store_true", help="ask about the second twenty")
    parser.add_argument("--reasons", action="store_true", help="print the reasons, too")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(sys.stdout)
        return 0
    programs = OTHERS if asked.others else PROGRAMS
    names = [program.name for program in programs]
    if unknown := set(asked.programs) - set(names):
        parser.error(f"there is no program {', '.join(unknown)}; there are {', '.join(names)}")
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        os.environ["FAIRLEAD_TRUTH_PORT"] = server.stdout.readline().strip()
        sys.path.insert(0, str(SUBJECTS))
        import advise_programs

        advise_programs.make_database()
        return judge([p for p in programs if not asked.programs or p.name in asked.programs], asked)
    except UsageError as wrong:
        parser.error(str(wrong))
    finally:
        server.stdin.close()
        server.wait()


def judge(programs: list[Program], asked: argparse.Namespace) -> int:
    right = harmful = 0
    print(origin())
    for program in programs:
        begin = time.monotonic()
        try:
            advice = ask(program, asked.budget)
        except AdviceError as refusal:
            print(f"{program.name:18} no advice: {refusal}", flush=True)
            continue
        kind = advice.choice.kind
        is_right = kind in program.right
        right += is_right
        harmful += kind in program.harmful
        foreign = max((one.foreign or 0.0 for one in advice.candidates), default=0.0)
        word = "right" if is_right else "CHANGES RESULTS" if kind in program.harmful else "wrong"
        took = f"{time.monotonic() - begin:4.0f} s, others took {foreign:4.0%}"
        known = f"{' or '.join(sorted(program.right))}: {program.why}"
        print(f"{program.name:18} {word:6} {headline(advice):52} {took}; {known}", flush=True)
        if asked.reasons:
            for reason in (*advice.choice.reasons, *advice.notes):
                print(f"    {reason}")
    print(f"{right} of {len(programs)} right, {harmful} that change results")
    wrong_allowed = len(programs) // (10 if asked.others else 20)
    return 0 if harmful == 0 and right >= len(programs) - wrong_allowed else 1


if __name__ == "__main__":
    sys.exit(main())
