"""Tasks that fail, take too long, kill their worker or are cancelled: every future ends exactly once."""

from __future__ import annotations

import concurrent.futures
import gc
import multiprocessing
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pooltasks import spin, square
from waiting import until

from fairlead import errors
from fairlead.pools import Pool, ProcessPool, ThreadPool

TASKS = int(os.environ.get("FAIRLEAD_POOL_TASKS", "400"))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    raise LookupError("as told")


def children() -> int:
    return len(multiprocessing.active_children())


def left() -> tuple[int, int, int]:
    """Threads, descriptors and children of this process."""
    return threading.active_count(), len(list(Path("/proc/self/fd").iterdir())), children()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_every_future_ends_once_and_nothing_is_left(kind: str) -> None:
    seed = int(os.environ.get("FAIRLEAD_SEED", str(random.randrange(2**32))))
    print(f"FAIRLEAD_SEED={seed}")
    dice = random.Random(seed)
    make: Callable[[], Pool] = (lambda: ThreadPool(3)) if kind == "threads" else (lambda: ProcessPool(3))
    with make() as pool:  # what the standard library keeps from then on
        pool.submit(square, 1).result()
    gc.collect()
    before = left()
    ended: Counter[int] = Counter()
    pool = make()
    futures: list[tuple[str, concurrent.futures.Future[object]]] = []
    for number in range(TASKS):
        what = dice.choices(
            ["work", "fail", "spin", "die", "cancel"], [82, 8, 1, 1 if kind == "processes" else 0, 8]
        )[0]
        if what in ("work", "cancel"):
            future: concurrent.futures.Future[object] = pool.submit(square, number)
        elif what == "fail":
            future = pool.submit(fail)
        elif what == "spin":
            future = pool.with_options(timeout=0.02, retries=dice.randrange(2)).submit(spin)
        else:
            future = pool.with_options(retries=dice.randrange(2)).submit(die)
        future.add_done_callback(lambda _, number=number: ended.update([number]))
        futures.append((what, future))
        if what == "cancel":
            dice.choice(futures)[1].cancel()
    for number, (what, future) in enumerate(futures):
        try:
            assert future.result() == number * number
            assert what in ("work", "cancel")
        except concurrent.futures.CancelledError:
            pass
        except LookupError:
            assert what == "fail"
        except errors.TaskTimeout:
            assert what == "spin"
        except errors.WorkerLost:
            assert what == "die"
    until(lambda: len(ended) == TASKS)
    assert set(ended.values()) == {1}
    pool.shutdown()
    numbers = pool.statistics()
    assert (numbers.queued, numbers.running) == (0, 0)
    del pool, futures, future
    gc.collect()
    # less is the end of what earlier tests have left
    until(lambda: all(now <= then for now, then in zip(left(), before, strict=True)))
