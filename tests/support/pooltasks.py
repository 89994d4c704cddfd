"""What tests have workers do: functions that a worker of any kind can import.

Each worker imports this before its first task, and a test that starts many waits for that each time. What
makes many classes of its own is imported where it is needed: without a GIL, CPython 3.13 gives its core away
forty times for each class with a metaclass, which takes seconds where others want that core.
"""

from __future__ import annotations

import contextvars
import os
import threading
import time

from fairlead.pools.engine.stopped import Stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_seen: list[int] = []


def add(a: int, b: int = 0) -> int:
    return a + b


def square(n: int) -> int:
    return n * n


def negative_raises(n: int) -> int:
    if n < 0:
        raise ValueError(n)
    return n


def spin() -> None:
    """Never ends, and is always about to take its next step in Python."""
    while True:
        pass


class Spins:
    def __del__(self) -> None:
        for _ in range(1000):
            pass


def spin_in_deallocators() -> None:
    """As spin(), and an exception that comes is mostly dropped by Python."""
    while True:
        Spins()


def spin_below(path: str, attempts: int) -> int:
    """Never ends but in its last attempt; each leaves a byte in the file."""
    with open(path, "ab") as file:  # noqa: PTH123
        file.write(b".")
    if os.path.getsize(path) < attempts:  # noqa: PTH202
        spin()
    return attempts


def wait_for(path: str) -> str:
    while not os.path.exists(path):  # noqa: PTH110
        time.sleep(0.001)
    return path


def announce_and_hang(begun: str, fifo: str) -> None:
    """In a call into C that no exception interrupts, until the FIFO is opened for writing."""
    if not os.path.exists(begun):  # noqa: PTH110
        os.mknod(begun)
    os.close(os.open(fifo, os.O_RDONLY))


def announce_and_spin(path: str) -> None:
    if not os.path.exists(path):  # noqa: PTH110
        os.mknod(path)  # in one step: who sees it may have this thread sent an exception at once
    spin()


def ask() -> None:
    """Ends only because it asks whether it was cancelled."""
    from fairlead.pools import check_cancelled

    while True:
        check_cancelled()


def announce_and_ask(path: str) -> None:
    open(path, "w").close()  # noqa: PTH123
    ask()


def remember(number: int) -> None:
    _seen.append(number)


def remembered() -> list[int]:
    return list(_seen)


def refuse() -> None:
    raise OSError(5, "the initializer refuses")


def where() -> tuple[int, int]:
    return os.getpid(), threading.get_ident()


class Odd(Exception):
    """Wants other arguments than it gives to Exception's constructor, and has an attribute."""

    def __init__(self, code: int, *, hint: str) -> None:
        super().__init__(f"odd {code}")
        self.code = code
        self.hint = hint


def raise_odd(code: int) -> None:
    raise Odd(code, hint="as it was")


class Locked(Exception):
    """Cannot be pickled."""


def raise_group() -> None:
    locked = Locked(threading.Lock())
    raise ExceptionGroup("three", [Odd(7, hint="as it was"), ExceptionGroup("one", [locked]), ValueError(3)])


def fail_with(error: BaseException) -> None:
    raise error


def identity(value: Any) -> Any:
    return value


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="default")
OTHER: contextvars.ContextVar[str] = contextvars.ContextVar("OTHER", default="default")


def variable(_: None = None) -> str:
    return VARIABLE.get()


_kept: list[Any] = []


def keep(value: Any) -> None:
    _kept.append(value)


def count_up(_: int) -> None:
    with _kept[0].get_lock():
        _kept[0].value += 1


def raise_lookup_error(what: str) -> None:
    raise LookupError(what)


def import_readline() -> None:
    import readline  # noqa: F401 - it refuses interpreters with a GIL of their own


def set_first(view: memoryview, value: float) -> None:
    view[0] = value


def make_view(length: int) -> memoryview:
    return memoryview(b"v" * length)


def sum_of_value(shared: Any) -> int:
    return sum(bytes(shared.value))


class Nest:
    """For functions that are named by more than a module and one name."""

    class Egg:
        @staticmethod
        def hatch(n: int) -> int:
            return n + 1


class WithBuffer:
    """Pickled with its buffer beside it."""

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer

    def __reduce_ex__(self, protocol: Any) -> Any:
        import pickle

        return WithBuffer, (pickle.PickleBuffer(self.buffer),)


def type_of_buffer(one: WithBuffer) -> tuple[str, int]:
    return type(one.buffer).__name__, len(one.buffer)


class ReadAfter:
    """What a worker reads once there is a file; the first that does ends then, if ``ends`` is given."""

    def __init__(self, path: str, ends: str | None = None) -> None:
        self.path = path
        self.ends = ends

    def __reduce__(self) -> Any:
        return _read_after, (self.path, self.ends)


def _read_after(path: str, ends: str | None) -> ReadAfter:
    wait_for(path)
    if ends is not None and not os.path.exists(ends):  # noqa: PTH110
        os.mknod(ends)
        raise Stopped
    return ReadAfter(path, ends)
