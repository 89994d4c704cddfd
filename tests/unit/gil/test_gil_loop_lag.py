"""Why an event loop's callbacks are late: each cause alone, made by a program that knows it."""

from __future__ import annotations

import asyncio
import ctypes
import threading
import time
from collections.abc import Callable

import pytest
from waiting import Thread, run, until

import fairlead.gil
from fairlead.errors import UnsupportedInterpreterError, UsageError

try:
    with fairlead.gil.observe():
        pass
except UnsupportedInterpreterError as error:
    pytest.skip(str(error), allow_module_level=True)

HOLD_S = 0.1
"""How long a program makes the loop late, at a time."""


def watched(
    while_it_waits: Callable[[fairlead.gil.LoopLag], object],
    enough: Callable[[fairlead.gil.LoopLag], bool] = lambda lag: lag.late >= 3,
) -> fairlead.gil.LoopLag:
    """The lag of a loop whose main coroutine calls this and awaits, again and again, until that is enough."""

    async def main() -> fairlead.gil.LoopLag:
        with fairlead.gil.watch_loop(interval=0.005, threshold=0.02) as lag:
            while not enough(lag):
                before = lag.beats
                while lag.beats < before + 2:
                    await asyncio.sleep(0.001)
                while_it_waits(lag)
            await asyncio.sleep(0.03)
        return lag

    found = run(main())
    assert isinstance(found, fairlead.gil.LoopLag)
    assert found.late > 0
    assert found.own_seconds + found.gil_seconds + found.core_seconds == pytest.approx(found.late_seconds)
    return found


def compute(lag: fairlead.gil.LoopLag) -> None:
    """Until the watch has looked which callback this is."""
    until(lambda: lag._seen)


def block(lag: fairlead.gil.LoopLag) -> None:
    """Until then, too."""
    while not lag._seen:
        time.sleep(0.001)


def test_callback_that_computes_is_named_as_the_cause() -> None:
    lag = watched(lambda lag: asyncio.get_running_loop().call_soon(compute, lag))
    (name,) = (name for name in lag.callbacks if "compute (test_gil_loop_lag.py:" in name)
    assert name in str(lag)


def test_coroutine_that_blocks_is_named_as_the_cause() -> None:
    lag = watched(block)
    assert any("main (test_gil_loop_lag.py:" in name for name in lag.callbacks)


def kept_waiting() -> fairlead.gil.LoopLag:
    """The lag of a loop while another thread keeps the GIL in C."""
    keep_the_gil = ctypes.PyDLL(None).usleep
    wanted, over, kept = threading.Semaphore(0), threading.Event(), 0

    def keep() -> None:
        nonlocal kept
        while not over.is_set():
            wanted.acquire()
            if not over.is_set():
                keep_the_gil(int(HOLD_S * 1e6))
                kept += 1

    keeper = Thread(keep)
    keeper.name = "keeper"
    try:
        return watched(lambda _lag: wanted.release(), lambda lag: kept >= 3 and lag.holders["keeper"] > 0)
    finally:
        over.set()
        wanted.release()
        keeper.result()


def test_c_call_of_another_thread_that_keeps_the_gil_is_named() -> None:
    lag = kept_waiting()
    assert lag.gil_seconds > 0
    assert lag.holders["keeper"] > 0
    assert sum(lag.holders.values()) == pytest.approx(lag.gil_seconds)


@pytest.mark.timing
def test_c_call_of_another_thread_that_keeps_the_gil_is_the_cause() -> None:
    lag = kept_waiting()
    assert lag.gil_seconds > lag.own_seconds
    assert lag.holders["keeper"] > lag.gil_seconds / 2


def test_loop_that_has_nothing_to_do_is_not_made_late_by_being_watched() -> None:
    async def main() -> fairlead.gil.LoopLag:
        with fairlead.gil.watch_loop(interval=0.001, threshold=60) as lag:
            while lag.beats < 20:
                await asyncio.sleep(0.001)
        return lag

    lag = run(main())
    assert (lag.late, lag.late_seconds, dict(lag.callbacks)) == (0, 0.0, {})
    assert f"0 of {lag.beats} callbacks were late" in str(lag)


def test_histogram_counts_every_callback_and_its_causes_add_up() -> None:
    lag = watched(lambda _lag: time.sleep(HOLD_S))
    lines = dict(line.rsplit(" ", 1) for line in lag.prometheus().splitlines() if line[0] != "#")
    assert int(lines['fairlead_loop_lag_seconds_bucket{le="+Inf"}']) == lag.beats
    assert int(lines["fairlead_loop_lag_seconds_count"]) == lag.beats
    causes = [
        float(lines[f'fairlead_loop_late_seconds_total{{cause="{cause}"}}'])
        for cause in ("own", "gil", "core")
    ]
    assert sum(causes) == pytest.approx(lag.late_seconds)
    assert float(lines["fairlead_loop_lag_seconds_sum"]) >= lag.late_seconds


def test_nothing_of_a_watch_is_left_after_it() -> None:
    watched(lambda _lag: time.sleep(HOLD_S), lambda lag: lag.late > 0)
    until(lambda: all(thread.name != "fairlead-loop-watch" for thread in threading.enumerate()))


@pytest.mark.parametrize(
    "arguments", [{"interval": 0}, {"interval": 61}, {"threshold": 0}, {"threshold": -1}]
)
def test_times_out_of_range_are_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=r"from 0\.001 to 60 seconds"):
        fairlead.gil.watch_loop(**arguments)


def test_without_a_running_loop_there_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(UsageError, match="enter it in a coroutine"), fairlead.gil.watch_loop():
        pass


def test_in_a_loop_of_uvloop_the_callback_is_named_too() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> fairlead.gil.LoopLag:
        with fairlead.gil.watch_loop(interval=0.005, threshold=0.02) as lag:
            await asyncio.sleep(0.05)
            block(lag)
            while not lag.callbacks:
                await asyncio.sleep(0.001)
        return lag

    lag = uvloop.run(main())
    assert any("main (test_gil_loop_lag.py:" in name for name in lag.callbacks)
