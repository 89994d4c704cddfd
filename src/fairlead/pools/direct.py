"""A crew whose tasks are sent to their workers by the thread that submits them, if a worker is idle.

That thread is awake already: a seat's would have to be woken first, only to send. A seat's thread waits for
its worker's answer instead, also while the worker has no task.

Invariants, besides those of crew.py:

* While a seat is in ``_idle``, nothing is in the queue. Who takes it from there, under ``_lock``, hands it a
  task, or has it end.
* Handing over is done with ``seat.handing``, which the seat's thread takes before it looks at what has come.
  If there is no task then, the worker has ended, and the seat is ``dead``: the task goes another way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from queue import Empty

from fairlead.pools.contract import DirectWorker, Task
from fairlead.pools.crew import Crew
from fairlead.pools.seats import Seat


class DirectCrew(Crew):
    """``make_worker`` makes a DirectWorker."""

    _idle: list[Seat]

    sends = True

    def __init__(
        self,
        kind: str,
        workers: int,
        make_worker: Callable[[], DirectWorker],
        *,
        name: str,
        most_tasks: int,
        call_cost_s: float,
    ) -> None:
        self._idle = []
        super().__init__(
            kind, workers, make_worker, name=name, most_tasks=most_tasks, call_cost_s=call_cost_s
        )

    def close(self) -> None:
        with self._lock:
            super().close()
            idle, self._idle = self._idle, []
            for seat in idle:
                self._dismiss(seat)

    def terminate(self) -> None:
        super().terminate()
        with self._lock:
            seats = list(self._seats)
        for seat in seats:
            with seat.lock:
                seat.worker.stop()

    def forget_after_fork(self) -> None:
        super().forget_after_fork()
        self._idle = []

    # with the lock

    def _put(self, task: Task) -> Callable[[], None] | None:
        if not self._idle:
            return super()._put(task)
        self._taken += 1
        return functools.partial(self._hand, self._idle.pop(), task)

    def _dismiss(self, seat: Seat) -> None:
        """Has an idle worker end."""
        self._discard(seat, self._leaving)
        _direct(seat).end()

    def _shrink(self) -> None:
        if self._idle:
            self._dismiss(self._idle.pop())

    def _next(self, seat: Seat) -> Task | None:
        """Of the queue; None: there is none, and the seat is idle or, if the crew is closed, dismissed."""
        with self._lock:
            while not seat.dead:
                try:
                    task = self._queue.get_nowait()
                except Empty:
                    self._idle.append(seat)
                    return None
                if task is not None:
                    return task
                self._queue.put(None)
                if self._queue.qsize() == 1:
                    self._dismiss(seat)
                    return None
        return None

    # the seat's thread

    def _work(self, seat: Seat) -> None:
        goes_on = True
        while goes_on:
            task = self._next(seat)
            if task is not None:
                goes_on = self._take(seat, task)
                continue
            worker = _direct(seat)
            worker.wait()
            with seat.handing:
                task = seat.task
                seat.dead = task is None
            if task is None:  # it was stopped, told to end, or died while it was idle
                with self._lock:
                    if seat in self._idle:
                        self._idle.remove(seat)
                    if seat in self._seats:
                        self._discard(seat, self._leaving)
                worker.settle()
                return
            goes_on = self._conclude(seat, task, worker.read)

    # the thread that submits

    def _hand(self, seat: Seat, first: Task) -> None:
        """Sends the task to the seat's worker. What cannot be sent leaves room for another."""
        task: Task | None = first
        while task is not None:
            error: Exception | None = None
            with seat.handing:
                if not (dead := seat.dead):
                    try:
                        if self._enter(seat, task):
                            _direct(seat).send(task)
                            return
                    except Exception as refusal:  # noqa: BLE001 - the task's
                        error = refusal
                        mine = self._withdraw(seat, task)
                    except BaseException:
                        with seat.lock:
                            seat.worker.stop()  # it may have been sent in part
                        raise
            if dead:
                with self._lock:
                    self._taken -= 1
                    then = self._put(task)
                if then is not None:
                    then()
                return
            if error is not None:
                if not mine:
                    return  # stopped, and the worker with it
                task.fail(error)
            task = self._next(seat)


def _direct(seat: Seat) -> DirectWorker:
    assert isinstance(seat.worker, DirectWorker)
    return seat.worker
