"""What is alike in the signatures of all primitives."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead import sync
from fairlead.sync import shared

pytestmark = pytest.mark.ends_and_free


def methods(ending: str) -> Iterator[Any]:
    """acquire() and its variants of every public class, as (class, name, names of its arguments)."""
    for module in (sync, shared):
        for name in module.__all__:
            kind = getattr(module, name)
            if not isinstance(kind, type):
                continue
            for method in (each for each in dir(kind) if each.startswith("acquire")):
                if method.endswith("_async") == (ending == "_async") and callable(getattr(kind, method)):
                    arguments = list(inspect.signature(getattr(kind, method)).parameters)[1:]
                    about = [each for each in arguments if each != "borrower"]
                    yield pytest.param(about, id=f"{kind.__module__}.{name}.{method}")


@pytest.mark.parametrize("arguments", list(methods("")))
def test_acquire_takes_its_arguments_in_one_order(arguments: list[str]) -> None:
    assert arguments == ["blocking", "timeout", "n"][: len(arguments)]
    assert len(arguments) >= 2


@pytest.mark.parametrize("arguments", list(methods("_async")))
def test_acquire_async_takes_a_number_of_permits_at_most(arguments: list[str]) -> None:
    assert arguments in ([], ["n"])
