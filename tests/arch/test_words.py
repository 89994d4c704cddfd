"""Names and words: one family of errors, and a text that an engineer reads once.

``tools/words.py`` has the rules for texts; this file holds the repository to them.
"""

from __future__ import annotations

from fairlead import errors

STANDARD = {"QueueEmpty", "QueueFull", "QueueShutDown"}
"""asyncio's own names: a program that comes from asyncio changes its import only."""


def test_errors_end_in_error_and_warnings_in_warning() -> None:
    for name, found in vars(errors).items():
        if isinstance(found, type) and issubclass(found, errors.FairleadError) and name not in STANDARD:
            ending = "Warning" if issubclass(found, Warning) else "Error"
            assert name.endswith(ending), f"errors.{name} is to be called {name}{ending}"
