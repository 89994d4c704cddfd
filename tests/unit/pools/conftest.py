"""What the tests of pools share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from poolkinds import keeping, sending

from fairlead.pools.engine import aside

__all__ = ["keeping", "sending"]  # fixtures, as those of tests/unit/conftest.py


@pytest.fixture(autouse=True)
def _garbage_of_other_tests_stays() -> Iterator[None]:
    """Python reports and drops an interrupt that comes while a deallocator runs, or what hypothesis has
    called at each collection. So nothing is collected while a test interrupts."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(autouse=True)
def _threads_for_callbacks_end_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pool that has had one would otherwise keep its test waiting for a second."""
    monkeypatch.setattr(aside, "LINGER_S", 0.05)
