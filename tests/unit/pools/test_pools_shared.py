"""One pool for all who ask for the same."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from poolkinds import KINDS
from pooltasks import square

from fairlead.errors import BrokenPoolError, UsageError
from fairlead.pools import shared, shared_pool

pytestmark = pytest.mark.ends_and_free


@pytest.fixture(autouse=True)
def _own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(shared, "_pools", {})
    yield
    for pool in shared._pools.values():
        pool.shutdown()


@pytest.mark.parametrize("kind", KINDS)
def test_same_kind_and_size_is_the_same_pool_until_it_is_shut_down(kind: str) -> None:
    size = None if kind == "sequential" else 2
    pool = shared_pool(kind, size)
    assert pool.submit(square, 3).result() == 9
    assert shared_pool(kind, size) is pool
    pool.shutdown()
    other = shared_pool(kind, size)
    assert other is not pool
    assert other.submit(square, 3).result() == 9


def test_another_size_is_another_pool_and_an_unknown_kind_is_refused() -> None:
    assert shared_pool("threads", 1) is not shared_pool("threads", 2)
    with pytest.raises(UsageError, match="kind"):
        shared_pool("fibres")


def test_broken_pool_is_replaced() -> None:
    pool = shared_pool("threads", 1)
    pool._engine._break(OSError("no workers"))  # type: ignore[attr-defined]
    with pytest.raises(BrokenPoolError, match="no workers"):
        pool.submit(square, 3)
    assert shared_pool("threads", 1).submit(square, 3).result() == 9


@pytest.mark.skipif(sys.platform == "win32", reason="has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forked_child_has_a_pool_of_its_own() -> None:
    assert shared_pool("threads", 1).submit(square, 3).result() == 9
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = shared_pool("threads", 1).submit(square, 4).result(20) != 16
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
