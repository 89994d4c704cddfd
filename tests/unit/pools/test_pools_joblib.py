"""fairlead as a backend of joblib. make peers runs joblib's own tests over it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from waiting import PATIENCE_S

from fairlead.pools import shared_pool

joblib = pytest.importorskip("joblib")
FairleadBackend = pytest.importorskip("fairlead.pools.joblib").FairleadBackend


def parallel(**options: Any) -> Any:
    return joblib.Parallel(n_jobs=2, backend=FairleadBackend("threads"), timeout=PATIENCE_S, **options)


def test_calls_of_threads_within_such_calls_do_not_wait_for_their_own_threads() -> None:
    meeting = threading.Barrier(2)  # all of the outer threads are taken before the inner calls

    def outer(n: int) -> list[int]:
        meeting.wait(PATIENCE_S)
        found: list[int] = parallel()(joblib.delayed(pow)(n, power) for power in (1, 2))
        return found

    assert parallel()(joblib.delayed(outer)(n) for n in (2, 3)) == [[2, 4], [3, 9]]


def test_threads_share_memory() -> None:
    found: list[int] = []
    parallel(require="sharedmem")(joblib.delayed(found.append)(n) for n in range(3))
    assert sorted(found) == [0, 1, 2]


begun: list[str] = []


@pytest.mark.parametrize("by", ["the backend", "the call"])
def test_pool_has_the_options_that_are_given(by: str) -> None:
    options = {"initializer": begun.append, "initargs": (by,)}
    if by == "the call":
        calls = parallel(**options)
    else:
        calls = joblib.Parallel(n_jobs=2, backend=FairleadBackend("threads", **options))
    assert calls(joblib.delayed(abs)(-n) for n in range(2)) == [0, 1]
    assert by in begun
    shared_pool("threads", 2, **options).shutdown()


def test_option_that_no_pool_has_is_refused() -> None:
    with pytest.raises(TypeError, match="idle_worker_timeout"):
        parallel(idle_worker_timeout=1)(joblib.delayed(abs)(-n) for n in range(2))


def test_one_job_is_the_default_as_everywhere_in_joblib() -> None:
    with joblib.parallel_config(backend="fairlead"):
        assert joblib.effective_n_jobs(None) == joblib.Parallel().n_jobs == 1
