"""Where the core calls Python: a signal handler that raises there, and a call that comes back."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from endings import HandlerRan, handling, interrupting
from waiting import Thread, main_thread_sleeps, until

from fairlead import _native
from fairlead._native import handle
from fairlead.lowlevel import Mailbox, add_loop
from fairlead.pools.interpreter.worker import RESULT
from fairlead.sync import (
    Event,
    LifoQueue,
    PriorityQueue,
    Queue,
    Semaphore,
    SimpleQueue,
    broadcast,
    select,
    select_async,
)
from fairlead.sync.extra import Combiner


@contextmanager
def raising(before: Callable[[], object] = bool) -> Iterator[list[int]]:
    """SIGUSR1 does that, and raises; the list has one entry for each time."""
    calls: list[int] = []

    def stop() -> None:
        before()
        calls.append(1)
        raise HandlerRan

    with handling(stop):
        yield calls


def receive_signal() -> None:
    signal.raise_signal(signal.SIGUSR1)


def test_reply_that_comes_while_a_handler_raises_is_left_to_the_reader_of_the_news() -> None:
    board = _native.JobQueue()
    job = board.job(("call",), False)
    board.post(job, "owner", False)
    slot = _native.WorkerSlot(board.number, 1)
    slot.take()

    with raising(lambda: slot.reply(RESULT, "reply")):
        sender = interrupting(lambda: True)
        with pytest.raises(HandlerRan):
            board.help(job)
        sender.result()
    assert board.completions() == [("owner", RESULT, "reply")]
    board.leave(1)


class Loop:
    """One task, whose loop calls these functions of Python at every turn of the native code."""

    class Future:
        def __init__(self, loop: Loop) -> None:
            self.loop, self.completed = loop, False

        def done(self) -> bool:
            self.loop.called("done")
            return self.completed

        def set_result(self, _value: object) -> None:
            self.loop.called("set_result")
            self.completed = True

        def __await__(self) -> Generator[Loop.Future, None, None]:
            yield self

    def __init__(self) -> None:
        self.raises_in = ""
        self.running = False
        self.before_future: Callable[[], object] = lambda: None
        self.port = Mailbox(self._make_future, self._is_running)
        add_loop(lambda: self.port if self.running else None)

    def _make_future(self) -> Loop.Future:
        self.before_future()
        return Loop.Future(self)

    def _is_running(self) -> bool:
        self.called("running")
        return self.running

    def called(self, function: str) -> None:
        if function == self.raises_in:
            self.raises_in = ""
            receive_signal()

    @contextmanager
    def task(self) -> Iterator[None]:
        self.running = True
        try:
            yield
        finally:
            self.running = False


def release_and_go_on(semaphore: Semaphore) -> None:
    semaphore.release()
    bytes(1)  # the handler's exception comes at the next instruction


@pytest.mark.parametrize("function", ["done", "set_result", "running"])
def test_handler_that_raises_in_a_call_of_the_loop_costs_no_wake_up_and_is_raised(function: str) -> None:
    loop, semaphore = Loop(), Semaphore(0)
    with raising() as calls:
        with loop.task():
            ticket = semaphore.acquire_async()
            future = ticket.send(None)
            loop.raises_in = function
            with pytest.raises(HandlerRan):
                release_and_go_on(semaphore)
        loop.port()
        assert len(calls) == 1
        assert future.completed
        with pytest.raises(StopIteration):
            ticket.send(None)
    assert semaphore.statistics().value == 0


NEEDS_A_GIL = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="the GIL keeps the moment"
)


class AsyncioLoop(asyncio.SelectorEventLoop):
    """A signal handler raises in its call_soon(), once, before or after it has done its work."""

    raises = ""

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:
        when, self.raises = self.raises, ""
        if when == "before":
            receive_signal()
        handle = super().call_soon(callback, *args, context=context)
        if when == "after":
            receive_signal()
        return handle


@pytest.mark.parametrize("when", ["before", "after"])
def test_handler_that_raises_as_asyncio_schedules_a_task_costs_no_turn_and_doubles_none(when: str) -> None:
    """asyncio.Future forgets its callbacks then, and is done nevertheless."""
    semaphore, loop = Semaphore(0), AsyncioLoop()

    async def take(ever: asyncio.Future[str]) -> str:
        await semaphore.acquire_async()
        return await ever  # a second turn would end this

    async def main() -> str:
        ever: asyncio.Future[str] = loop.create_future()
        task = asyncio.create_task(take(ever))
        await asyncio.sleep(0)
        loop.raises = when
        with pytest.raises(HandlerRan):
            release_and_go_on(semaphore)
        for _ in range(3):
            await asyncio.sleep(0)
        assert semaphore.statistics() == (0, 0, False)
        ever.set_result("took")
        return await asyncio.wait_for(task, 10)

    with raising() as calls:
        assert loop.run_until_complete(main()) == "took"
        assert len(calls) == 1
    loop.close()


@NEEDS_A_GIL
@pytest.mark.parametrize("how", ["acquire", "get", "select"])
def test_handler_that_raises_as_the_thread_wakes_takes_nothing(how: str) -> None:
    """The signal comes between the grant and the moment in which the thread has the GIL again."""
    semaphore, queue, never = Semaphore(0), Queue[int](), Event()
    wait, give = {
        "acquire": (semaphore.acquire, semaphore.release),
        "get": (queue.get, partial(queue.put, 1)),
        "select": (lambda: select(semaphore.acquire_async(), never.wait_async()), semaphore.release),
    }[how]
    main = threading.get_ident()

    def press() -> None:
        until(lambda: main_thread_sleeps() and len(_native.waits()) > 0)
        sys.setswitchinterval(60)  # from here on this thread keeps the GIL
        give()
        signal.pthread_kill(main, signal.SIGUSR1)

    interval = sys.getswitchinterval()
    with raising() as calls:
        thread = Thread(press)
        with pytest.raises(HandlerRan):
            wait()
        sys.setswitchinterval(interval)
        thread.result()
        assert len(calls) == 1
    assert (semaphore.statistics().value, queue.qsize()) == ((0, 1) if how == "get" else (1, 0))


@NEEDS_A_GIL
def test_handler_that_raises_as_the_thread_wakes_costs_no_result_of_a_combiner() -> None:
    """The function has run, and cannot be withdrawn: the exception comes after the call."""
    lock, results = Combiner(), list[str]()
    main = threading.get_ident()

    def section() -> None:
        until(lambda: lock.statistics().waiting == 1 and main_thread_sleeps())
        sys.setswitchinterval(60)  # from here on this thread keeps the GIL

    def hold() -> None:
        lock.run(section)  # and then what the main thread waits for
        signal.pthread_kill(main, signal.SIGUSR1)

    interval = sys.getswitchinterval()
    with raising():
        thread = Thread(hold)
        until(lock.locked)
        with pytest.raises(HandlerRan):
            results.extend(map(lock.run, [lambda: "result"]))
        sys.setswitchinterval(interval)
        thread.result()
    assert results == ["result"]


def test_holder_of_a_combiner_asks_nothing_of_python_that_a_handler_may_raise_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It did ask threading.main_thread(), and took what a handler raised there for its answer."""
    lock, order = Combiner(), []

    def section() -> None:
        threads.append(Thread(lock.run, lambda: order.append("other")))
        until(lambda: lock.statistics().waiting == 1)

    threads: list[Thread] = []
    with raising() as calls:
        monkeypatch.setattr(threading, "main_thread", receive_signal)
        raised = 0
        try:
            lock.run(section)
        except HandlerRan:
            raised = 1
        monkeypatch.undo()
        threads[0].result()
        assert order == ["other"]
        assert len(calls) == raised


@pytest.mark.parametrize("kind", ["ticket", "selection"])
@pytest.mark.parametrize("method", ["send", "throw", "close"])
def test_awaitable_that_is_begun_takes_no_other_step(kind: str, method: str) -> None:
    loop, semaphore = Loop(), Semaphore(0)
    ticket = semaphore.acquire_async() if kind == "ticket" else select_async(semaphore.acquire_async())
    arguments = {"send": (None,), "throw": (KeyError(),), "close": ()}[method]
    refused: list[BaseException] = []

    def step_again() -> None:
        try:
            getattr(ticket, method)(*arguments)
        except BaseException as error:  # noqa: BLE001 - its type is what is tested
            refused.append(error)

    loop.before_future = step_again
    with loop.task():
        ticket.send(None)
    assert [type(error) for error in refused] == [ValueError]
    assert semaphore.statistics().waiting == 1
    ticket.close()
    assert semaphore.statistics().waiting == 0


def test_tape_that_is_shared_while_it_is_shared_is_shared_once() -> None:
    sender, receiver = broadcast(4)
    tape = sender._line.line

    class Shares:
        def __reduce__(self) -> tuple[type[int], tuple[()]]:
            if not seen:
                seen.append(0)
                seen[0] = handle(tape)
            return int, ()

    seen: list[int] = []
    sender.send(Shares())
    sender.send(Shares())
    assert [handle(tape)] == seen
    assert receiver.receive() == receiver.receive() == 0


DEPTH = 20_000
"""Four times as deep as where a stack of this size ended without the trash can of CPython."""
STACK = 1 << (23 if sys.version_info[:2] == (3, 13) else 18)
"""3.13 lets 10,000 deallocations nest, also those of lists, before its trash can takes one."""


def freed_with_a_small_stack(nested: list[Any]) -> None:
    before = threading.stack_size(STACK)
    try:
        thread = Thread(nested.clear)
    finally:
        threading.stack_size(before)
    thread.result()


@pytest.mark.parametrize("make", [SimpleQueue, Queue, LifoQueue, PriorityQueue])
def test_queues_within_queues_are_freed_however_deep(make: Callable[[], Any]) -> None:
    queue = make()
    for _ in range(DEPTH):
        outer = make()
        outer.put(queue)
        queue = outer
    nested = [queue]
    del queue, outer
    freed_with_a_small_stack(nested)


def test_broadcasts_and_awaitables_within_one_another_are_freed_however_deep() -> None:
    end: Any = None
    for _ in range(DEPTH):
        sender, _receiver = broadcast(1)
        sender.send(end)
        end = sender
    nested = [end]
    del sender, _receiver, end
    freed_with_a_small_stack(nested)
    queue: Queue[Any] = Queue(1)
    end = None
    for _ in range(DEPTH):
        end = queue.put_async(end)
    nested = [end]
    del end
    freed_with_a_small_stack(nested)
    assert queue.empty()
