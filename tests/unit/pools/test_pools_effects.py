"""What the source of functions says of state that their calls share: see pools/choose/effects.py."""

from __future__ import annotations

import functools
import json
import math
import random
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from fairlead.pools.choose.sharing import Sharing

pytestmark = pytest.mark.ends_and_free

TABLE = {number: str(number) for number in range(1000)}
MATRIX = [[1, 2], [3, 4]]
SETTINGS: dict[str, list[int]] = {"a": [1, 2]}
LOG: list[int] = []
LOCK = threading.Lock()
HERE = threading.local()
calls = 0


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def primes(n: int) -> list[int]:
    found: list[int] = []
    for one in range(2, n):
        for prime in found:
            if one % prime == 0:
                break
        else:
            found.append(one)
    return found


def table(n: int) -> str:
    return TABLE[n] + TABLE.get(n, "")


def matrix(n: int) -> int:
    return MATRIX[0][n] + sum(row[0] for row in MATRIX)


def total(items: list[int]) -> int:
    found = 0
    for item in items:
        found += item
    return found


def order(items: list[int]) -> None:
    items.sort()


def orders_its_own(n: int) -> list[int]:
    made = [3, 2, n]
    order(made)
    return made


@dataclass
class Point:
    x: int
    y: int

    def norm(self) -> float:
        return math.sqrt(self.x**2 + self.y**2)

    def move(self) -> None:
        self.x += 1


def norm(point: Point) -> float:
    return point.norm()


def dot(points: list[Point]) -> int:
    return sum(point.x * point.y for point in points)


def makes_and_moves(n: int) -> float:
    point = Point(n, n)
    point.move()
    return point.norm()


class Counter:
    sold: list[int] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.factor = 3
        self.seen: dict[int, int] = {}

    def scale(self, n: int) -> int:
        return self.factor * n

    def note(self, n: int) -> None:
        seen = self.seen
        seen[n] = 1

    def sell(self, n: int) -> None:
        self.sold.append(n)


def words(text: str) -> list[tuple[str, int]]:
    found: dict[str, int] = {}
    for word in re.findall(r"\w+", text):
        found[word] = found.get(word, 0) + 1
    return sorted(found.items(), key=lambda pair: -pair[1])


def tries(n: int) -> object:
    try:
        return 1 / n
    except ZeroDivisionError as error:
        return str(error)


def reads_file(path: str) -> int:
    with open(path) as file:  # noqa: PTH123
        return len(file.read())


def comprehends(n: int) -> object:
    return [x * y for x in range(n) for y in range(n) if x < y], {a: b for a, b in enumerate("abc")}  # noqa: C416


@functools.cache
def memoised(n: int) -> int:
    return n if n < 2 else memoised(n - 1) + memoised(n - 2)


def generates(n: int) -> int:
    def squares() -> Any:
        for one in range(n):
            yield one * one

    return sum(squares())


def multiply(factor: int) -> Callable[[int], int]:
    return lambda n: n * factor


PURE: list[tuple[Callable[..., Any], Any]] = [
    (fib, 5), (primes, 50), (table, 3), (matrix, 1), (total, [1, 2]), (orders_its_own, 3),
    (norm, Point(1, 2)),
    (dot, [Point(1, 2)]), (makes_and_moves, 2), (Counter().scale, 3), (words, "a b a"), (tries, 1),
    (reads_file, "x"), (comprehends, 3), (memoised, 3), (generates, 3), (multiply(3), 2),
    (functools.partial(pow, 2), 3), (math.factorial, 5), (json.dumps, [1]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "argument"), PURE, ids=lambda value: getattr(value, "__name__", ""))
def test_function_that_changes_only_what_it_makes_may_go_anywhere(
    function: Callable[..., Any], argument: Any
) -> None:
    assert Sharing(function).doubt([((argument,), False)]) is None


def appends(items: list[int]) -> None:
    items.append(1)


def renames(items: list[int]) -> None:
    others = items
    others[0] = 1


def adds_in_place(items: list[int]) -> None:
    items += [1]


def has_a_helper_order(items: list[int]) -> None:
    order(items)


def in_a_loop(rows: list[list[int]]) -> None:
    for row in rows:
        row.append(1)


def by_a_lambda(rows: list[list[int]]) -> object:
    return list(map(lambda row: row.sort(), rows))  # noqa: C417


def unpacks(rows: list[list[int]]) -> None:
    first, *_ = rows
    first.clear()


def counts(n: int) -> int:
    global calls
    calls += n
    return calls


def logs(n: int) -> None:
    LOG.append(n)


def locks(n: int) -> int:
    with LOCK:
        return n


def draws(n: int) -> float:
    return random.random() * n


def moves(point: Point) -> None:
    point.move()


def deep(n: int) -> None:
    SETTINGS["a"].append(n)


def hands_out(_: int) -> object:
    return SETTINGS


def remembers(n: int, known: list[int] = []) -> None:  # noqa: B006
    known.append(n)


def stores_in_a_new_object(_: int) -> object:
    made: dict[str, Any] = {}
    made["settings"] = SETTINGS
    made["settings"]["a"] = []
    return None


def of_its_thread(n: int) -> int:
    HERE.n = n
    return n


def evaluates(n: int) -> object:  # noqa: ARG001 - what is evaluated takes it
    return eval("LOG.append(n)")


def uses_up(items: Any) -> object:
    return list(items)


def closure() -> Callable[[int], None]:
    seen: list[int] = []
    return lambda n: seen.append(n)


def nonlocal_one() -> Callable[[int], int]:
    total = 0

    def add(n: int) -> int:
        nonlocal total
        total += n
        return total

    return add


@pytest.mark.parametrize(
    ("function", "argument", "says"),
    [
        (appends, [1], "argument 1"), (renames, [1], "renames() changes argument 1"),
        (adds_in_place, [1], "adds_in_place() changes argument 1"),
        (has_a_helper_order, [1], "argument 1.sort()"),
        (in_a_loop, [[1]], "argument 1.append()"), (by_a_lambda, [[1]], "argument 1.sort()"),
        (unpacks, [[1]], "argument 1.clear()"), (counts, 1, "counts() changes the global calls"),
        (logs, 1, "LOG.append()"), (locks, 1, "locks() enters LOCK"), (draws, 1, "random()"),
        (moves, Point(1, 2), "Point.move() changes argument 1"), (deep, 1, "SETTINGS"),
        (hands_out, 1, "hands_out() returns SETTINGS itself"), (remembers, 1, "the default of known"),
        (stores_in_a_new_object, 1, "SETTINGS"), (of_its_thread, 1, "HERE"), (evaluates, 1, "eval()"),
        (uses_up, iter([1]), "argument 1"), (closure(), 1, "seen.append()"),
        (nonlocal_one(), 1, "changes total, a variable of its closure"), (Counter().note, 1, "self.seen"),
        (Counter().sell, 1, "sold.append()"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_function_that_changes_what_it_shares_is_found_and_what_it_changes_is_named(
    function: Callable[..., Any], argument: Any, says: str
) -> None:
    doubt = Sharing(function).doubt([((argument,), False)])
    assert doubt is not None
    assert says in doubt


def test_values_that_change_later_are_noticed() -> None:
    sharing = Sharing(table)
    assert sharing.doubt([((1,), False)]) is None
    assert sharing.stays_the_same()
    TABLE[3] = "x"
    try:
        assert not sharing.stays_the_same()
    finally:
        TABLE[3] = "3"
    assert sharing.stays_the_same()
