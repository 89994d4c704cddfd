"""What this machine can measure, and what is missing for the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

from fairlead.lab.catalogue import checks, registry
from fairlead.lab.catalogue.interpreters import Discovery, discover
from fairlead.lab.catalogue.registry import Experiment
from fairlead.lab.isolation import subprocess_runner
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run.environment import environment
from fairlead.lab.run.pilots import yield_probe


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """Everything ``fairlead doctor`` tells."""

    machine: dict[str, Any]
    """``environment.environment()``."""
    discovery: Discovery
    real_time_refused: str | None
    """Why samples cannot be run under SCHED_RR; None if they can."""
    yield_probe: dict[str, dict[str, Any]]
    """``yields.yield_probe`` of the running interpreter, by the scheduling policies that are allowed."""
    missing_extras: dict[str, tuple[str, ...]]
    """Of each extra of this package, the libraries that are not installed."""
    lacking: dict[str, tuple[str, ...]]
    """Of each experiment, what of it cannot be run here and why, one line each; empty when all can."""

    def as_record(self) -> dict[str, Any]:
        """The examination as JSON-ready data."""
        return {
            "machine": self.machine,
            "real_time": {"allowed": self.real_time_refused is None, "reason": self.real_time_refused},
            "interpreters": [interpreter.as_record() for interpreter in self.discovery.interpreters],
            "rejected": [{"path": r.path, "reason": r.reason} for r in self.discovery.rejected],
            "yield_probe": self.yield_probe,
            "experiments": {name: {"lacking": list(lines)} for name, lines in self.lacking.items()},
            "extras": {
                name: {"installed": not missing, "missing": list(missing)}
                for name, missing in self.missing_extras.items()
            },
        }


def examine(stop: Stop) -> Examination:
    """Look at the machine, its interpreters and the installed extras.

    Raises:
        InterpreterFailedError: the running interpreter itself cannot be run.
        RunInterruptedError: ``stop`` was set meanwhile.
    """
    discovery = discover(stop=stop)
    refused = subprocess_runner.real_time_refused()
    policies = [policy for policy in checks.POLICIES if policy != "rr" or refused is None]
    return Examination(
        machine=environment(),
        discovery=discovery,
        real_time_refused=refused,
        yield_probe={policy: yield_probe(discovery.running, policy, stop) for policy in policies},
        missing_extras=missing_extras(),
        lacking={
            experiment.id: tuple(_lacking(experiment, discovery, refused))
            for experiment in registry.catalogue().values()
        },
    )


def entries(stop: Stop) -> list[dict[str, Any]]:
    """The catalogue as JSON-ready data, one object an experiment.

    ``id``, ``family``, ``title``, ``question``; ``size_name`` and ``smallest`` (what n counts and its least
    value); ``parameters`` (by name: ``default``, ``choices``, ``help``); ``metrics`` (``name``, ``title``,
    ``unit``); ``variants`` (``label``, ``params``, ``modes``, ``policy``, ``cores``, and ``reason``: why it
    cannot be run here, null if it can); ``requirements`` (``python``, ``needs``); ``interpreters`` (by name
    of those found: why the experiment cannot be run there, null if it can); ``can_run`` and ``reason``:
    whether any of them can run it, and why not.

    Raises:
        InterpreterFailedError: the running interpreter itself cannot be run.
        RunInterruptedError: ``stop`` was set meanwhile.
    """
    discovery = discover(stop=stop)
    refused = subprocess_runner.real_time_refused()
    return [_entry(experiment, discovery, refused) for experiment in registry.catalogue().values()]


def _entry(experiment: Experiment, discovery: Discovery, refused: str | None) -> dict[str, Any]:
    reasons = {one.name: experiment.runs_on(one) for one in discovery.interpreters}
    can_run = None in reasons.values()
    subject = experiment.subject
    return {
        "id": experiment.id,
        "family": experiment.id.partition(".")[0],
        "title": subject.title,
        "question": subject.question,
        "size_name": subject.size_name,
        "smallest": experiment.smallest,
        "parameters": {name: asdict(parameter) for name, parameter in experiment.parameters.items()},
        "metrics": [asdict(metric) for metric in subject.metrics],
        "variants": [
            {
                "label": one.label,
                "params": one.params,
                "modes": one.modes,
                "policy": one.policy,
                "cores": one.cores,
                "reason": refused if one.policy == "rr" else None,
            }
            for one in experiment.variants
        ],
        "requirements": {"python": experiment.pythons, "needs": experiment.needs},
        "interpreters": reasons,
        "can_run": can_run,
        "reason": None if can_run else "; ".join(filter(None, reasons.values())),
    }


def _lacking(experiment: Experiment, discovery: Discovery, real_time_refused: str | None) -> Iterator[str]:
    if unfit := [one.name for one in discovery.interpreters if experiment.runs_on(one)]:
        yield f"not on {', '.join(unfit)}: needs Python {experiment.pythons}"
    for variant in experiment.variants:
        if variant.policy == "rr" and real_time_refused:
            yield f"not {variant.label}: {real_time_refused}"


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
