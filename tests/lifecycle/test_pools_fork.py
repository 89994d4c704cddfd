"""Pools in a forked child: no lock of theirs is left held, and nothing waits for the parent's threads."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from poolkinds import KINDS, Make, making
from pooltasks import square

from fairlead.errors import DeadlockError, PoolClosedError
from fairlead.pools import ProcessPool, ThreadPool, shared_pool
from fairlead.pools.engine import aside

LOCKS = (type(threading.Lock()), type(threading.RLock()))

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


@pytest.fixture(params=[kind for kind in KINDS if kind != "interpreters"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Not of interpreters: a process that has them cannot be forked."""
    yield from making(KINDS[request.param])


def in_child(function: Callable[[], object]) -> int:
    """The status with which a forked child ends: 0 if the function returns, SIGALRM's if it hangs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - nothing of the tests goes on here
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


@contextlib.contextmanager
def held_elsewhere(locks: list[Any]) -> Iterator[None]:
    """While it is entered, another thread holds the locks.

    It takes all or none of them: the pool's own threads, which are at work, take some of them together, in an
    order that is theirs.
    """
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        while not held.is_set():
            with contextlib.ExitStack() as stack:
                for lock in locks:
                    if not lock.acquire(blocking=False):
                        break
                    stack.callback(lock.release)
                else:
                    held.set()
                    done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


def places(*owners: Any) -> list[tuple[Any, str]]:
    """Where the owners and the modules of pools keep locks."""
    modules = [module for name, module in sys.modules.items() if name.startswith("fairlead.pools")]
    return [
        (owner, name)
        for owner in (*owners, *modules)
        for name, value in vars(owner).items()
        if isinstance(value, LOCKS)
    ]


def test_every_lock_that_another_thread_held_is_free_in_a_forked_child(make: Make) -> None:
    with contextlib.suppress(ImportError):  # without joblib
        importlib.import_module("fairlead.pools.joblib")
    pool = make()
    stream = pool.map(square, range(10))
    assert next(stream) == 0
    found = places(pool, pool._mappings, pool._engine, stream)
    owners = [owner for owner, _ in found]
    assert pool._mappings in owners
    assert stream in owners
    assert any(isinstance(owner, ModuleType) for owner in owners)

    def look() -> None:
        for owner, name in found:
            assert getattr(owner, name).acquire(blocking=False), (owner, name)

    with held_elsewhere([getattr(owner, name) for owner, name in found]):
        assert in_child(look) == 0


def test_forked_child_leaves_the_pool_of_its_parent(make: Make) -> None:
    pool = make()
    stream = pool.map(square, range(100))

    def leave() -> None:
        with contextlib.suppress(PoolClosedError), pool:
            for _ in stream:
                pass
        pool.shutdown()
        stream.close()

    with held_elsewhere([pool._mappings._lock, stream._lock]):
        assert in_child(leave) == 0
    assert list(stream) == [n * n for n in range(100)]


def test_stream_of_the_parent_is_at_its_end_in_a_forked_child() -> None:
    with ThreadPool(1) as pool:
        stream = pool.stream(square, range(1000), chunksize=2)
        assert next(stream) == 0

        def take() -> None:
            assert next(stream) == 1  # it had been handed over
            with pytest.raises(PoolClosedError, match="forked"):
                next(stream)

        assert in_child(take) == 0
        assert sum(1 for _ in stream) == 999


def test_forked_child_that_waits_for_a_task_of_its_parent_is_refused() -> None:
    goes_on = threading.Event()
    with ThreadPool(1) as pool:
        running, queued = pool.submit(goes_on.wait), pool.submit(square, 3)

        def wait() -> None:
            for future in (running, queued):
                with pytest.raises(DeadlockError, match="forked"):
                    future.result()

        assert in_child(wait) == 0
        goes_on.set()
        assert queued.result(40) == 9


def test_joblib_in_a_forked_child_makes_pools_of_its_own() -> None:
    joblib = pytest.importorskip("joblib")
    pytest.importorskip("fairlead.pools.joblib")
    shared = importlib.import_module("fairlead.pools.shared")

    def run() -> None:
        with joblib.parallel_config(backend="fairlead", n_jobs=2, kind="threads"):
            assert joblib.Parallel()(joblib.delayed(square)(n) for n in range(4)) == [0, 1, 4, 9]

    with held_elsewhere([shared._lock]):
        assert in_child(run) == 0


def test_thread_of_a_forked_child_inherits_no_callbacks() -> None:
    """It may have the number of a thread that ended with the fork."""
    serving, done = threading.Event(), threading.Event()

    def serve() -> None:
        with aside.Aside("callbacks"):
            serving.set()
            done.wait()

    thread = threading.Thread(target=serve)
    thread.start()
    serving.wait()

    def look() -> None:
        found: list[Any] = []
        other = threading.Thread(target=lambda: found.append(aside.of_this_thread()))
        other.start()
        other.join()
        assert found == [None]

    try:
        assert in_child(look) == 0
    finally:
        done.set()
        thread.join()


def again_in_child(function: Callable[[], object]) -> None:
    assert in_child(function) == 0


def with_multiprocessing(function: Callable[[], object]) -> None:
    process = multiprocessing.get_context("fork").Process(target=function)
    process.start()
    process.join(40)
    assert process.exitcode == 0


def own_pool() -> None:
    with ProcessPool(1) as pool:
        assert pool.submit(square, 3).result(40) == 9


def shared() -> None:
    assert shared_pool("processes", 1).submit(square, 3).result(40) == 9


def own_processes() -> None:
    """What the program does by itself, with the start method that pools use."""
    process = multiprocessing.get_context("forkserver").Process(target=square, args=(3,))
    process.start()
    process.join(40)
    assert process.exitcode == 0


def joblibs() -> None:
    joblib = importlib.import_module("joblib")
    importlib.import_module("fairlead.pools.joblib")
    with joblib.parallel_config(backend="fairlead", n_jobs=2):
        assert joblib.Parallel()(joblib.delayed(square)(n) for n in range(4)) == [0, 1, 4, 9]


@pytest.mark.parametrize("work", [own_pool, shared, joblibs, own_processes])
@pytest.mark.parametrize("fork", [again_in_child, with_multiprocessing])
def test_forked_child_makes_processes_of_its_own(
    work: Callable[[], None], fork: Callable[[Callable[[], object]], None]
) -> None:
    if work is joblibs:
        pytest.importorskip("joblib")

    def both() -> None:
        work()
        again_in_child(work)

    with ProcessPool(1) as pool:
        assert pool.submit(square, 2).result() == 4
        fork(both)
        assert pool.submit(square, 4).result() == 16


def test_locks_of_multiprocessing_that_a_starting_worker_holds_are_free_in_a_forked_child() -> None:
    own_pool()
    with held_elsewhere([forkserver._forkserver._lock, resource_tracker._resource_tracker._lock]):
        again_in_child(own_pool)


FORKED = """
import os, sys
from fairlead.pools import ProcessPool

if __name__ == "__main__":
    with ProcessPool(1, {method!r}) as pool:
        pool.submit(abs, -1).result()
        if {daemon}:
            go, ended = os.pipe()
        child = os.fork()
        if child == 0:
            if {daemon}:
                os.close(ended)
                assert os.read(go, 1) == b""  # the parent is gone, and what it removes
            with ProcessPool(2, {method!r}) as own:
                print(list(own.map(abs, range(-3, 0), chunksize=1)), flush=True)
            sys.exit()
        if not {daemon}:
            print(os.waitpid(child, 0)[1], pool.submit(abs, -4).result())
"""


@pytest.mark.parametrize("daemon", [False, True])
@pytest.mark.parametrize("method", ["forkserver", "spawn", "fork"])
def test_forked_child_ends_as_any_program_and_goes_on_without_its_parent(
    method: str, daemon: bool, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(FORKED.format(method=method, daemon=daemon))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", program], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.stderr == ""
    assert done.stdout == "[3, 2, 1]\n" + "0 4\n" * (not daemon)
