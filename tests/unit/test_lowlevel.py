"""The kit: a waiter is granted or cancelled, never both; a loop of one's own; the documented lock."""

from __future__ import annotations

import asyncio
import re
import select
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

from waiting import PATIENCE_S, Thread, until

from fairlead.lowlevel import Port, Waiter, add_loop, current_port, current_task
from fairlead.sync import Lock, SimpleQueue

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "lowlevel.md"


def test_waiter_is_granted_once_and_then_not_cancelled() -> None:
    waiter: Waiter[str] = Waiter()
    assert waiter.wait(0) is False
    thread = Thread(waiter.wait)
    assert waiter.grant("value") is True
    assert thread.result() is True
    assert waiter.value == "value"
    assert waiter.grant("other") is False
    assert waiter.cancel() is False
    assert waiter.value == "value"


def test_waiter_that_is_cancelled_is_not_granted() -> None:
    waiter: Waiter[str] = Waiter()
    assert waiter.cancel() is True
    assert waiter.cancel() is False
    assert waiter.grant("value") is False
    assert waiter.value is None
    assert waiter.wait(0) is False


def test_of_a_grant_and_a_cancellation_at_once_one_wins() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(200):
            waiter: Waiter[int] = Waiter()
            start = threading.Barrier(3)
            threads = [
                Thread(lambda call, start=start: (start.wait(), call())[1], call)
                for call in (waiter.grant, waiter.cancel, waiter.grant)
            ]
            assert sum(thread.result() for thread in threads) == 1
    finally:
        sys.setswitchinterval(interval)


def documented() -> Any:
    """The class of the page, as it stands there."""
    (source,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        if "class LifoLock" in block
    )
    made = source.partition("# in use")[0]
    assert sum(map(bool, made[made.index("class LifoLock") :].split("\n"))) <= 32
    scope: dict[str, Any] = {"__name__": "page"}
    exec(made, scope)
    return scope["LifoLock"]


def test_documented_lock_excludes_threads_and_tasks() -> None:
    lock, inside = documented()(), [0]

    def thread() -> None:
        for _ in range(100):
            assert lock.acquire()
            seen = inside[0]
            inside[0] = seen + 1
            lock.release()

    async def task() -> None:
        for _ in range(100):
            await lock.acquire_async()
            seen = inside[0]
            await asyncio.sleep(0)
            inside[0] = seen + 1
            lock.release()

    async def main() -> None:
        await asyncio.gather(*(task() for _ in range(3)))

    threads = [Thread(thread), Thread(asyncio.run, main()), Thread(thread), Thread(asyncio.run, main())]
    for one in threads:
        one.result()
    assert inside == [800]
    assert lock.acquire(timeout=0)


def test_documented_lock_is_given_on_by_a_task_that_was_granted_and_cancelled() -> None:
    async def main() -> None:
        lock = documented()()
        assert lock.acquire()
        tasks = []
        for _ in range(2):
            tasks.append(asyncio.ensure_future(lock.acquire_async()))
            await asyncio.sleep(0)
        lock.release()  # to the one who came last
        tasks[1].cancel()
        assert await asyncio.wait_for(tasks[0], PATIENCE_S) is True
        assert tasks[1].cancelled()
        assert lock.acquire(timeout=0.001) is False
        lock.release()
        assert lock.acquire(timeout=0) is True

    asyncio.run(main())


def test_loop_of_ones_own_is_made_known_by_its_port() -> None:
    running = threading.local()

    class Future:
        def __init__(self) -> None:
            self._done = False

        def done(self) -> bool:
            return self._done

        def set_result(self, value: None) -> None:
            self._done = value is None

        def __await__(self) -> Generator[None, None, None]:
            while not self._done:
                yield

    def run(*coroutines: Any) -> list[Any]:
        """A loop that knows nothing but turns, and sleeps when nobody can go on."""
        running.port = port = Port(Future)
        results: dict[int, Any] = {}
        try:
            while len(results) < len(coroutines):
                for number, coroutine in enumerate(coroutines):
                    if number not in results:
                        try:
                            coroutine.send(None)
                        except StopIteration as end:
                            results[number] = end.value
                if select.select([port.fileno()], [], [], 0 if results else 0.01)[0]:
                    port()
        finally:
            running.port = None
            port.close()
        return [results[number] for number in range(len(coroutines))]

    add_loop(lambda: getattr(running, "port", None))
    lock, queue = Lock(fair=True), SimpleQueue[int]()

    async def getter() -> int:
        async with lock:
            assert current_port() is running.port
            assert current_task() is None
            return await queue.get_async()

    thread = Thread(run, getter(), getter())
    until(lambda: queue.statistics().waiting == 1)
    queue.put(1)
    queue.put(2)
    assert sorted(thread.result()) == [1, 2]
    assert lock.statistics()[:2] == (False, 0)
