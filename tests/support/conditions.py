"""Conditions in tests."""

from __future__ import annotations

from collections.abc import Callable

from fairlead.sync import Condition


def waiting(condition: Condition, many: int) -> Callable[[], bool]:
    """The state that so many wait and the lock is free, so that all of them have let go of it."""
    return lambda: condition.statistics().waiting == many and not condition.locked()
