"""What people expect of an executor: the standard library's names, awaiting, and tasks that co-operate."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pools_user
import pytest
import trio
from poolkinds import KINDS, Make, join_all_but
from pooltasks import announce_and_spin, negative_raises, square, wait_for
from waiting import run, until, until_async

import fairlead
from fairlead import errors
from fairlead.pools import ProcessPool, SequentialPool, ThreadPool, check_cancelled

pytestmark = pytest.mark.pypy

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="default")


def trio_run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def main() -> Any:
        return await coroutine

    return trio.run(main)


@pytest.fixture(autouse=True)
def _no_threads_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    join_all_but(before)


# in coroutines


def test_async_with_waits_for_the_tasks_and_leaves_the_loop_free(several: Make, tmp_path: Path) -> None:
    async def main() -> str:
        async def go_on() -> None:
            while pool.statistics().running < 1:
                await asyncio.sleep(0)
            (tmp_path / "go").touch()

        async with pool:
            future = pool.submit(wait_for, str(tmp_path / "go"))
            going = asyncio.create_task(go_on())
        assert future.done()
        await going
        return future.result()

    pool = several()
    assert run(main()) == str(tmp_path / "go")
    with pytest.raises(errors.PoolClosedError):
        pool.submit(square, 1)


def test_async_with_left_by_a_cancellation_stops_the_workers(several: Make, tmp_path: Path) -> None:
    begun = tmp_path / "begun"

    async def main() -> None:
        async with several(max_workers=1) as pool:
            futures.append(pool.submit(announce_and_spin, str(begun)))
            futures.append(pool.submit(square, 1))
            await asyncio.Event().wait()

    async def cancel() -> None:
        task = asyncio.create_task(main())
        while not begun.exists():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    futures: list[Any] = []
    run(cancel())
    assert all(future.cancelled() for future in futures)


@pytest.mark.parametrize("way", ["run", "await", "run_in_executor"])
def test_task_of_a_loop_gets_results_and_its_cancellation_stops_the_call(
    way: str, several: Make, tmp_path: Path
) -> None:
    pool = several(max_workers=1)
    begun = tmp_path / "begun"

    def call(function: Callable[..., Any], *args: object) -> Awaitable[Any]:
        if way == "run":
            return pool.run(function, *args)
        if way == "await":
            return pool.submit(function, *args)
        return asyncio.get_running_loop().run_in_executor(pool, function, *args)

    async def endless() -> None:
        await call(announce_and_spin, str(begun))

    async def main() -> int:
        assert await call(square, 3) == 9
        with pytest.raises(ValueError, match="-1"):
            await call(negative_raises, -1)
        task = asyncio.create_task(endless())
        await until_async(begun.exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert pool.statistics().cancelled == 1
        return await call(square, 4)

    assert run(main()) == 16


def test_run_after_shutdown_is_refused(make: Make) -> None:
    pool = make()
    pool.shutdown()
    with pytest.raises(errors.PoolClosedError):
        run(pool.run(square, 2))


@pytest.mark.parametrize("kind", ["threads", "async", "sequential"])
def test_context_variables_travel_with_run(kind: str) -> None:
    async def main() -> str:
        VARIABLE.set("travelled")
        return await pool.run(VARIABLE.get)

    with KINDS[kind]() as pool:
        assert run(main()) == "travelled"


# tasks that co-operate


def test_thread_is_not_interrupted_unless_that_was_asked_for() -> None:
    begun, gate = threading.Event(), threading.Event()
    seen: list[Any] = []

    def work() -> None:
        begun.set()
        try:
            while not gate.is_set():
                pass
        except BaseException as error:
            seen.append(error)
            raise
        seen.append("ended")

    with ThreadPool(1) as pool:
        future = pool.submit(work)
        begun.wait(40)
        assert future.cancel()
        assert future.cancelled()
        assert pool.submit(square, 3).result(40) == 9  # by another thread
        with pytest.raises(errors.TaskTimeoutError):
            pool.with_options(timeout=0.05).submit(work).result(40)
        gate.set()
        until(lambda: len(seen) == 2)
    assert seen == ["ended", "ended"]


def test_task_that_asks_learns_that_it_was_cancelled() -> None:
    ended: list[BaseException] = []
    begun = threading.Event()

    def work() -> None:
        check_cancelled()
        begun.set()
        try:
            while True:
                check_cancelled()
        except concurrent.futures.CancelledError as error:
            ended.append(error)

    check_cancelled()
    with ThreadPool(1) as pool:
        future = pool.submit(work)
        begun.wait(40)
        future.cancel()
        until(lambda: ended)
        pool.submit(check_cancelled).result(40)
    SequentialPool().submit(check_cancelled).result()


# names and times


def test_keyword_names_are_the_standard_librarys() -> None:
    seen: list[str] = []

    def name() -> str:
        return threading.current_thread().name

    given: dict[str, Any] = {"max_workers": 1, "initializer": seen.append, "initargs": ("begun",)}
    with ThreadPool(thread_name_prefix="mine", **given) as pool:
        assert pool.submit(name).result().startswith("mine")
    assert seen == ["begun"]
    with ThreadPool(1, "second") as pool:
        assert pool.submit(name).result().startswith("second")
    contexts: list[Any] = ["spawn", multiprocessing.get_context("spawn")]
    for context in contexts:
        with ProcessPool(max_workers=1, mp_context=context, max_tasks_per_child=2) as processes:
            assert processes.submit(square, 3).result() == 9


def test_shutdown_waits_no_longer_than_its_timeout(several: Make, tmp_path: Path) -> None:
    pool = several(max_workers=1)
    future = pool.submit(wait_for, str(tmp_path / "go"))
    with pytest.raises(TimeoutError, match="have not ended within"):
        pool.shutdown(timeout=0.05)
    (tmp_path / "go").touch()
    assert future.result(40) == str(tmp_path / "go")
    pool.shutdown(timeout=40)


def test_parts_of_the_package_are_its_attributes() -> None:
    program = "import fairlead; print(fairlead.sync, fairlead.pools, fairlead.gil)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "fairlead.sync" in done.stdout
    assert {"sync", "pools", "gil", "advise"} <= set(dir(fairlead))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fairlead.nothing  # type: ignore[attr-defined]


def test_typed_program_gets_what_its_types_say() -> None:
    run(pools_user.main())
