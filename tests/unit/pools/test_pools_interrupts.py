"""Ctrl-C in a thread that submits, at every step at which the interpreter lets it in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future
from types import FrameType
from typing import Any

import pytest
from poolkinds import Make
from pooltasks import identity, spin, square
from waiting import Thread, until

from fairlead.errors import SerializationError
from fairlead.pools import Pool, ProcessPool
from fairlead.pools.engine.direct_manager import DirectManager

pytestmark = [
    pytest.mark.skipif(
        sys.implementation.name != "cpython", reason="steps at which a signal is handled are CPython's"
    ),
    pytest.mark.skipif(
        sys.version_info < (3, 12),
        reason="an exception that a profiling function raises in specialised code has 3.11 loop for ever",
    ),
]


class InterruptAtStep:
    """Raises KeyboardInterrupt at one of the steps of the pools' own code. A signal's handler is called when
    a function begins, and when one in C has returned."""

    def __init__(self, step: int) -> None:
        self.left = step

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event in ("call", "c_return") and "/fairlead/pools/" in frame.f_code.co_filename:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


def _interrupted(step: int, call: Callable[..., object], *args: object) -> bool:
    profiled = sys.getprofile()
    interrupt = InterruptAtStep(step)
    sys.setprofile(interrupt)
    try:
        call(*args)
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(profiled)
    return interrupt.left <= 0


def _steps(pool: Pool, interrupted: Callable[[int], bool], least: int) -> None:
    """One after the other, until the call ends by itself; after each the pool serves another task."""
    step = 1
    while interrupted(step):
        assert pool.submit(square, 5).result(20) == 25, f"after an interrupt at step {step}"
        step += 1
    assert step > least
    pool.shutdown(timeout=20)
    numbers = pool.statistics()
    assert (numbers.queued, numbers.running) == (0, 0)


def test_interrupt_of_a_submission_costs_no_worker(several: Make) -> None:
    pool = several(max_workers=1)

    def interrupted(step: int) -> bool:
        assert pool.submit(square, 2).result(20) == 4
        if isinstance(pool._engine, DirectManager):
            until(lambda: pool._engine._idle)  # what comes is sent by this thread
        return _interrupted(step, pool.submit, square, 3)

    _steps(pool, interrupted, 5)


def _cancel(pool: Pool) -> None:
    pool.submit(spin).cancel()


def _map(pool: Pool) -> None:
    pool.map(square, range(4), chunksize=1).results()


def _stream(pool: Pool) -> None:
    stream = pool.stream(square, range(2), chunksize=1)
    next(stream)
    stream.close()


def _time_out(pool: Pool) -> None:
    pool.with_options(timeout=60).submit(square, 3).exception()


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in a deallocator
@pytest.mark.parametrize("call", [_cancel, _map, _stream, _time_out, repr], ids=lambda call: call.__name__)
def test_interrupt_of_a_call_leaves_no_lock_taken(several: Make, call: Callable[[Pool], object]) -> None:
    step = 1
    pool = several(max_workers=1)
    while _interrupted(step, call, pool):
        if call is _cancel:  # which may not have come to be
            pool.terminate()
            pool.shutdown(timeout=20)
            pool = several(max_workers=1)
        assert pool.submit(square, 5).result(20) == 25, f"after an interrupt at step {step}"
        step += 1
    assert step > 5
    pool.shutdown(timeout=20)


@pytest.mark.long
def test_interrupt_of_a_cancellation_leaves_no_task_pending(several: Make) -> None:
    pool = several(max_workers=1)

    def interrupted(step: int) -> bool:
        running = pool.submit(spin)
        until(running.running)
        was = _interrupted(step, running.cancel)
        until(lambda: running.cancel() or running.done())
        assert running.cancelled()
        return was

    _steps(pool, interrupted, 2)


class RefusesAfterAnother:
    """Cannot be pickled, and finds that out when another thread has queued a task behind it. From then on
    the thread is interrupted at a step."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.queued: Future[int] | None = None

    def submitted(self, pool: ProcessPool) -> bool:
        """Whether that was interrupted."""
        self.pool = pool
        profiled = sys.getprofile()
        try:
            refused = pool.submit(identity, self)
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(profiled)
        assert isinstance(refused.exception(20), SerializationError)
        return False

    def __reduce__(self) -> Any:
        if self.queued is None:
            self.queued = Thread(self.pool.submit, square, 7).result()
            sys.setprofile(InterruptAtStep(self.step))
        raise TypeError("it cannot be pickled")


@pytest.mark.long
def test_interrupt_of_a_submission_that_is_refused_costs_no_task_behind_it() -> None:
    pool = ProcessPool(1)

    def interrupted(step: int) -> bool:
        assert pool.submit(square, 2).result(20) == 4
        until(lambda: pool._engine._idle)  # type: ignore[attr-defined]
        refusing = RefusesAfterAnother(step)
        was = refusing.submitted(pool)
        assert refusing.queued is not None
        assert refusing.queued.result(20) == 49, f"after an interrupt at step {step}"
        return was

    _steps(pool, interrupted, 10)
