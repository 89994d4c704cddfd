"""What was asked for, kept while a plan is made of it: a run can be continued from its first second."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from fairlead.errors import OutputError
from fairlead.lab.run.plan import RunOptions

FILE_NAME = "request.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Options, and which interpreters: the plan has those that were found."""

    options: RunOptions
    asked: tuple[str, ...] = ()
    all_found: bool = False
    contrasted: bool = False

    def save(self, directory: Path) -> tuple[Path, ...]:
        """Write it into the directory of a new run; the directories that were made for it, innermost first.

        Raises:
            OutputError: it cannot be written.
        """
        try:
            made = tuple(one for one in (directory, *directory.parents) if not one.exists())
            directory.mkdir(parents=True, exist_ok=True)
            (directory / FILE_NAME).write_text(json.dumps(asdict(self)), encoding="utf-8")
        except OSError as error:
            raise OutputError(
                f"{directory}: cannot be made ({error.strerror}); choose another --out"
            ) from error
        return made

    @classmethod
    def load(cls, directory: Path) -> Self | None:
        """The request of a run that was stopped before it had a plan; None where there is none."""
        try:
            data = json.loads((directory / FILE_NAME).read_text(encoding="utf-8"))
            options = RunOptions(
                **{one.name: _frozen(data["options"][one.name]) for one in fields(RunOptions)}
            )
            rest = {name: _frozen(data[name]) for name in ("asked", "all_found", "contrasted")}
            return cls(options=options, **rest)
        except (OSError, ValueError, TypeError, KeyError):
            return None


def forget(directory: Path, made: tuple[Path, ...] = ()) -> None:
    """A plan has taken its place; or nothing will, and what ``save`` has ``made`` goes too."""
    with contextlib.suppress(OSError):
        (directory / FILE_NAME).unlink()
        for one in made:
            one.rmdir()


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
