"""Thread programs for ``gilsim`` with a known character, each under the finding it is an example of."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from gilsim import MS, US, Block, Call, Run, Step


def spinner() -> Iterator[Step]:
    """Computes in Python all the time."""
    return itertools.repeat(Run(50 * MS))


def server(compute_ns: int = 20 * US, idle_ns: int = 200 * US) -> Iterator[Step]:
    """Answers requests: a little computing, then I/O."""
    return itertools.cycle([Run(compute_ns), Block(idle_ns)])


def c_caller(call_ns: int = 40 * MS) -> Iterator[Step]:
    """Calls C code that keeps the GIL."""
    return itertools.cycle([Run(MS), Call(call_ns)])


def square(n: int) -> dict[str, Iterable[Step]]:
    """n threads that come one after another; those that are through yield until the last one is there."""
    # thread k can start only when those before it let it through: it comes after k passes
    return {
        f"t{k:03}": [Block(1 + 60 * US * k), *[Run(10 * US), Block(US)] * (4 * (n - k) + 1)] for k in range(n)
    }


def example(kind: str) -> dict[str, Iterable[Step]]:
    """Fresh programs for one kind of finding."""
    if kind == "convoy":
        return {"cpu": spinner(), "io": server()}
    if kind == "long-hold":
        return {"c-code": c_caller(), "io": server(idle_ns=2 * MS)}
    if kind == "saturation":
        return {"spin-1": spinner(), "spin-2": spinner()}
    if kind == "lock-square":
        return square(24)
    if kind == "switch-storm":
        return {f"passer-{k}": server(compute_ns=15 * US, idle_ns=30 * US) for k in range(6)}
    if kind == "not-the-gil":
        return {"io-1": server(idle_ns=5 * MS), "io-2": server(idle_ns=7 * MS)}
    raise ValueError(kind)
