"""Why an event loop's callbacks are late: each cause alone, made by a program that knows it; and that the
endpoint, a recording and ``fairlead top`` tell what the watch says."""

from __future__ import annotations

import asyncio
import ctypes
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from served import ask
from waiting import Thread, run, until

import fairlead.gil
from fairlead.cli.top import Section, SnapshotReader
from fairlead.errors import UnsupportedInterpreterError, UsageError
from fairlead.gil.analysis.analyse import analyse
from fairlead.gil.analysis.together import analyse_together
from fairlead.record.recording import Recording
from fairlead.report.gil import text

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
    while not lag._seen:
        pass


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
    assert any("block (test_gil_loop_lag.py:" in name for name in lag.callbacks)


def behind(lag: fairlead.gil.LoopLag, thread: str) -> float:
    """Seconds of waiting for the GIL behind a thread, wherever it was."""
    return sum(s for name, s in lag.holders.items() if name == thread or name.startswith(f"{thread} in "))


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
        return watched(lambda _lag: wanted.release(), lambda lag: kept >= 3 and behind(lag, "keeper") > 0)
    finally:
        over.set()
        wanted.release()
        keeper.result()


def test_c_call_of_another_thread_that_keeps_the_gil_is_named() -> None:
    lag = kept_waiting()
    assert lag.gil_seconds > 0
    assert behind(lag, "keeper") > 0
    assert sum(lag.holders.values()) == pytest.approx(lag.gil_seconds)


@pytest.mark.timing
def test_c_call_of_another_thread_that_keeps_the_gil_is_the_cause() -> None:
    lag = kept_waiting()
    assert lag.gil_seconds > lag.own_seconds
    assert behind(lag, "keeper") > lag.gil_seconds / 2


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
            # a thread without a core is late in other callbacks, too
            while not any("block (test_gil_loop_lag.py:" in name for name in lag.callbacks):
                block(lag)
                while lag._seen:
                    await asyncio.sleep(0.001)
        return lag

    assert uvloop.run(main()).callbacks


def in_a_thread(name: str, main: object) -> object:
    """Runs it in the loop of a thread of that name, since sums are kept by name for the whole process."""

    def named() -> object:
        threading.current_thread().name = name
        return run(main)  # type: ignore[arg-type]

    return Thread(named).result()


async def late(lag: fairlead.gil.LoopLag) -> None:
    """Makes the loop late, in a callback that is seen, until some of the delay is the callback's own and not
    that of a thread which had no core."""
    while not any(lag.callbacks.values()):
        before = lag.beats
        while lag.beats < before + 2:
            await asyncio.sleep(0.001)
        while not lag._seen:
            time.sleep(0.001)
        while lag._seen:
            await asyncio.sleep(0.001)


def asked(server: fairlead.gil.Server) -> dict[str, float]:
    """Each line of /metrics that is about loops."""
    status, body = 429, ""
    while status == 429:
        status, body = ask(server.port, "/metrics", Authorization=f"Bearer {server.token}")
    lines = (line.rsplit(" ", 1) for line in body.splitlines() if line.startswith("fairlead_loop"))
    return {name: float(value) for name, value in lines}


def test_metrics_of_the_endpoint_are_those_of_the_watch() -> None:
    async def main() -> None:
        with (
            fairlead.gil.serve("0") as server,
            fairlead.gil.watch_loop(interval=0.005, threshold=0.02) as lag,
        ):
            await late(lag)
            told = asked(server)  # in the loop's own thread, so that no beat comes in between
            mine = (line.rsplit(" ", 1) for line in lag.prometheus().splitlines() if line[0] != "#")
            for name, value in mine:
                family, brace, rest = name.partition("{")
                label = f'{family}{{loop="told by metrics"' + (f",{rest}" if brace else "}")
                assert told[label] == pytest.approx(float(value), abs=1e-6)
            for name, seconds in lag.callbacks.items():
                line = f'fairlead_loop_callback_late_seconds_total{{callback="{name}"}}'
                assert told.get(line, 0.0) == pytest.approx(seconds, abs=1e-6)

    in_a_thread("told by metrics", main())


def test_loop_that_is_late_now_is_reported_as_overdue() -> None:
    async def main() -> None:
        with fairlead.gil.serve("0") as server, fairlead.gil.watch_loop(interval=0.005):
            until(lambda: asked(server)['fairlead_loop_overdue_seconds{loop="overdue"}'] > 0)
        with fairlead.gil.serve("0") as server:
            assert asked(server)['fairlead_loop_overdue_seconds{loop="overdue"}'] == 0

    in_a_thread("overdue", main())


def test_recording_and_top_report_what_the_watch_counts(tmp_path: Path) -> None:
    async def main() -> fairlead.gil.LoopLag:
        with fairlead.gil.watch_loop(interval=0.005, threshold=0.02) as earlier:
            await late(earlier)  # before the recording, which does not count it
        with (
            fairlead.gil.record(tmp_path / "loops.flrec"),
            fairlead.gil.watch_loop(interval=0.005, threshold=0.02) as lag,
        ):
            await late(lag)
        return lag

    lag = in_a_thread("told by a recording", main())
    assert isinstance(lag, fairlead.gil.LoopLag)
    recording = Recording(tmp_path / "loops.flrec")
    summary = analyse(recording)
    (loop,) = (loop for loop in summary.loops if loop.name == "told by a recording")
    assert (loop.beats, loop.late, loop.overdue_seconds) == (lag.beats, lag.late, 0)
    for cause in ("own_seconds", "gil_seconds", "core_seconds"):
        assert getattr(loop, cause) == pytest.approx(getattr(lag, cause), abs=1e-6)
    seen = {name: seconds for name, seconds in lag.callbacks.items() if seconds}
    assert dict(summary.callbacks) == pytest.approx(seen, abs=1e-6)
    name = max(lag.callbacks, key=lag.callbacks.__getitem__)
    assert "told by a recording" in text.render(summary)
    assert name[-15:] in text.render(summary, 200)
    assert analyse_together([recording]).loops == summary.loops

    shown: list[list[Section]] = []
    SnapshotReader(tmp_path / "loops.flrec", shown.append).tick()
    remarks = "\n".join(shown[0][0].remarks)
    assert f"event loop told by a recording: {lag.late} of {lag.beats} callbacks late" in remarks
    assert f"callback {name}: " in remarks
