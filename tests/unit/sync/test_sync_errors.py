"""How native code raises errors."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import pytest

from fairlead import errors
from fairlead.sync import Barrier, Exchanger, Lock, Queue, SimpleQueue

ERRORS: list[tuple[Callable[[], object], type[Exception]]] = [
    (SimpleQueue().get_nowait, errors.QueueEmpty),
    (lambda: Queue().get(timeout=1e-6), errors.QueueEmpty),
    (lambda: Exchanger().exchange(1, timeout=1e-6), errors.WaitTimeoutError),
    (lambda: Barrier(2).wait(timeout=1e-6), errors.BrokenBarrierError),
    (Lock().release, errors.NotHeldError),
]


@pytest.mark.parametrize(("call", "error"), ERRORS)
def test_raising_an_error_imports_nothing(
    call: Callable[[], object], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = []
    real = builtins.__import__

    def importing(name: str, *rest: Any) -> Any:
        imported.append(name)
        return real(name, *rest)

    def watched() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(builtins, "__import__", importing)
            call()

    with pytest.raises(error):
        watched()
    assert imported == []
