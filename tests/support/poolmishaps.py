"""What goes wrong in tasks, of any kind of pool: functions and classes that a worker can import."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from pooltasks import wait_for


class Unspeakable(Exception):
    """Has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Unpicklable(Exception):
    """Refuses to be pickled in its own way."""

    def __reduce__(self) -> Any:
        raise RuntimeError("not to be sent")


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    """Refuses attributes."""

    code: int


class Exits:
    """Ends the worker that pickles it, or would."""

    def __reduce__(self) -> Any:
        sys.exit("pickled")


class ExitsWhenSent(Exits):
    """A function that cannot be sent."""

    def __call__(self) -> None: ...


def identity_of(value: object) -> int:
    return id(value)


def fail_unspeakably() -> None:
    raise Unspeakable(5)


def fail_unpicklably() -> None:
    raise Unpicklable(5)


def fail_frozen() -> None:
    raise Frozen(5)


def make_exits(_: object = None) -> Exits:
    return Exits()


def exit_at_two(n: int) -> int:
    if n == 2:
        sys.exit("at two")
    return n


def fail_or_wait(n: int, path: str) -> str:
    if n < 0:
        raise ValueError(n)
    return wait_for(path)


def exit_now() -> None:
    sys.exit(3)
