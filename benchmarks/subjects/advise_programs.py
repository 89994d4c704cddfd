"""Twenty functions of which it is known how their calls are best made; ``advise_truth.py`` asks."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import re
import sqlite3
import tempfile
import threading
import time
import urllib.request
import zlib
from pathlib import Path
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


def mandelbrot(row: int) -> int:
    inside = 0
    for column in range(200):
        c = complex(column / 100 - 1.5, row / 100 - 1)
        z = 0j
        for _ in range(200):
            z = z * z + c
            if abs(z) > 2:
                break
        else:
            inside += 1
    return inside


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


LINES = TEXT.encode() * 8


def compressed(salt: int) -> int:
    return len(zlib.compress(LINES + str(salt).encode(), 6))


def ordered(seed: int) -> float:
    import numpy as np

    return float(np.sort(np.random.default_rng(seed).random(400_000))[1000])


def blurred(seed: int) -> int:
    """A picture of a million points, its brightness raised and smoothed."""
    import numpy as np

    picture = np.random.default_rng(seed).random((1000, 1000), dtype=np.float32)
    for _ in range(8):
        picture = np.sqrt(picture)
        picture[1:-1] = (picture[:-2] + picture[1:-1] + picture[2:]) / 3
    return int(picture.sum())


DATABASE = Path(tempfile.gettempdir()) / f"fairlead-truth-{os.getuid()}.db"


def make_database() -> None:
    DATABASE.unlink(missing_ok=True)
    with sqlite3.connect(DATABASE) as connection:
        connection.execute("create table words (id integer primary key, word text)")
        connection.executemany(
            "insert into words values (?, ?)", ((n, f"word {n * 7919}") for n in range(60_000))
        )
    connection.close()


def search(digits: int) -> int:
    connection = sqlite3.connect(f"file:{DATABASE}?mode=ro", uri=True)
    try:
        found: int = connection.execute(
            "select count(*) from words where word like ? or word like ?", (f"%{digits}%7%", f"%9%{digits}%")
        ).fetchone()[0]
    finally:
        connection.close()
    return found


# waits


def fetched(number: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/{number}", timeout=30) as answer:
        return len(answer.read())


async def slept(number: int) -> int:
    await asyncio.sleep(0.02)
    return number


async def asked(number: int) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    writer.write(f"GET /{number} HTTP/1.0\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return len(answer)


# is not worth a pool


def next_number(number: int) -> int:
    return number + 1


def short_sum(number: int) -> int:
    return sum(range(number % 1000))


def huge(number: int) -> int:
    return primes(60_000) + number


# shares state

total = 0


def counted(number: int) -> int:
    global total
    for step in range(2_000):
        total += number * step % 7
    return total


seen: dict[str, int] = {}


def tallied(number: int) -> int:
    """Waits, and counts without a lock."""
    time.sleep(0.01)
    seen["calls"] = seen.get("calls", 0) + 1
    return number


counts = {"calls": 0}
guard = threading.Lock()


def tallied_with_lock(number: int) -> int:
    """Waits, and counts under a lock."""
    time.sleep(0.02)
    with guard:
        counts["calls"] += 1
    return number


def sorted_in_place(row: list[float]) -> float:
    """Changes what it is given."""
    row.sort()
    return row[len(row) // 2]


def shuffled_rows() -> list[list[float]]:
    generator = random.Random(5)
    return [[generator.random() for _ in range(4_000)] for _ in range(60)]


# does some of everything


def mixed(number: int) -> Any:
    """Waits for 10 ms and computes for as long; one in four, for longer."""
    time.sleep(0.01)
    return primes(30_000 if number % 4 == 0 else 12_000)
