"""StartGate: threads and tasks gather, all pass when it opens, and whoever comes later passes too."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from waiting import PATIENCE_S, Thread, until, waiting_thread

from fairlead.errors import UsageError
from fairlead.sync import StartGate

pytestmark = pytest.mark.ends_and_free


def test_gate_holds_threads_until_it_opens() -> None:
    gate, passed = StartGate(), []
    with gate as entered:
        assert entered is gate
        threads = [Thread(gate.behind(lambda x, y: passed.append((x, y)) or x), i, -i) for i in range(40)]
        until(lambda: gate.statistics() == (False, 40))
        assert passed == []
        assert "closed" in repr(gate)
    assert [thread.result() for thread in threads] == list(range(40))
    assert sorted(passed) == [(i, -i) for i in range(40)]
    assert gate.is_open()
    assert gate.wait()
    assert gate.wait(0)
    gate.open()
    assert gate.statistics() == (True, 0)


def test_gate_opens_when_the_block_fails() -> None:
    gate = StartGate()
    thread = waiting_thread(gate, gate.wait)
    with pytest.raises(KeyError), gate:
        raise KeyError
    assert thread.result() is True


@pytest.mark.parametrize("processes", [False, True])
def test_wait_at_a_closed_gate_ends_with_its_time(processes: bool) -> None:
    gate = StartGate(processes=processes)
    assert not gate.wait(0)
    assert not gate.wait(timeout=0.001)
    for timeout in (-2, float("nan")):
        with pytest.raises(ValueError, match="non-negative"):
            gate.wait(timeout)
    gate.open()
    gate.open()
    assert gate.wait(0)
    assert gate.wait()
    assert gate.is_open()


def test_chain_of_wake_ups_passes_tasks_and_waiters_that_left() -> None:
    gate = StartGate()

    async def main() -> None:
        async def body() -> Any:
            return await gate.wait_async()

        tasks = [asyncio.ensure_future(body()) for _ in range(5)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        joined.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert results[1:] == [True] * 4

    joined = threading.Event()
    threads: list[Thread] = []
    for number in range(12):
        threads.append(Thread(gate.wait))
        if number == 3:
            loop = Thread(asyncio.run, main())
            assert joined.wait(PATIENCE_S)
    impatient = [Thread(gate.wait, 0.0001) for _ in range(5)]
    until(lambda: gate.statistics().waiting >= 16)
    gate.open()
    loop.result()
    assert all(thread.result() for thread in threads)
    for one in impatient:
        one.result()
    assert gate.statistics() == (True, 0)


def test_gate_of_processes_is_shared_by_threads_but_not_by_tasks() -> None:
    gate = StartGate(processes=True)
    threads = [Thread(gate.wait) for _ in range(3)]
    with pytest.raises(UsageError, match="tasks cannot wait"):
        gate.wait_async()
    gate.open()
    assert all(thread.result() for thread in threads)
