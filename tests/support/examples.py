"""How many examples a property is tried with, and which of many cases the gate tries."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from hypothesis import settings


def share_of_examples(share: float) -> settings:
    """For a property whose examples take long: a share of those of the profile."""
    return settings(max_examples=max(1, round(settings.default.max_examples * share)))


def first(gate: Collection[Any], others: Iterable[Any]) -> list[Any]:
    """Cases for parametrize: those of the gate, and others, which are left to the long tests."""
    rest = [case for case in others if case not in gate]
    long = [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long) for case in rest
    ]
    return [*gate, *long]
