"""What the looking at a function tells apart: results, and state that calls share."""

from __future__ import annotations

import functools
import random
import subprocess
import sys
import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Any

import pytest

from fairlead.advice.child.fingerprint import fingerprint
from fairlead.advice.child.loading import sequence
from fairlead.pools.choose.state import State


@dataclass
class Point:
    x: int
    inside: Any = None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
        ({"x", "y", "z"}, {"z", "y", "x"}),
        ([1, "a", None, 2.5], [1, "a", None, 2.5]),
        (float("nan"), float("nan")),
        (Point(1, [2]), Point(1, [2])),
        (bytearray(b"ab"), bytearray(b"ab")),
        (ValueError("x"), ValueError("x")),
        (object(), object()),
    ],
)
def test_equal_values_have_one_fingerprint(one: Any, other: Any) -> None:
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0), (1, True), ([1], (1,)), ("1", b"1"), ([[1], 2], [[1, 2]]), ({"a": 1}, {"a": 2}),
        (Point(1), Point(2)), (0.1 + 0.2, 0.3), (ValueError("x"), ValueError("y")), (-0.0, 0.0),
        (Counter("ab"), Counter("aab")),
    ],
)  # fmt: skip
def test_different_values_have_different_fingerprints(one: Any, other: Any) -> None:
    assert fingerprint(one) != fingerprint(other)


def test_arrays_count_by_their_numbers() -> None:
    np = pytest.importorskip("numpy")
    assert fingerprint(np.arange(5)) == fingerprint(np.arange(5))
    assert fingerprint(np.arange(5)) != fingerprint(np.arange(5.0))
    assert fingerprint(np.zeros((2, 3))) != fingerprint(np.zeros((3, 2)))


def test_cycle_has_a_fingerprint() -> None:
    one: list[Any] = [1]
    one.append(one)
    other: list[Any] = [1]
    other.append(other)
    assert fingerprint(one) == fingerprint(other) != fingerprint([1, [1]])


def test_fingerprint_is_the_same_in_another_process_whatever_its_hashes() -> None:
    program = (
        "from fairlead.advice.child.fingerprint import fingerprint\n"
        "print(fingerprint({'a': {'x', 'y', 'zz'}, 'b': (1, 2.5, b'z', None)}))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert found == {fingerprint({"b": (1, 2.5, b"z", None), "a": {"zz", "y", "x"}}) + "\n"}


@pytest.mark.parametrize("calls", [1, 2, 3, 4, 10, 199, 1000, 1 << 60])
def test_calls_are_made_once_each_and_every_part_of_them_is_spread_evenly(calls: int) -> None:
    most = min(calls, 1000)
    order = sequence(calls, calls, 0, most)
    assert order[0] == 0
    assert len(set(order)) == most
    assert order == sequence(calls, calls, 0, 7) + sequence(calls, calls, 7, most) if most > 7 else True
    for part in (order[:100], order[100:300]):
        if len(part) >= 100:
            halves = sum(place < calls / 2 for place in part) / len(part)
            assert 0.4 < halves < 0.6


def test_items_are_taken_in_turn_and_anew_where_there_are_fewer_than_calls() -> None:
    assert sorted(sequence(7, 3, 0, 7)) == [0, 0, 0, 1, 1, 2, 2]


number = 0
log: list[int] = []
cache: dict[int, int] = {}
generator = random.Random(1)
lock = threading.Lock()
table = {"rate": 3}


class Shop:
    sold = 0

    def __init__(self) -> None:
        self.till = 0

    def sell(self, price: int) -> int:
        self.till += price
        return price

    def count(self, price: int) -> int:
        type(self).sold += 1
        return price


def counts(n: int) -> int:
    global number
    number += 1
    return n


def logs(n: int) -> int:
    return helper(n)


def helper(n: int) -> int:
    log.append(n)
    return n


def caches(n: int) -> int:
    if n not in cache:
        cache[n] = n * n
    return cache[n]


def draws(n: int) -> float:
    return generator.random() * n


def reads(n: int) -> int:
    return n * table["rate"]


def locked(n: int) -> int:
    with lock:
        log.append(n)
    return n


def connects(n: int) -> object:
    global connection
    if "connection" not in globals():
        connection = threading.Lock()  # opaque, as a connection is
    return n


def remembers(n: int, known: list[int] = []) -> int:  # noqa: B006
    known.append(n)
    return n


def closure() -> Any:
    total = 0

    def add(n: int) -> int:
        nonlocal total
        total += n
        return total

    return add


SHOP = Shop()


def look(state: State) -> dict[str, str]:
    return state.look(lambda _, value: fingerprint(value, state.of_own_class))


def changed_by_calls(function: Any) -> tuple[set[str], set[str]]:
    """(state that a first round changes, state that a second changes as well)"""
    state = State(function)
    looks = [look(state)]
    for _ in range(2):
        for n in (1, 2, 3):
            function(n)
        looks.append(look(state))
    first, second, third = looks
    return {n for n in first if first[n] != second[n]}, {n for n in first if second[n] != third[n]}


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (counts, {"number"}),
        (logs, {"log"}),
        (draws, {"generator"}),
        (locked, {"log"}),
        (Shop().sell, {"self"}),
        (SHOP.count, {"Shop.sold"}),
        (functools.partial(draws), {"generator"}),
        (lambda n: SHOP.sell(n), {"SHOP"}),
    ],
)
def test_state_that_every_call_changes_is_named(function: Any, names: set[str]) -> None:
    first, again = changed_by_calls(function)
    assert first == again == names


def test_defaults_and_closures_are_shared_state() -> None:
    assert changed_by_calls(remembers)[1] == {"default 1 of remembers"}
    assert changed_by_calls(closure())[1] == {"total of closure.<locals>.add"}


@pytest.mark.parametrize("function", [caches, connects])
def test_cache_changes_once(function: Any) -> None:
    first, again = changed_by_calls(function)
    assert len(first) == 1
    assert again == set()


@pytest.mark.parametrize("function", [reads, OrderedDict, len, Shop])
def test_what_only_reads_shares_nothing_that_changes(function: Any) -> None:
    state = State(function)
    before = look(state)
    if function is reads:
        function(3)
    assert look(state) == before


def test_lock_is_noticed() -> None:
    assert State(locked).guarded
    assert not State(logs).guarded
