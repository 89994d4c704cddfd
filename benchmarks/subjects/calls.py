"""What benchmarks have workers call: importable by workers of every kind."""

from __future__ import annotations

import time
from typing import Any


def identity(value: Any) -> Any:
    return value


def length(data: Any) -> int:
    return len(data)


def shape(array: Any) -> Any:
    return array.shape


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def busy(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass
