"""Twenty functions of other kinds than those of ``advise_programs``.

Mixtures of sleep and computing, bound by memory, tiny, with what cannot be sent, with state, and with times
that differ widely.
"""

from __future__ import annotations

import asyncio
import bz2
import decimal
import functools
import itertools
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any


def _compute(steps: int) -> int:
    total = 0
    for number in range(steps):
        total += number * number % 7
    return total


# sleeps and computes


def half_slept(number: int) -> int:
    time.sleep(0.004)
    return _compute(60_000) + number


def mostly_slept(number: int) -> int:
    time.sleep(0.02)
    return _compute(2_000) + number


def started(number: int) -> int:
    return subprocess.run(["sleep", "0.02"], check=False).returncode + number


async def computed_in_a_loop(number: int) -> int:
    return _compute(80_000) + number


async def slept_in_a_loop(number: int) -> int:
    await asyncio.sleep(random.Random(number).paretovariate(1.5) * 0.005)
    return number


# bound by memory


def grouped(size: int) -> int:
    groups: dict[int, list[int]] = {}
    for number in range(size):
        groups.setdefault(number * 7919 % 4093, []).append(number)
    return len(groups)


def packed(number: int) -> int:
    return len(bz2.compress(bytes(range(256)) * 400 + number.to_bytes(4, "little")))


def returned(size: int) -> list[float]:
    return [0.5] * size


# tiny


def hashed(number: int) -> int:
    return hash(number)


TABLE = {number: number * 2 for number in range(1000)}


def looked_up(number: int) -> int:
    return TABLE[number % 1000]


def said(number: int) -> str:
    return str(number)


# what cannot be sent


def generator(number: int) -> Iterator[int]:
    found = _compute(60_000) + number
    return (found + step for step in range(3))


def lock(_number: int) -> Any:
    time.sleep(0.02)
    return threading.Lock()


# state


NUMBERS = itertools.count()
SEEN: list[int] = []
TOTAL = {"sum": 0}


def numbered(_number: int) -> int:
    _compute(20_000)
    return next(NUMBERS)


def appended(number: int) -> int:
    time.sleep(0.002)
    SEEN.append(number)
    return len(SEEN)


def summed(number: int) -> int:
    before = TOTAL["sum"]
    _compute(20_000)
    TOTAL["sum"] = before + number
    return TOTAL["sum"]


@functools.lru_cache(None)
def cached(number: int) -> int:
    return _compute(20_000) + number


# heavy tails


def tailed(number: int) -> int:
    return _compute(int(20_000 * min(random.Random(number).paretovariate(1.2), 20)))


def tailed_sleep(number: int) -> int:
    time.sleep(min(0.004 * random.Random(number).paretovariate(1.2), 0.1))
    return number


def exact(number: int) -> str:
    total = decimal.Decimal(number)
    for _ in range(12_000):
        total = (total * 3 + 1) / 7
    return str(total)
