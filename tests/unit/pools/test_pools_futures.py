"""The future of a task: the standard library's, made of fewer parts."""

from __future__ import annotations

import concurrent.futures
import signal
import threading
from typing import Any

import pytest
from waiting import PATIENCE_S, Thread, until

from fairlead.pools import ThreadPool
from fairlead.pools.engine import aside
from fairlead.pools.engine.future import Future

pytestmark = pytest.mark.pypy

WAITERS = 5


def waiting(future: Future[Any], count: int) -> Any:
    return lambda: len(future._condition._bells or ()) == count


def test_future_has_all_that_the_standard_library_has() -> None:
    mine, theirs = vars(Future()), vars(concurrent.futures.Future())
    mine.pop("_condition"), theirs.pop("_condition")
    assert mine == theirs


@pytest.mark.parametrize("how", ["result", "exception", "cancelled"])
def test_end_wakes_all_that_wait(how: str) -> None:
    future: Future[int] = Future()
    if how == "cancelled":
        future.begin()
    outcomes: list[Any] = []
    threads = [Thread(lambda: concurrent.futures.wait([future])) for _ in range(WAITERS)]
    threads += [Thread(lambda: outcomes.append(seen(future))) for _ in range(WAITERS)]
    until(waiting(future, WAITERS))
    if how == "result":
        future.set_result(3)
    elif how == "exception":
        future.set_exception(KeyError(3))
    else:
        future.end_cancelled()
    for thread in threads:
        thread.result()
    kinds = {"result": int, "exception": KeyError, "cancelled": concurrent.futures.CancelledError}
    assert [type(one) for one in outcomes] == [kinds[how]] * WAITERS


def seen(future: Future[Any]) -> Any:
    try:
        return future.result()
    except BaseException as error:  # noqa: BLE001 - it is what is asked for
        return error


@pytest.mark.parametrize("timeout", [0, -1, 0.001])
def test_wait_that_is_in_vain_leaves_nothing_behind(timeout: float) -> None:
    future: Future[int] = Future()
    with pytest.raises(TimeoutError):
        future.result(timeout)
    assert waiting(future, 0)()
    future.set_result(1)
    assert future.result(timeout) == 1


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="only the main thread sees to signals"
)
def test_wait_that_a_signal_handler_ends_takes_nothing_from_others() -> None:
    class Enough(Exception):
        pass

    def enough(*_: object) -> None:
        if not over.is_set():
            over.set()
            raise Enough

    def interrupt() -> None:
        until(waiting(future, 2))
        while not over.is_set():  # one that comes as the thread is about to sleep does not wake it
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
            over.wait(0.01)

    future: Future[int] = Future()
    over = threading.Event()
    before = signal.signal(signal.SIGUSR1, enough)
    try:
        other, sender = Thread(future.result), Thread(interrupt)
        with pytest.raises(Enough):
            future.result(40)
        sender.result()
    finally:
        signal.signal(signal.SIGUSR1, before)
    future.set_result(1)
    assert (future.result(), other.result()) == (1, 1)


class Setting:
    """Stops the worker that sets a result, once its future has let go of the task."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.over = threading.Event(), threading.Event()
        set_result = Future.set_result

        def late(future: Future[Any], value: Any) -> None:
            self.reached.set()
            self.over.wait(PATIENCE_S)
            set_result(future, value)

        monkeypatch.setattr(Future, "set_result", late)


@pytest.mark.parametrize("ask", [Future.ended, Future.result, Future.exception])
@pytest.mark.parametrize("timeout", [None, PATIENCE_S])
def test_wait_lasts_until_the_result_that_is_being_set_is_there(
    ask: Any, timeout: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting, begin = Setting(monkeypatch), threading.Event()
    wait = Future._wait

    def wait_meanwhile(future: Future[Any], timeout: float | None) -> None:
        begin.set()
        assert setting.reached.wait(PATIENCE_S)
        wait(future, timeout)

    with ThreadPool(1) as pool:
        future = pool.submit(begin.wait)
        monkeypatch.setattr(Future, "_wait", wait_meanwhile)
        waiter = Thread(ask, future, timeout)
        until(lambda: not waiter.is_alive() or waiting(future, 1)())
        setting.over.set()
        assert waiter.result() is (None if ask is Future.exception else True)


def test_wait_of_no_time_says_that_the_result_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting(monkeypatch)
    with ThreadPool(1) as pool:
        future = pool.submit(int)
        assert setting.reached.wait(PATIENCE_S)
        assert not future.ended(0)
        with pytest.raises(TimeoutError):
            future.result(0)
        setting.over.set()
        assert future.ended()
        assert future.result(0) == 0


def test_next_of_a_map_waits_for_a_result_that_is_being_set(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting(monkeypatch)
    with ThreadPool(1) as pool:
        results = pool.map(abs, [-3])
        assert setting.reached.wait(PATIENCE_S)
        with pytest.raises(TimeoutError):
            results.next(0)
        waiter = Thread(results.next)
        future = results._chunks[0].future
        until(lambda: not waiter.is_alive() or waiting(future, 1)())
        setting.over.set()
        assert waiter.result() == 3


def test_callbacks_one_after_the_other_have_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "LINGER_S", 3600.0)
    threads: list[threading.Thread] = []
    with aside.Aside("callbacks"):
        for _ in range(20):
            future: Future[int] = Future()
            called = threading.Event()

            def call(_: object, called: threading.Event = called) -> None:
                threads.append(threading.current_thread())
                called.set()

            future.add_done_callback(call)
            future.set_result(1)
            called.wait()
    (only,) = set(threads)
    assert only is not threading.current_thread()
    only.join()
