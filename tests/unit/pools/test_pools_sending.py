"""What goes to workers elsewhere, in processes and interpreters, and comes back; and what is refused."""

from __future__ import annotations

import contextvars
import threading
from typing import Any

import pytest
from poolkinds import Make
from pooltasks import Nest, fail_with, identity, square
from waiting import run

from fairlead import errors
from fairlead.pools import Pool
from fairlead.pools.serialization import contexts
from fairlead.pools.serialization.failure import WorkerTraceback


@pytest.fixture
def pool(sending: Make) -> Pool:
    return sending(max_workers=1)


VALUES = (
    None, True, 7, -(2**80), 1.5, 1j, "text", "\N{SNOWMAN}", b"bytes", bytearray(b"ab"), (), (1, ("a",)), [1],
    {1: 2},
)  # fmt: skip


def test_values_and_functions_come_as_they_went(pool: Pool) -> None:
    for value in VALUES:
        found = pool.submit(identity, value).result()
        assert (type(found), found) == (type(value), value)
    for function in (Nest.Egg.hatch, lambda n: n + 1, (41).__add__):
        assert [pool.submit(function, 1).result() for _ in range(2)] == [function(1)] * 2
    assert pool.submit(lambda n, *, by: n * by, 3, by=5).result() == 15


def test_closures_and_classes_made_in_functions_are_sent_by_value_each_time(pool: Pool) -> None:
    offset = 10

    class Point:
        def __init__(self, x: int) -> None:
            self.x = x

    def moved(point: Point) -> Point:
        return Point(point.x + offset)

    result = pool.submit(moved, Point(1)).result()
    assert (type(result), result.x) == (Point, 11)
    offset = 20
    assert [point.x for point in pool.map(moved, [Point(n) for n in range(5)])] == [20, 21, 22, 23, 24]


def test_what_cannot_be_sent_is_named_and_the_pool_lives(pool: Pool) -> None:
    lock = threading.Lock()

    def fail() -> None:
        raise ValueError("with", threading.Lock())

    for call, part in (
        (lambda: pool.submit(identity, lock), r"argument 1 of identity\(\) cannot be sent to a worker"),
        (lambda: pool.submit(identity, value=lock), r"argument 'value' of identity\(\)"),
        (lambda: pool.submit(lock.acquire), r"the function acquire\(\) cannot"),
        (lambda: pool.submit(threading.Lock), r"the result of \w+\(\), a lock, cannot be sent back"),
        (lambda: pool.submit(lambda: (n for n in ())), r"the result of <lambda>\(\), a generator"),
        (lambda: pool.submit(fail), r"raised ValueError\('with'.* cannot be sent"),
    ):
        with pytest.raises(errors.SerializationError, match=part):
            call().result()
    with pytest.raises(errors.SerializationError, match=r"item <unlocked .* for identity\(\)"):
        list(pool.map(identity, [lock]))
    results = pool.map(lambda n: threading.Lock() if n == 1 else n, range(3), chunksize=3)
    assert next(results) == 0
    with pytest.raises(errors.SerializationError, match="result of"):
        next(results)
    assert next(results) == 2
    assert pool.submit(square, 3).result() == 9
    assert pool.statistics().restarts == 0


def test_exception_has_the_workers_traceback(pool: Pool) -> None:
    error = pool.submit(fail_with, ValueError("there")).exception()
    assert isinstance(error, ValueError)
    cause = error.__cause__
    assert isinstance(cause, WorkerTraceback)
    assert "in fail_with" in cause.tb
    assert "fairlead/pools" not in cause.tb


def test_context_variable_that_has_no_name_in_a_module_is_refused(pool: Pool) -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("hidden")
    variable.set(1)
    with pytest.raises(errors.SerializationError, match="'hidden' is not an attribute of a module"):
        pool.with_options(context=[variable]).submit(square, 1).result()


def test_context_variable_is_looked_for_once(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("hidden")
    searches: list[Any] = []
    search = contexts._search
    monkeypatch.setattr(contexts, "_search", lambda one: searches.append(one) or search(one))

    def submit() -> None:
        variable.set(1)
        for n in range(10):
            assert pool.with_options(context=True).submit(square, n).result(40) == n * n

    contextvars.copy_context().run(submit)
    assert searches.count(variable) <= 2


class NotesThread:
    """Says in which thread it was pickled."""

    threads: list[int] = []  # noqa: RUF012 - of the class

    def __reduce__(self) -> Any:
        self.threads.append(threading.get_ident())
        return int, (5,)


def test_run_pickles_in_another_thread_than_the_loops(pool: Pool) -> None:
    async def main() -> Any:
        assert await pool.run(square, 2) == 4
        return await pool.run(identity, NotesThread())

    NotesThread.threads.clear()
    assert run(main()) == 5
    assert NotesThread.threads
    assert threading.get_ident() not in NotesThread.threads
