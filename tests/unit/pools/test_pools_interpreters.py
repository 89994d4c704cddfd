"""What pools of interpreters promise besides: what can be sent, how they are stopped, no remains."""

from __future__ import annotations

import array
import functools
import operator
import os
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from poolkinds import pass_time
from pooltasks import (
    ReadAfter,
    WithBuffer,
    identity,
    import_readline,
    make_view,
    set_first,
    spin,
    square,
    type_of_buffer,
    wait_for,
)
from waiting import PATIENCE_S, until

from fairlead import errors
from fairlead.pools import Future, InterpreterPool
from fairlead.sync import Event, SimpleQueue

_interpreters = pytest.importorskip("_interpreters", reason="has no interpreters with a pool")


def interpreters() -> int:
    return len(_interpreters.list_all())


@pytest.fixture
def pool() -> Iterator[InterpreterPool]:
    with InterpreterPool(1) as pool:
        yield pool


def test_pool_leaves_no_interpreter_and_views_of_its_results_outlive_it() -> None:
    threads, before = threading.active_count(), interpreters()
    with InterpreterPool(2) as pool:
        assert list(pool.map(square, range(50))) == [n * n for n in range(50)]
        assert interpreters() > before
    assert threading.active_count() <= threads  # those of other tests end meanwhile
    assert interpreters() <= before
    with InterpreterPool(1) as pool:
        view = pool.submit(make_view, 100_000).result()
    assert bytes(view) == b"v" * 100_000


def test_worker_imports_neither_pickle_nor_typing_before_a_call_needs_them() -> None:
    one = _interpreters.create()
    try:
        program = f"""
import sys
sys.path[:] = {sys.path!r}
before = set(sys.modules)
from fairlead.pools.interpreter import worker
needless = {{"pickle", "typing", "collections"}} & set(sys.modules) - before
assert not needless, needless
"""
        assert _interpreters.exec(one, program) is None
    finally:
        _interpreters.destroy(one)


@pytest.mark.parametrize("one_core", [False, True])
def test_worker_that_has_nothing_to_do_falls_asleep_and_is_woken(one_core: bool) -> None:
    before = os.sched_getaffinity(0)  # of this thread, and of those that it starts
    os.sched_setaffinity(0, {min(before)} if one_core else before)
    try:
        with InterpreterPool(1) as pool:
            thread = pool.submit(threading.get_native_id).result()
            state = Path(f"/proc/self/task/{thread}/stat")
            for n in range(5):
                until(lambda: state.read_text().rpartition(")")[2].split()[0] == "S")
                assert pool.submit(square, n).result() == n * n
    finally:
        os.sched_setaffinity(0, before)


def test_task_in_an_endless_loop_is_cancelled_and_its_interpreter_replaced(pool: InterpreterPool) -> None:
    before = interpreters()
    endless = pool.submit(spin)
    until(endless.running)
    assert endless.cancel()
    assert endless.cancelled()
    assert pool.submit(square, 3).result() == 9
    until(lambda: interpreters() <= before + 1)  # those of other tests end meanwhile
    assert pool.statistics().restarts == 1


def test_module_that_refuses_is_named_with_the_kinds_that_work(pool: InterpreterPool) -> None:
    pytest.importorskip("readline")
    with pytest.raises(errors.ModuleRefusedError, match=r"readline.*ProcessPool") as caught:
        pool.submit(import_readline).result()
    assert caught.value.name == "readline"


def test_large_bytes_and_views_come_back_equal_and_let_go_of_what_they_refer_to(
    pool: InterpreterPool,
) -> None:
    class Data(bytearray):
        """With weak references."""

    data = Data(256_000)
    gone = weakref.ref(data)
    assert pool.submit(identity, bytes(data)).result() == data
    assert pool.submit(len, memoryview(data)).result() == len(data)
    del data
    pool.submit(square, 1).result()
    until(lambda: gone() is None)


def test_views_are_of_the_same_bytes_and_buffers_of_pickles_go_beside_them(pool: InterpreterPool) -> None:
    numbers = array.array("d", range(10_000))
    there_and_back = pool.submit(identity, memoryview(numbers)).result()
    assert (there_and_back.format, there_and_back.shape) == ("d", (10_000,))
    there_and_back[3] = -1.0
    assert numbers[3] == -1.0
    assert pool.submit(set_first, memoryview(numbers), 7.0).result() is None
    assert numbers[0] == 7.0
    assert pool.submit(type_of_buffer, WithBuffer(bytearray(b"x" * 50_000))).result() == (
        "memoryview",
        50_000,
    )


@pytest.mark.parametrize(
    "waiting",
    [
        lambda event: event.wait,
        lambda event: lambda: event.wait(),
        lambda event: functools.partial(Event.wait, event),
    ],
    ids=["method", "closure", "partial"],
)
def test_primitives_that_a_function_takes_along_are_shared(
    pool: InterpreterPool, waiting: Callable[[Event], Callable[[], bool]]
) -> None:
    event = Event()
    future = pool.submit(waiting(event))
    event.set()
    assert future.result(PATIENCE_S) is True


@pytest.mark.parametrize("hook", ["initializer", "finalizer"])
def test_primitives_of_hooks_are_shared_with_every_worker(hook: str) -> None:
    line = SimpleQueue[None]()
    hooks: dict[str, Any] = {hook: lambda: line.put(None)}
    with InterpreterPool(1, max_tasks_per_child=1, **hooks) as pool:
        assert [pool.submit(square, n).result(PATIENCE_S) for n in (2, 3)] == [4, 9]
    assert line.qsize() == 2


def test_primitives_of_an_initializer_live_as_long_as_the_pool() -> None:
    event = Event()
    event.set()
    with InterpreterPool(1, "", operator.methodcaller("wait"), (event,), max_tasks_per_child=1) as pool:
        del event
        assert [pool.submit(square, n).result(PATIENCE_S) for n in (2, 3)] == [4, 9]


def test_method_of_an_object_that_has_changed_is_sent_anew(pool: InterpreterPool) -> None:
    numbers = [1]
    count = numbers.count

    def counted() -> int:
        return count(1)

    assert (pool.submit(count, 1).result(), pool.submit(counted).result()) == (1, 1)
    numbers.append(1)
    assert (pool.submit(count, 1).result(), pool.submit(counted).result()) == (2, 2)


def test_pool_in_an_interpreter_that_ends_with_tasks_queued_does_them_and_ends(tmp_path: Path) -> None:
    before = interpreters()
    inner = _interpreters.create()
    failed = _interpreters.exec(
        inner,
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import os\n"
        "from fairlead.pools import InterpreterPool\n"
        "from pooltasks import square\n"
        "pool = InterpreterPool(1)\n"
        "assert pool.submit(square, 3).result() == 9\n"
        f"tasks = [pool.submit(os.mkdir, {str(tmp_path)!r} + f'/{{n}}') for n in range(10)]\n",
    )
    _interpreters.destroy(inner)
    assert failed is None
    assert interpreters() <= before
    assert len(list(tmp_path.iterdir())) == 10


def test_interrupted_submission_loses_no_item_of_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is on the board, and when nobody but the submitting thread knows of it."""
    with InterpreterPool(1) as pool:
        stream = pool.stream(square, range(6), chunksize=1, window=1)
        assert next(stream) == 0
        job = pool._engine._job

        def interrupted(*_: Any, **__: Any) -> Any:
            monkeypatch.setattr(pool._engine, "_job", job)
            raise KeyboardInterrupt

        monkeypatch.setattr(pool._engine, "_job", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(stream)
        assert list(stream) == [1, 4, 9, 16, 25]


class OfMain:
    """Goes by reference first, which no worker can read."""


@pytest.fixture
def of_main(monkeypatch: pytest.MonkeyPatch) -> OfMain:
    monkeypatch.setattr(OfMain, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "OfMain", OfMain, raising=False)
    return OfMain()


def test_pool_that_is_closed_at_once_sends_by_value_what_needs_that(of_main: OfMain) -> None:
    for waits in (False, True):
        with InterpreterPool(1) as pool:
            task = pool.submit(operator.is_not, of_main, None)
            waiting = threading.Thread(target=task.exception)
            if waits:
                waiting.start()
        assert task.result(0) is True
        if waits:
            waiting.join()


def test_cancel_of_a_task_that_is_about_to_be_posted(monkeypatch: pytest.MonkeyPatch) -> None:
    with InterpreterPool(1) as pool:
        future: Future[int] = Future()
        job = pool._engine._job

        def cancelled_job(task: Any) -> Any:
            task.job = job(task)
            assert future.cancel()
            return task.job

        monkeypatch.setattr(pool._engine, "_job", cancelled_job)
        pool._submit(operator.add, (1, 2), {}, future)
        assert future.cancelled()
        monkeypatch.undo()
        assert pool.submit(operator.add, 1, 2).result() == 3


@pytest.mark.parametrize("why", ["unreadable", "lost"])
def test_time_does_not_run_while_a_task_waits_for_a_further_attempt(
    why: str, tmp_path: Path, of_main: OfMain
) -> None:
    path, ends = str(tmp_path / "read"), str(tmp_path / "ended")
    args = (ReadAfter(path), of_main) if why == "unreadable" else (ReadAfter(path, ends), None)
    gate = tmp_path / "gate"
    with InterpreterPool(1) as pool:
        task = pool.with_options(timeout=1000, retries=1).submit(operator.is_not, *args)
        until(lambda: pool._engine._timed)
        behind = pool.submit(wait_for, str(gate))
        Path(path).touch()
        until(behind.running)
        until(lambda: pool.statistics().queued)  # the task, behind it
        pass_time(pool)
        gate.touch()
        assert task.result(20) is True


TRACED = """
import sys, tracemalloc
from fairlead import errors
from fairlead.pools import InterpreterPool, pool
from fairlead.pools.choose import rules

def compute(n):
    return sum(len(str(i)) for i in range(n))

when = sys.argv[1]
if when == "before":
    tracemalloc.start()
    try:
        InterpreterPool(1)
    except errors.UnsupportedInterpreterError as error:
        assert "tracemalloc.stop()" in str(error)
    assert "tracemalloc" in rules.no_interpreters()
else:
    for _ in range(3):
        with InterpreterPool(2) as made:
            want = list(map(compute, range(90)))
            assert list(made.map(compute, range(90))) == want
            tracemalloc.start()
            assert list(made.map(compute, range(90))) == want
            tracemalloc.take_snapshot()
        if when == "after":
            tracemalloc.stop()
        else:
            break
print("well")
"""


@pytest.mark.parametrize("when", ["before", "after", "until the end"])
def test_tracing_of_memory_crashes_no_program(when: str, tmp_path: Path) -> None:
    if when == "before" and sys.version_info >= (3, 15):
        pytest.skip("interpreters and tracemalloc get on there")
    program = tmp_path / "traced.py"
    program.write_text(TRACED)
    done = subprocess.run([sys.executable, program, when], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "well\n"), done.stderr


@pytest.mark.skipif(sys.version_info >= (3, 15), reason="interpreters and tracemalloc get on there")
def test_worker_that_is_needed_while_memory_is_traced_breaks_the_pool() -> None:
    import tracemalloc  # not in workers, which import this file

    with InterpreterPool(1, max_tasks_per_child=1) as pool:
        assert pool.submit(square, 3).result() == 9
        tracemalloc.start()
        try:
            refused = pool.submit(square, 4)
            assert isinstance(refused.exception(), errors.BrokenPoolError)
            assert re.search(r"tracemalloc traces.*; call tracemalloc\.stop\(\)", str(refused.exception()))
        finally:
            tracemalloc.stop()
        with pytest.raises(errors.BrokenPoolError, match="tracemalloc traces"):
            pool.submit(square, 5)


def _name_of_the_thread() -> str:
    import threading

    return threading.current_thread().name


def test_worker_knows_its_threads_name() -> None:
    with InterpreterPool(1, thread_name_prefix="calc") as pool:
        assert pool.submit(_name_of_the_thread).result() == "calc-1"
