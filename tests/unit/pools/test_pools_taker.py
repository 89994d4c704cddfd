"""What gives the outcomes of a stream one by one."""

from __future__ import annotations

import gc
import weakref
from collections import deque
from typing import Any

import pytest

from fairlead._native import Taker


class Taking(Taker):
    def __init__(self, *later: str) -> None:
        self._failure = ValueError
        self.later = iter(later)

    def next(self) -> str:
        return next(self.later)

    def _raise(self, failure: Any) -> Any:
        raise failure


def test_it_gives_what_is_there_and_then_asks_for_more() -> None:
    taking = Taking("c")
    taking._outcomes = deque("ab")
    assert [*taking] == ["a", "b", "c"]
    taking._outcomes = deque("d")
    assert [*taking] == ["d"]


def test_failure_is_raised_and_what_is_behind_it_is_given() -> None:
    taking = Taking()
    taking._outcomes = deque(["a", ValueError("b"), KeyError("a result"), "c"])
    assert next(taking) == "a"
    with pytest.raises(ValueError, match="b"):
        next(taking)
    assert type(next(taking)) is KeyError
    assert [*taking] == ["c"]


def test_it_needs_none_and_may_have_anything_else_in_the_place() -> None:
    assert [*Taking("a")] == ["a"]
    taking = Taking()
    taking._outcomes = ["no deque"]  # type: ignore[assignment] # that is what is tested
    with pytest.raises(AttributeError, match="popleft"):
        next(taking)


def test_cycle_through_it_is_collected() -> None:
    taking = Taking()
    taking._outcomes = deque([taking])
    gone = weakref.ref(taking)
    del taking
    gc.collect()
    assert gone() is None
