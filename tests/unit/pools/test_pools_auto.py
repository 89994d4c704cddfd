"""A pool that chooses its kind: what it looks at, what follows from it, and what it says."""

from __future__ import annotations

import asyncio
import contextlib
import decimal
import functools
import itertools
import json
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cancelling import Cancelling
from pooltasks import announce_and_ask, ask, square, wait_for
from waiting import Thread, until

from fairlead import errors, machine
from fairlead.pools import AutoPool, Future, ProcessPool, auto, pool
from fairlead.pools.choose.call_profile import CallMeter, CallSample
from fairlead.pools.choose.choice import ChoiceFacts, choose
from fairlead.pools.choose.rules import has_gil
from fairlead.pools.engine.contract import Task
from fairlead.pools.serialization import function

pytestmark = pytest.mark.ends_and_free

COMPUTES = CallSample(0.05, 0.049, held=True)
WAITS = CallSample(0.05, 0.001, held=None)


def nothing() -> None:
    return None


FACTS = ChoiceFacts(
    cores=4, gil=True, makes_coroutines=False, sample=COMPUTES, alone=True, cannot_be_sent=nothing,
    shares=nothing, no_interpreters=None, refusals=dict,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "kind", "workers", "says"),
    [
        ({}, "interpreters", 4, "they hold the GIL"),
        ({"sample": None}, "interpreters", 4, "not known"),
        ({"makes_coroutines": True}, "async", None, "coroutines"),
        ({"sample": WAITS}, "threads", None, "mostly wait"),
        ({"gil": False}, "threads", 4, "no GIL"),
        ({"cores": 1}, "threads", 1, "one core"),
        ({"sample": CallSample(0.05, 0.049, held=False)}, "threads", 4, "let go of the GIL"),
        ({"cannot_be_sent": lambda: "a lock"}, "threads", 4, "not interpreters or processes: a lock"),
        ({"shares": lambda: "f() changes x"}, "threads", 4, "not interpreters or processes: f() changes x"),
        ({"no_interpreters": "too old"}, "processes", 4, "not interpreters: too old"),
        ({"refusals": lambda: {"numpy": "no"}}, "processes", 4, "numpy cannot be imported there"),
        ({"sample": CallSample(0.001, 0.001, held=None)}, "interpreters", 4, "are taken to hold the GIL"),
        ({"sample": CallSample(1e-5, 1e-5, held=None)}, "threads", 4, "sooner than it could be sent"),
        ({"sample": CallSample(1e-5, 1e-5, held=None), "alone": False}, "interpreters", 4, "taken to hold"),
    ],
    ids=lambda value: str(next(iter(value), "all well")) if isinstance(value, dict) else "",
)
def test_kind_follows_from_the_facts(
    changed: dict[str, Any], kind: str, workers: int | None, says: str
) -> None:
    choice = choose(replace(FACTS, **changed))
    assert (choice.kind, choice.workers) == (kind, workers)
    assert says in str(choice)
    assert str(choice).startswith(f"{kind}, because ")


def test_what_costs_something_is_not_asked_where_it_does_not_matter() -> None:
    def never() -> Any:
        raise AssertionError

    facts = replace(FACTS, shares=never, cannot_be_sent=never, refusals=never)
    for changed in ({"gil": False}, {"cores": 1}, {"makes_coroutines": True}):
        choose(replace(facts, **changed))
    choose(replace(FACTS, shares=lambda: "f() changes x", cannot_be_sent=never, refusals=never))
    choose(replace(FACTS, cannot_be_sent=lambda: "a lock", refusals=never))


# functions


async def coroutine() -> None:
    return None


class Called:
    async def __call__(self) -> None:
        return None

    def method(self) -> None:
        import decimal  # noqa: F401


@pytest.mark.parametrize("made", [coroutine, functools.partial(coroutine), Called(), Called().__call__])
def test_functions_that_make_coroutines_are_known(made: Callable[..., Any]) -> None:
    assert function.makes_coroutines(made)
    assert not function.makes_coroutines(square)
    assert not function.makes_coroutines(functools.partial(len))


def test_modules_of_a_function_are_its_own_those_it_imports_or_names_and_those_of_values() -> None:
    assert function.modules(square) == ("pooltasks",)
    assert set(function.modules(Called().method, [decimal.Decimal(1)])) >= {"decimal"}
    assert function.modules(len) == ()
    assert function.modules(functools.partial(json.dumps, indent=1)) == ("json",)
    space: dict[str, Any] = {"json": json, "Decimal": decimal.Decimal, "__name__": "__main__"}
    exec("def f(x):\n    return json.dumps(x) or (lambda: Decimal(x))", space)
    assert function.modules(space["f"]) == ("decimal", "json")


@pytest.mark.skipif(sys.version_info < (3, 13), reason="there are no interpreters to choose before 3.13")
def test_module_that_refuses_subinterpreters_is_found_out_once_in_another_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = function.refusals(["readline", "json", "no.such.module"])
    assert "readline" in found["readline"]
    assert "no" in found["no.such.module"]
    assert "json" not in found
    assert "numpy" in function.refusals(["numpy"])
    monkeypatch.setattr(function, "_try", None)
    assert function.refusals(["readline", "json"]) == {"readline": found["readline"]}


# samples


def compute() -> None:
    while time.thread_time() < 0.03:
        pass


@pytest.mark.parametrize("call", [compute, functools.partial(time.sleep, 0.1)], ids=["computes", "waits"])
def test_sample_of_a_call_is_its_time_and_that_on_a_core(call: Callable[[], None]) -> None:
    meter = CallMeter()
    meter.expect()
    used: list[float] = []

    def body() -> None:
        meter.begin()
        used.append(time.thread_time())
        call()
        used.append(time.thread_time())
        meter.end()
        used.append(time.thread_time())

    thread = Thread(body)
    sample = meter.watch(40)
    thread.result()
    assert sample is not None
    assert used[1] - used[0] <= sample.busy_s <= used[2]
    assert sample.wall_s >= sample.busy_s
    assert call is compute or sample.wall_s > 0.09


def test_sample_of_a_call_whose_thread_ends_meanwhile_is_that_of_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    meter = CallMeter()
    meter.expect()
    begun, go = threading.Event(), threading.Event()

    def body() -> None:
        meter.begin()
        begun.set()
        go.wait()
        meter.end()

    thread = Thread(body)
    begun.wait()
    look = meter._read

    def look_too_late() -> tuple[float, float]:
        if threading.current_thread() is not thread:
            go.set()
            thread.join()
        return look()

    monkeypatch.setattr(meter, "_read", look_too_late)
    sample = meter.watch(40)
    assert sample is not None
    assert sample.busy_s > 0
    assert sample.wall_s > 0


def test_sample_of_a_call_that_is_kept_from_its_core_all_the_time_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = itertools.count(10**6, 10**6)
    monkeypatch.setattr("fairlead.pools.choose.call_profile.run_delay_ns", lambda _: next(waits))
    meter = CallMeter()
    meter.expect()
    meter.begin()
    meter.end()
    sample = meter.watch(0)
    assert sample is not None
    assert 0 < sample.busy_s <= sample.wall_s


def test_sample_of_a_call_that_never_began_is_none() -> None:
    meter = CallMeter()
    meter.expect()
    assert meter.watch(0.001) is None


# the pool


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Callable[[CallSample], None]:
    """Has the first calls look so."""
    return lambda sample: monkeypatch.setattr(CallMeter, "watch", lambda *_: sample)


def test_pool_by_default_chooses_and_says_why(seen: Callable[[CallSample], None]) -> None:
    seen(WAITS)
    with pool(max_workers=3) as chosen:
        assert isinstance(chosen, AutoPool)
        assert chosen.choice is None
        assert chosen.workers == 3
        go = threading.Event()
        first = chosen.submit(go.wait, 30)
        assert chosen.choice is not None
        assert chosen.choice.kind == "threads"
        assert "wait" in str(chosen.choice)
        go.set()
        assert first.result()
        assert list(chosen.map(square, range(20))) == [n * n for n in range(20)]
        numbers = chosen.statistics()
        assert (numbers.kind, numbers.workers, numbers.queued) == ("threads", 3, 0)


def test_first_call_is_looked_at_once_it_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    begins, looks = threading.Event(), []
    monkeypatch.setattr(CallMeter, "watch", lambda meter, _: looks.append(meter.has_begun))
    with pool(initializer=begins.wait) as chosen:
        first = chosen.submit(square, 3)
        until(lambda: chosen._engine._threads._slots)
        begins.set()
        assert first.result() == 9
        assert chosen.choice is not None
    assert looks == [True]


def test_first_call_that_never_begins_keeps_the_pool_from_no_choice(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with pool(max_workers=1, initializer=wait_for, initargs=(str(gate),)) as chosen:
        first, second = chosen.submit(square, 2), chosen.submit(square, 3)
        assert first.cancel()
        gate.touch()
        assert chosen.choice is not None
        assert second.result(40) == 9


@pytest.mark.skipif(
    machine.cores().usable < 2 or not has_gil(), reason="without a GIL, or with one core, nothing is won"
)
def test_pool_sends_computing_functions_to_workers_with_their_own_gil(
    seen: Callable[[CallSample], None],
) -> None:
    seen(COMPUTES)
    with pool(max_workers=1) as chosen:
        first, choice = chosen.submit(ask), chosen.choice
        result = chosen.submit(square, 3).result()
        assert first.cancel()
    assert result == 9
    assert choice is not None
    assert choice.kind in ("interpreters", "processes")


@pytest.mark.parametrize(
    ("owner", "step", "function", "arguments"),
    [
        (Task, "begin", asyncio.sleep, (0, 9)),  # coroutines are passed on without a look
        (Future, "hand_over", asyncio.sleep, (0, 9)),
        (Future, "hand_over", square, (3,)),
    ],
)
def test_cancel_of_a_task_while_it_is_passed_on_answers_exactly(
    owner: Any,
    step: str,
    function: Callable[..., Any],
    arguments: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = getattr(owner, step)
    cancel = Cancelling()

    def and_cancel(one: Any, *args: Any) -> bool:
        done = original(one, *args)
        if not cancel.threads:
            cancel(one if owner is Future else one.future)
        return done

    monkeypatch.setattr(owner, step, and_cancel)
    with pool(max_workers=1) as chosen:
        future = chosen.submit(function, *(arguments if owner is Future else (3600,)))
        with contextlib.suppress(CancelledError):
            assert future.result(20) == 9
        assert cancel.answer() is future.cancelled()
        assert future.cancelled() or owner is Future
        assert chosen.submit(function, *arguments).result(20) == 9


LOCK = threading.Lock()


@pytest.mark.parametrize(
    ("hooks", "arguments"),
    [
        ({}, (LOCK,)),
        ({"initializer": lambda: LOCK.locked()}, ()),
        ({"initializer": isinstance, "initargs": (LOCK, object)}, ()),
        ({"finalizer": lambda: LOCK.locked()}, ()),
    ],
    ids=["argument", "initializer", "initargs", "finalizer"],
)
def test_pool_keeps_what_cannot_be_sent_in_this_process(
    hooks: dict[str, Any], arguments: tuple[object, ...], seen: Callable[[CallSample], None]
) -> None:
    seen(COMPUTES)
    with pool(**hooks) as chosen:
        future, choice = chosen.submit(lambda *_: ask(), *arguments), chosen.choice
        assert future.cancel()
    assert choice is not None
    assert choice.kind == "threads"


def test_pool_runs_coroutines_on_a_loop() -> None:
    async def identity(value: int) -> int:
        await asyncio.sleep(0)
        return value

    with pool() as chosen:
        assert list(chosen.map(identity, range(30))) == list(range(30))
        assert chosen.choice is not None
        assert str(chosen.choice) == "async, because the function makes coroutines"


def test_pool_asked_for_by_name_is_of_that_kind() -> None:
    with pool("processes", 1) as made:
        assert isinstance(made, ProcessPool)
    with pytest.raises(errors.UsageError, match="there are auto, sequential"):
        pool("magic")


def test_pool_closed_while_it_chooses_finishes_what_it_took() -> None:
    chosen = pool()
    futures = [chosen.submit(square, n) for n in range(10)]
    chosen.shutdown()
    assert [future.result(0) for future in futures] == [n * n for n in range(10)]
    with pytest.raises(errors.PoolClosedError):
        chosen.submit(square, 2)


class Pause:
    """Once so many tasks have been passed on, the thread that decides waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
        self.reached, self.over = threading.Event(), threading.Event()
        self._left = after
        pass_on = auto._Auto._pass_on

        def pass_on_and_wait(engine: Any, task: Any, to: Any) -> None:
            pass_on(engine, task, to)
            self._left -= 1
            if self._left == 0:
                self.reached.set()
                assert self.over.wait(40)

        monkeypatch.setattr(auto._Auto, "_pass_on", pass_on_and_wait)


@pytest.mark.parametrize("passed_on", [0, 2])  # one is for a look
def test_pool_terminated_while_the_first_call_runs_or_others_are_passed_on_stops_them(
    passed_on: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    threads = threading.active_count()
    pause = Pause(monkeypatch, after=passed_on)
    chosen = pool(max_workers=1)
    futures = [chosen.submit(announce_and_ask, str(tmp_path / "begun")) for _ in range(3)]
    until(pause.reached.is_set if passed_on else (tmp_path / "begun").exists)
    chosen.terminate()
    pause.over.set()
    chosen.shutdown()
    assert all(future.cancelled() for future in futures)
    until(lambda: threading.active_count() <= threads)


def test_pool_shut_down_while_tasks_are_passed_on_cancels_those_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pause, go, begun = Pause(monkeypatch, after=3), threading.Event(), []

    def wait(number: int) -> int:
        begun.append(number)
        assert go.wait(40)
        return number

    chosen = pool(max_workers=1)
    futures = [chosen.submit(wait, number) for number in range(4)]
    assert pause.reached.wait(40)
    until(lambda: len(begun) == 2)
    chosen.shutdown(wait=False, cancel_futures=True)
    pause.over.set()
    assert chosen.choice is not None
    go.set()
    chosen.shutdown()
    assert begun == [0, 1]
    assert [future.cancelled() for future in futures] == [False, False, True, True]
