"""Twenty functions of which ``advise_truth.py`` measures how their calls are best made."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import os
import random
import re
import threading
import time
import urllib.request
from typing import Any

PORT = int(os.environ.get("FAIRLEAD_TRUTH_PORT", "0"))
"""Of a server on loopback that answers after 20 ms."""


# computes in Python


def primes(below: int) -> int:
    found = 0
    for number in range(2, below):
        divisor = 2
        while divisor * divisor <= number and number % divisor:
            divisor += 1
        found += divisor * divisor > number
    return found


def steps(number: int) -> int:
    """Of a third of a millisecond."""
    found = 0
    for begin in range(number, number + 40):
        while begin != 1:
            begin = begin // 2 if begin % 2 == 0 else 3 * begin + 1
            found += 1
    return found


def tailed(number: int) -> int:
    """Some calls take twenty times as long as most."""
    return primes(int(3_000 * min(random.Random(number).paretovariate(1.2), 8)))


TEXT = " ".join(f"word{n} {n}@example{n % 7}.org" for n in range(1500))
ADDRESS = re.compile(r"([a-z0-9.]+)+@([a-z0-9]+\.)+org")


def addresses(salt: int) -> int:
    return len(ADDRESS.findall(f"{TEXT} {salt}"))


ROWS = json.dumps([{"id": n, "name": f"name {n}", "values": [n, n / 2, str(n)]} for n in range(3000)])


def records(salt: int) -> int:
    rows = json.loads(ROWS)
    return len(json.dumps([{**row, "salt": salt} for row in rows], sort_keys=True))


# computes in C, without the GIL

BLOCK = bytes(range(256)) * 40_000


def digest(salt: int) -> str:
    return hashlib.sha256(BLOCK[salt:]).hexdigest()


def ordered(seed: int) -> float:
    import numpy as np

    return float(np.sort(np.random.default_rng(seed).random(400_000))[1000])


def blurred(seed: int) -> int:
    """A picture of a million points, its brightness raised and smoothed: new arrays for each step."""
    import numpy as np

    picture = np.random.default_rng(seed).random((1000, 1000), dtype=np.float32)
    for _ in range(8):
        picture = np.sqrt(picture)
        picture[1:-1] = (picture[:-2] + picture[1:-1] + picture[2:]) / 3
    return int(picture.sum())


def scaled(factor: int) -> float:
    """Bound by memory: three passes over 32 MB."""
    import numpy as np

    return float((np.ones(4_000_000) * factor).sum())


# waits


def fetched(number: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/{number}", timeout=30) as answer:
        return len(answer.read())


async def asked(number: int) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    writer.write(f"GET /{number} HTTP/1.0\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return len(answer)


def flaky(number: int) -> int:
    """Fails now and then, as requests do."""
    time.sleep(0.005)
    if number % 50 == 49:
        raise TimeoutError(f"no answer to {number}")
    return number


def mixed(number: int) -> int:
    """Waits for 10 ms and computes for as long; one in four, for longer."""
    time.sleep(0.01)
    return primes(30_000 if number % 4 == 0 else 12_000)


# is not worth a pool


def next_number(number: int) -> int:
    return number + 1


def short_sum(number: int) -> int:
    return sum(range(number % 1000))


# pays once


@functools.cache
def model() -> int:
    time.sleep(0.8)
    return 3


def predicted(number: int) -> int:
    """Its first call in a process loads a model."""
    return primes(9_000 + model() + number % 2)


@functools.lru_cache(None)
def remembered(number: int) -> int:
    """Of each item once."""
    return primes(6_000 + number % 100)


# sends much


def parts() -> list[bytes]:
    return [bytes([number]) * 4_000_000 for number in range(40)]


def counted(part: bytes) -> int:
    """4 MB of which a part is read."""
    return part.count(b"\x07", 0, 400_000)


def expanded(size: int) -> list[float]:
    """Its result takes longer to be sent than to be made."""
    return [0.5] * size


# shares state

TOTAL = {"sum": 0}
GUARD = threading.Lock()


def summed(number: int) -> int:
    """Each result depends on the call before."""
    before = TOTAL["sum"]
    TOTAL["sum"] = before + primes(4_000) + number
    return TOTAL["sum"]


def guarded(number: int) -> Any:
    """Waits, and takes a lock for a tenth of the time."""
    time.sleep(0.009)
    with GUARD:
        time.sleep(0.001)
    return number
