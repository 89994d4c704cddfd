"""Combiner: in whose thread sections are run, to whom results and exceptions go, and who leads next."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from functools import partial

import pytest
from waiting import PATIENCE_S, Thread, run, until, until_async, waiting_task, waiting_thread

from fairlead import errors
from fairlead.sync.extra import Combiner

pytestmark = pytest.mark.ends_and_free


class Held:
    """A thread in a section of the lock, until it is let go."""

    def __init__(self, lock: Combiner) -> None:
        self._go = threading.Event()
        self.ident = 0
        self._thread = Thread(lock.run, self._section)
        until(lambda: self.ident)

    def _section(self) -> None:
        self.ident = threading.get_ident()
        self._go.wait(PATIENCE_S)

    def let_go(self) -> None:
        self._go.set()
        self._thread.result()


def test_holder_runs_the_sections_of_others_in_the_order_of_their_coming() -> None:
    lock, order = Combiner(), []

    def section(number: int) -> tuple[int, int]:
        order.append(number)
        return number, threading.get_ident()

    holder = Held(lock)
    threads = [waiting_thread(lock, lock.run, partial(section, number)) for number in range(5)]
    assert lock.statistics() == (True, 5, 0, 1024)
    holder.let_go()
    assert [thread.result() for thread in threads] == [(number, holder.ident) for number in range(5)]
    assert order == list(range(5))
    assert lock.statistics() == (False, 0, 5, 1024)


def test_exception_in_a_holders_thread_goes_to_the_caller_with_its_traceback() -> None:
    lock = Combiner()

    def fail() -> None:
        raise SystemExit("not the holder's")

    holder = Held(lock)
    loser, winner = waiting_thread(lock, lock.run, fail), waiting_thread(lock, lock.run, lambda: "went on")
    holder.let_go()
    with pytest.raises(SystemExit, match="not the holder's") as caught:
        loser.result()
    assert caught.traceback[-1].name == "fail"
    assert winner.result() == "went on"


def test_batch_bounds_what_a_holder_runs_for_others() -> None:
    lock = Combiner(batch=2)
    holder = Held(lock)
    threads = [waiting_thread(lock, lock.run, threading.get_ident) for _ in range(7)]
    holder.let_go()
    ran = [thread.result() for thread in threads]
    # the third and the sixth are handed the lock, and each runs two more
    assert ran == [holder.ident] * 2 + [threads[2].ident] * 3 + [threads[5].ident] * 2
    assert lock.statistics() == (False, 0, 5, 2)


def test_main_thread_runs_no_section_but_its_own() -> None:
    lock = Combiner()
    threads: list[Thread] = []

    def section() -> int:
        threads.extend(waiting_thread(lock, lock.run, threading.get_ident) for _ in range(3))
        return threading.get_ident()

    assert lock.run(section) == threading.get_ident()
    assert {thread.result() for thread in threads} == {threads[0].ident}


def test_section_that_runs_another_of_the_same_lock_is_refused() -> None:
    lock = Combiner()
    with pytest.raises(errors.DeadlockError, match="call what is to be run directly"):
        lock.run(lambda: lock.run(int))
    holder = Held(lock)
    nested = waiting_thread(lock, lock.run, lambda: lock.run(int))
    holder.let_go()
    with pytest.raises(errors.DeadlockError):
        nested.result()
    assert lock.run(lambda: Combiner().run(lambda: 3)) == 3


def test_sections_of_threads_and_tasks_exclude_each_other() -> None:
    lock, inside = Combiner(batch=3), [0, 0]

    def section() -> None:
        inside[1] += 1
        assert inside[1] == 1
        seen = inside[0]
        inside[0] = seen + 1
        inside[1] -= 1

    def thread() -> None:
        for _ in range(300):
            lock.run(section)

    async def task() -> None:
        for _ in range(300):
            await lock.run_async(section)

    async def main() -> None:
        await asyncio.gather(*(task() for _ in range(3)))

    threads = [Thread(thread), Thread(run, main()), Thread(thread), Thread(run, main())]
    for one in threads:
        one.result()
    assert inside == [300 * 8, 0]
    assert lock.statistics()[:2] == (False, 0)


def test_task_that_is_cancelled_in_its_turn_does_not_block_others() -> None:
    async def main() -> None:
        lock, begun, go = Combiner(), threading.Event(), threading.Event()

        class Result:
            pass

        result = Result()
        kept = weakref.ref(result)

        def section(box: list[Result]) -> Result:
            begun.set()
            go.wait(PATIENCE_S)
            return box.pop()

        holder = Held(lock)
        box = [result]
        del result
        task = await waiting_task(lock, lock.run_async(lambda: section(box)))
        last = await waiting_task(lock, lock.run_async(lambda: "served"))
        letting = Thread(holder.let_go)
        await until_async(begun.is_set)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        del task
        go.set()
        assert await last == "served"
        letting.result()
        assert lock.statistics()[:2] == (False, 0)
        gc.collect()
        assert kept() is None

    run(main())


def test_task_that_was_handed_the_lock_and_is_cancelled_hands_it_on() -> None:
    async def main() -> None:
        lock, ran = Combiner(batch=0), []
        holder = Held(lock)
        task = await waiting_task(lock, lock.run_async(lambda: ran.append("task")))
        thread = waiting_thread(lock, lock.run, lambda: ran.append("thread"))
        holder.let_go()  # to the task, whose loop stands still
        assert lock.statistics()[:2] == (True, 1)
        task.cancel()
        await asyncio.wait([task])
        thread.result()
        assert ran == ["thread"]
        assert not lock.locked()

    run(main())


def test_loop_that_closes_takes_its_sections_along_and_hands_the_lock_on() -> None:
    lock, ran = Combiner(batch=0), []
    holder = Held(lock)
    loop = asyncio.new_event_loop()
    sections = [lock.run_async(lambda: ran.append("task")) for _ in range(2)]
    tasks = [loop.run_until_complete(waiting_task(lock, section)) for section in sections]
    thread = waiting_thread(lock, lock.run, lambda: ran.append("thread"))
    holder.let_go()
    loop.close()
    thread.result()
    assert ran == ["thread"]
    assert lock.statistics()[:2] == (False, 0)
    for task in tasks:
        task._log_destroy_pending = False  # type: ignore[attr-defined]
