"""What is to be measured, in a directory that the measuring processes take it from."""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.advice.child.loading import MOST_ITEMS
from fairlead.errors import SerializationError, UsageError
from fairlead.pools.serialization.function import plain


@dataclass(frozen=True, slots=True)
class Target:
    """A function and its items, as jobs name them."""

    directory: Path
    label: str
    """What it is called in sentences."""
    function: dict[str, Any]
    items: dict[str, Any]
    requests: int | None
    path: tuple[str, ...]
    """``sys.path`` of the measuring processes."""
    name: str
    """What it is called in code."""
    module: str | None
    """Where code imports it from; None where only the caller has it."""
    expression: str
    """The items, as they were written on the command line."""
    inputs: Path | None
    """The file that the items were read from."""
    by_reference: bool
    """Whether an interpreter of another version can be given it."""


@contextmanager
def given(fn: Callable[[Any], Any], items: Iterable[Any], requests: int | None) -> Iterator[Target]:
    """One that was given in code.

    Raises:
        UsageError: it cannot be called, there is nothing to call it with, or not so often.
        SerializationError: it cannot be given to another process, or its items cannot.
    """
    if not callable(fn):
        raise UsageError(f"{fn!r:.60} cannot be called: give a function")
    label = getattr(fn, "__qualname__", None) or type(fn).__name__
    try:
        taken = list(itertools.islice(iter(items), MOST_ITEMS))
    except TypeError as error:
        raise UsageError(f"items must be an iterable, not {items!r:.60}") from error
    if not taken:
        raise UsageError("there are no items: give at least one")
    with _directory() as directory:
        pickled = _pickled(fn, f"the function {label}")
        (directory / "function").write_bytes(pickled)
        (directory / "items").write_bytes(_pickled(taken, "the items"))
        module = getattr(plain(fn), "__module__", None)
        simple = (
            module not in (None, "__main__") and "<" not in label and getattr(fn, "__name__", None) == label
        )
        yield Target(
            directory=directory,
            label=label,
            function={"pickle": str(directory / "function"), "label": label},
            items={"pickle": str(directory / "items"), "expression": ""},
            requests=_checked(requests),
            path=tuple(sys.path),
            name=label if label.isidentifier() else "fn",
            module=module if simple else None,
            expression="",
            inputs=None,
            by_reference=b"cloudpickle" not in pickled and module != "__main__",
        )


@contextmanager
def named(target: str, expression: str | None, inputs: Path | None, requests: int | None) -> Iterator[Target]:
    """One that was named on the command line, as "module:function".

    Raises:
        UsageError: it is not written so, or the inputs are none.
    """
    module, colon, name = target.partition(":")
    if not colon or not module or not name or not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"{target!r} names no function: write module:function")
    if module.endswith(".py"):
        raise UsageError(f"{module} is a file: name its module, as {Path(module).stem}:{name}")
    if (expression is None) == (inputs is None):
        raise UsageError("give the function's items: either --items MODULE:NAME or --inputs FILE")
    with _directory() as directory:
        if inputs is not None:
            (directory / "items").write_bytes(_pickled(_read(inputs), "the items"))
        yield Target(
            directory=directory,
            label=target,
            function={"module": module, "name": name, "label": target},
            items={"pickle": str(directory / "items"), "expression": expression or ""},
            requests=_checked(requests),
            path=(str(Path.cwd()), *(entry for entry in sys.path if entry)),
            name=name,
            module=module,
            expression=expression or "",
            inputs=inputs,
            by_reference=True,
        )


def _read(file: Path) -> list[Any]:
    """One item a line, as JSON."""
    items = []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror}): name a file of JSON lines") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not UTF-8: write one JSON value a line") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                items.append(json.loads(line))
            except ValueError as error:
                raise UsageError(f"{file}:{number}: not JSON ({error}): write one value a line") from error
    if not items:
        raise UsageError(f"{file}: there are no items in it: write one JSON value a line")
    return items


def _checked(requests: int | None) -> int | None:
    if requests is not None and requests < 1:
        raise UsageError(f"requests must be at least 1, not {requests}")
    return requests


def _pickled(value: Any, what: str) -> bytes:
    import cloudpickle

    try:
        # the measuring processes have another __main__: what is of this one goes by value
        pickled: bytes = cloudpickle.dumps(value, 5)
    except Exception as error:
        raise SerializationError(
            f"{what} cannot be sent to the measuring processes: {' '.join(str(error).split())}; put it "
            "into a module, and name it: fairlead advise module:function"
        ) from error
    return pickled


@contextmanager
def _directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fairlead-advise-", ignore_cleanup_errors=True) as name:
        yield Path(name)
