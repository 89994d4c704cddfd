"""What this machine can measure, and what is missing for the rest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from fairlead.lab import isolate
from fairlead.lab.environment import environment
from fairlead.lab.interpreters import Discovery, discover
from fairlead.lab.stop import Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """Everything ``fairlead doctor`` tells."""

    machine: dict[str, Any]
    """``environment.environment()``."""
    discovery: Discovery
    real_time_refused: str | None
    """Why samples cannot be run under SCHED_RR; None if they can."""
    missing_extras: dict[str, tuple[str, ...]]
    """Of each extra of this package, the libraries that are not installed."""

    def as_record(self) -> dict[str, Any]:
        """The examination as JSON-ready data."""
        return {
            "machine": self.machine,
            "real_time": {"allowed": self.real_time_refused is None, "reason": self.real_time_refused},
            "interpreters": [interpreter.as_record() for interpreter in self.discovery.interpreters],
            "rejected": [{"path": r.path, "reason": r.reason} for r in self.discovery.rejected],
            "extras": {
                name: {"installed": not missing, "missing": list(missing)}
                for name, missing in self.missing_extras.items()
            },
        }


def examine(stop: Stop | None = None) -> Examination:
    """Look at the machine, its interpreters and the installed extras.

    Raises:
        Interrupted: ``stop`` was set meanwhile.
    """
    return Examination(
        machine=environment(),
        discovery=discover(stop=stop),
        real_time_refused=isolate.real_time_refused(),
        missing_extras=missing_extras(),
    )


def missing_extras() -> dict[str, tuple[str, ...]]:
    """By the package's own metadata: for each extra, the libraries it names that are not installed."""
    missing: dict[str, list[str]] = {}
    for requirement in metadata.requires("fairlead") or []:
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)", requirement)
        name = re.match(r"[\w.-]+", requirement)
        if extra and name:
            lacking = missing.setdefault(extra[1], [])
            try:
                metadata.distribution(name[0])
            except metadata.PackageNotFoundError:
                lacking.append(name[0])
    return {extra: tuple(names) for extra, names in missing.items()}
