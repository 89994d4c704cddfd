"""The kit: a waiter is granted or cancelled, never both; a loop of one's own; the documented lock."""

from __future__ import annotations

import asyncio
import gc
import re
import select
import sys
import threading
import weakref
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_S, Thread, until

from fairlead.errors import LoopClosedError
from fairlead.lowlevel import Mailbox, Waiter, add_loop, current_mailbox, current_task
from fairlead.sync import Event, Lock, Queue, RateLimiter, SimpleQueue, select_async

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "lowlevel.md"


def test_waiter_is_granted_or_cancelled_once() -> None:
    waiter: Waiter[str] = Waiter()
    assert waiter.wait(0) is False
    thread = Thread(waiter.wait)
    assert waiter.grant("value") is True
    assert thread.result() is True
    assert waiter.value == "value"
    assert waiter.grant("other") is False
    assert waiter.cancel() is False
    assert waiter.value == "value"
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
    assert sum(map(bool, made[made.index("class LifoLock") :].split("\n"))) <= 40
    scope: dict[str, Any] = {"__name__": "page"}
    exec(made, scope)
    return scope["LifoLock"]


def test_documented_lock_excludes_threads_and_tasks_and_is_passed_on() -> None:
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
        assert await asyncio.to_thread(lock.acquire, timeout=0.001) is False
        lock.release()
        assert lock.acquire(timeout=0) is True

    asyncio.run(main())


def rate_that_is_used_up() -> RateLimiter:
    rate = RateLimiter(1, 86400)
    rate.acquire()
    return rate


def held(lock: Any) -> Any:
    lock.acquire()
    return lock


WAITS = {
    "lock": lambda: held(Lock()).acquire_async(),
    "event": lambda: Event().wait_async(),
    "queue": lambda: SimpleQueue[int]().get_async(),
    "join": lambda: joined(),
    "rate": lambda: rate_that_is_used_up().acquire_async(),
    "selection": lambda: select_async(SimpleQueue[int]().get_async(), Event().wait_async()),
}


def joined() -> Any:
    queue = Queue[int]()
    queue.put(1)
    return queue.join_async()


def drop_mailbox() -> None:
    """Of a loop of asyncio only the table of readers holds it."""
    mailbox = weakref.ref(current_mailbox())
    asyncio.get_running_loop().remove_reader(current_mailbox().fileno())
    gc.collect()
    assert mailbox() is None


@pytest.mark.parametrize("end", [lambda: current_mailbox().close(), drop_mailbox], ids=["closed", "dropped"])
@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_end_of_a_mailbox_while_its_loop_runs_ends_the_waits_of_its_tasks(wait: Any, end: Any) -> None:
    async def waits() -> None:
        await wait()

    async def main() -> None:
        tasks = [asyncio.ensure_future(waits()) for _ in range(3)]
        await asyncio.sleep(0)
        end()
        for task in tasks:
            with pytest.raises(LoopClosedError):
                await asyncio.wait_for(task, PATIENCE_S)
        again = asyncio.ensure_future(waits())
        await asyncio.sleep(0)
        assert again.done() == (end is not drop_mailbox), "the loop has another mailbox by now"
        again.cancel()
        await asyncio.wait([again])
        assert again.cancelled() or isinstance(again.exception(), LoopClosedError)

    asyncio.run(main())


def test_mailbox_that_is_closed_hands_over_what_its_tasks_were_granted() -> None:
    async def main() -> None:
        lock = held(Lock(fair=True))
        task = asyncio.ensure_future(lock.acquire_async())
        await asyncio.sleep(0)
        lock.release()
        assert lock.locked()
        current_mailbox().close()
        assert not lock.locked()
        with pytest.raises(LoopClosedError):
            await asyncio.wait_for(task, PATIENCE_S)

    asyncio.run(main())


def test_mailbox_that_is_dropped_with_a_closed_loop_hands_over_without_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    lock = held(Lock())

    async def waits() -> None:
        async with lock:
            raise AssertionError("the loop has ended")

    async def main() -> list[asyncio.Task[None]]:
        tasks = [asyncio.ensure_future(waits()) for _ in range(3)]
        await asyncio.sleep(0)
        return tasks

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # of tasks that are destroyed while they wait
    tasks = loop.run_until_complete(main())
    assert lock.statistics().waiting == 3
    loop.close()
    assert lock.statistics().waiting == 0
    assert not unraisable
    assert not any(task.done() for task in tasks)


def test_wait_of_a_loop_that_does_not_keep_its_mailbox_raises() -> None:
    class Done:
        def done(self) -> bool:
            return False

        def set_result(self, value: None) -> None:
            pass

        def __await__(self) -> Generator[None, None, None]:
            yield

    here = threading.local()
    add_loop(lambda: Mailbox(Done) if hasattr(here, "loop") else None)

    def run() -> None:
        here.loop = True
        waits = SimpleQueue[int]().get_async()
        assert waits.send(None) is None
        with pytest.raises(LoopClosedError):
            waits.send(None)

    Thread(run).result()


def test_loop_of_ones_own_is_made_known_by_its_mailbox() -> None:
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
        running.mailbox = mailbox = Mailbox(Future)
        results: dict[int, Any] = {}
        try:
            while len(results) < len(coroutines):
                for number, coroutine in enumerate(coroutines):
                    if number not in results:
                        try:
                            coroutine.send(None)
                        except StopIteration as end:
                            results[number] = end.value
                if select.select([mailbox.fileno()], [], [], 0 if results else 0.01)[0]:
                    mailbox()
        finally:
            running.mailbox = None
            mailbox.close()
        return [results[number] for number in range(len(coroutines))]

    add_loop(lambda: getattr(running, "mailbox", None))
    lock, queue = Lock(fair=True), SimpleQueue[int]()

    async def getter() -> int:
        async with lock:
            assert current_mailbox() is running.mailbox
            assert current_task() is None
            return await queue.get_async()

    thread = Thread(run, getter(), getter())
    until(lambda: queue.statistics().waiting == 1)
    queue.put(1)
    queue.put(2)
    assert sorted(thread.result()) == [1, 2]
    assert lock.statistics()[:2] == (False, 0)
