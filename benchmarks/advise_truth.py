"""Does ``fairlead advise`` give the right answer? Twenty programs of which it is known, each asked about.

    python benchmarks/advise_truth.py [--budget 12] [PROGRAM ...]

Prints what was advised, what would be right, and why that is known. At least 19 of 20 have to be right, and
no advice may be one that changes results: the exit status says whether both hold. Needs at least two cores,
and a machine that is left alone.
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
from pathlib import Path
from typing import Any

import fairlead
from fairlead.record.advice import Advice, headline

SUBJECTS = Path(__file__).parent / "subjects"
OWN_GIL = frozenset({"processes", "interpreters"})
THREADS = frozenset({"threads"})
ALONE = frozenset({"sequential"})
LOOP = frozenset({"async"})


@dataclass(frozen=True)
class Program:
    name: str
    items: Iterable[Any] | str
    right: frozenset[str]
    why: str
    harmful: frozenset[str] = frozenset()
    """Kinds that would change what comes out."""
    requests: int | None = None


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
    Program("next_number", range(10_000), ALONE, "is over sooner than it is handed to anybody"),
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
        requests=1200,
    ),
)


def ask(program: Program, budget: float) -> Advice:
    import advise_programs

    items = program.items
    if isinstance(items, str):
        items = getattr(advise_programs, items)()
    function = getattr(advise_programs, program.name)
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
    parser.add_argument("--reasons", action="store_true", help="print the reasons, too")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(sys.stdout)
        return 0
    names = [program.name for program in PROGRAMS]
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
        return judge([p for p in PROGRAMS if not asked.programs or p.name in asked.programs], asked)
    finally:
        server.stdin.close()
        server.wait()


def judge(programs: list[Program], asked: argparse.Namespace) -> int:
    right = harmful = 0
    for program in programs:
        begin = time.monotonic()
        advice = ask(program, asked.budget)
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
    return 0 if harmful == 0 and right >= len(programs) - len(programs) // 20 else 1


if __name__ == "__main__":
    sys.exit(main())
