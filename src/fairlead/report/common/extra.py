"""The libraries of the [lab] extra, asked for when they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fairlead.errors import MissingExtraError


@contextmanager
def needed_for(purpose: str) -> Iterator[None]:
    """Around imports: a library that is not installed becomes a word on what to install.

    Raises:
        MissingExtraError: names the library, what it is needed for and the command that brings it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{purpose} needs {error.name}, which is not installed: pip install 'fairlead[lab]'"
        ) from error
