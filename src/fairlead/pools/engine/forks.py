"""What becomes of pools in a forked child: the one place where that is registered.

A child has only the thread that forked. Whatever lock another thread held stays held there for ever, and no
other thread of the parent goes on. So each lock of this package that a child can meet is made anew, and what
needs the parent's threads or workers is forgotten: pools are closed, streams are at their end.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from typing import Protocol


class Forked(Protocol):
    """Whatever has locks of its own, or needs threads of its process."""

    def forget_after_fork(self) -> None:
        """In a forked child, by its only thread."""


_owners: weakref.WeakSet[Forked] = weakref.WeakSet()
"""Iterated in children only, where no other thread adds to it."""
_modules: list[Callable[[], None]] = []


def remember(owner: Forked) -> None:
    """Has its ``forget_after_fork`` called in children, as long as it is in use."""
    _owners.add(owner)


def in_child(function: Callable[[], None]) -> Callable[[], None]:
    """A decorator: for what a module keeps."""
    _modules.append(function)
    return function


def _forked() -> None:
    for function in _modules:
        function()
    for owner in list(_owners):
        owner.forget_after_fork()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forked)
