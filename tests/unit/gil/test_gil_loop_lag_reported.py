"""What the endpoint, a recording and ``fairlead top`` tell of a watched event loop: what the watch says."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest
from served import ask
from waiting import Thread, run, until

import fairlead.gil
from fairlead.cli.top import Section, SnapshotReader
from fairlead.errors import UnsupportedInterpreterError
from fairlead.gil.analysis.analyse import analyse
from fairlead.gil.analysis.together import analyse_together
from fairlead.record.recording import Recording
from fairlead.report.gil import text

try:
    with fairlead.gil.observe():
        pass
except UnsupportedInterpreterError as error:
    pytest.skip(str(error), allow_module_level=True)


def in_a_thread(name: str, main: object) -> object:
    """Runs it in the loop of a thread of that name, since sums are kept by name for the whole process."""

    def named() -> object:
        threading.current_thread().name = name
        return run(main)  # type: ignore[arg-type]

    return Thread(named).result()


async def late(lag: fairlead.gil.LoopLag, times: int) -> None:
    """Makes the loop late, in a callback that is seen."""
    for _ in range(times):
        before = lag.beats
        while lag.beats < before + 2:
            await asyncio.sleep(0.001)
        while not lag._seen:
            time.sleep(0.001)
    while lag._seen:
        await asyncio.sleep(0.001)


def asked(port: int) -> dict[str, float]:
    """Each line of /metrics that is about loops."""
    status, body = ask(port, "/metrics")
    while status == 429:
        status, body = ask(port, "/metrics")
    lines = (line.rsplit(" ", 1) for line in body.splitlines() if line.startswith("fairlead_loop"))
    return {name: float(value) for name, value in lines}


def test_metrics_of_the_endpoint_are_those_of_the_watch() -> None:
    async def main() -> None:
        with (
            fairlead.gil.serve("0") as server,
            fairlead.gil.watch_loop(interval=0.005, threshold=0.02) as lag,
        ):
            await late(lag, 2)
            told = asked(server.port)  # in the loop's own thread, so that no beat comes in between
            mine = (line.rsplit(" ", 1) for line in lag.prometheus().splitlines() if line[0] != "#")
            for name, value in mine:
                family, brace, rest = name.partition("{")
                label = f'{family}{{loop="told by metrics"' + (f",{rest}" if brace else "}")
                assert told[label] == pytest.approx(float(value), abs=1e-6)
            for name, seconds in lag.callbacks.items():
                line = f'fairlead_loop_callback_late_seconds_total{{callback="{name}"}}'
                assert told[line] == pytest.approx(seconds, abs=1e-6)

    in_a_thread("told by metrics", main())


def test_loop_that_is_late_now_is_reported_as_overdue() -> None:
    async def main() -> None:
        with fairlead.gil.serve("0") as server, fairlead.gil.watch_loop(interval=0.005):
            until(lambda: asked(server.port)['fairlead_loop_overdue_seconds{loop="overdue"}'] > 0)
        with fairlead.gil.serve("0") as server:
            assert asked(server.port)['fairlead_loop_overdue_seconds{loop="overdue"}'] == 0

    in_a_thread("overdue", main())


def test_recording_and_top_report_what_the_watch_counts(tmp_path: Path) -> None:
    async def main() -> fairlead.gil.LoopLag:
        with fairlead.gil.watch_loop(interval=0.005, threshold=0.02) as earlier:
            await late(earlier, 1)  # before the recording, which does not count it
        with (
            fairlead.gil.record(tmp_path / "loops.flrec"),
            fairlead.gil.watch_loop(interval=0.005, threshold=0.02) as lag,
        ):
            await late(lag, 1)
        return lag

    lag = in_a_thread("told by a recording", main())
    assert isinstance(lag, fairlead.gil.LoopLag)
    recording = Recording(tmp_path / "loops.flrec")
    summary = analyse(recording)
    (loop,) = (loop for loop in summary.loops if loop.name == "told by a recording")
    assert (loop.beats, loop.late, loop.overdue_seconds) == (lag.beats, lag.late, 0)
    for cause in ("own_seconds", "gil_seconds", "core_seconds"):
        assert getattr(loop, cause) == pytest.approx(getattr(lag, cause), abs=1e-6)
    assert dict(summary.callbacks) == pytest.approx(dict(lag.callbacks), abs=1e-6)
    name = max(lag.callbacks, key=lag.callbacks.__getitem__)
    assert "told by a recording" in text.render(summary)
    assert name[-15:] in text.render(summary, 200)
    assert analyse_together([recording]).loops == summary.loops

    shown: list[list[Section]] = []
    SnapshotReader(tmp_path / "loops.flrec", shown.append).tick()
    remarks = "\n".join(shown[0][0].remarks)
    assert f"event loop told by a recording: {lag.late} of {lag.beats} callbacks late" in remarks
    assert f"callback {name}: " in remarks
