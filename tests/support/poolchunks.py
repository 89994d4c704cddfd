"""Calls and items that cost their chunk something."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fairlead.pools.process import progress


def elsewhere() -> bool:
    """In a worker that shares no objects with the test."""
    if multiprocessing.parent_process() is not None or "distributed.worker" in sys.modules:
        return True
    try:
        import _interpreters
    except ImportError:  # before Python 3.13
        return False
    here, main = _interpreters.get_current()[0], _interpreters.get_main()[0]
    return bool(here != main)


def never_in_parts() -> None:
    """For a worker's initializer: the results of its chunks come at their end, however long that takes."""
    progress.PART_NS = 10**15


class BadThere:
    """Cannot be read in a worker; reading it ends that if told so."""

    def __init__(self, n: int, *, ends: bool = False) -> None:
        self.n = n
        self.ends = ends

    def __setstate__(self, state: dict[str, Any]) -> None:
        if elsewhere():
            if state["ends"]:
                os._exit(5)
            raise ValueError("not there")
        vars(self).update(state)


class BadBack:
    """A result that cannot be read where it was to go."""

    def __reduce__(self) -> Any:
        return _refuse, ()


def _refuse() -> None:
    raise ValueError("not here")


class Noted:
    """A call that writes down that it was made, and does as it is told with some items."""

    def __init__(self, log: Path, *, dies: int = -1, dies_once: int = -1, bad: int = -1) -> None:
        self.__name__ = "noted"
        self.log = log
        self.dies, self.dies_once, self.bad = dies, dies_once, bad

    def __call__(self, n: Any) -> Any:
        with self.log.open("a") as log:
            log.write(f"{n if isinstance(n, int) else 'odd'}\n")
        once = self.log.with_suffix(".died")
        if n == self.dies or (n == self.dies_once and not once.exists()):
            once.touch()
            os._exit(9)
        return BadBack() if n == self.bad else n

    def made(self) -> dict[int, int]:
        """How often it was called with each item."""
        lines = self.log.read_text().split()
        return {int(line): lines.count(line) for line in set(lines) if line != "odd"}


Outcomes = list[Any]


def taken(stream: Iterable[Any]) -> Outcomes:
    """What each call came to, an exception where it raised."""
    found: Outcomes = []
    results = iter(stream)
    while True:
        try:
            found.append(next(results))
        except StopIteration:
            return found
        except Exception as error:  # noqa: BLE001 - what is looked at
            found.append(error)
