"""The catalogue of experiments, read from the files in ``experiments/``.

An experiment is one file: a program that runs on any interpreter from Python 2.7 on, and
above it one literal dictionary, ``EXPERIMENT``, that says what it is. The registry reads
that dictionary as text and never executes the file, so that a broken experiment cannot
take the lab down, and the interpreter that measures never has to be the one that runs the lab.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fairlead.errors import UsageError
from fairlead.record.summary import Reference, Subject

DIRECTORY = Path(__file__).parent / "experiments"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of an experiment other than its size."""

    default: Any
    choices: tuple[Any, ...]
    help: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One set of parameters worth running, with the short label it has in tables."""

    label: str
    params: dict[str, Any]
    modes: tuple[str, ...]
    """The modes of a run ("quick", "standard", "full") that include it."""
    policy: str = "other"
    """Scheduling policy of the whole probe: "other" or "rr" (round robin, real time)."""
    cores: str = "all"
    """"all", or "one": pin the whole probe to the first of the cores it may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One entry of the catalogue."""

    subject: Subject
    path: Path
    parameters: dict[str, Parameter]
    variants: tuple[Variant, ...]
    sizes: dict[str, tuple[int, ...]]
    """Sizes by mode. A key "quick:2.7" or "quick:PyPy" overrides "quick" for that one."""
    timeout_s: float
    """The time after which one sample is killed."""
    pythons: str
    """The versions of Python it runs on, as ">=2.7"."""

    @property
    def id(self) -> str:
        return self.subject.id


def load(path: Path) -> Experiment:
    """Read one experiment's declaration.

    Raises:
        UsageError: the file declares no valid ``EXPERIMENT``; names the file and the fault.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        declared = next(
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == "EXPERIMENT" for t in node.targets)
        )
        references = tuple(
            Reference(
                label=r["label"],
                points=tuple((int(n), float(s)) for n, s in r["points"]),
                exponent=r.get("exponent"),
                variant=r.get("variant", {}),
            )
            for r in declared.get("references", [])
        )
        subject = Subject(
            id=declared["id"],
            title=declared["title"],
            question=declared["question"],
            explanation=declared["explanation"],
            size_name=declared["size_name"],
            references=references,
            schedule=declared.get("schedule", ""),
        )
        return Experiment(
            subject=subject,
            path=path,
            parameters={
                name: Parameter(default=p["default"], choices=tuple(p["choices"]), help=p["help"])
                for name, p in declared.get("parameters", {}).items()
            },
            variants=tuple(Variant(**{**v, "modes": tuple(v["modes"])}) for v in declared["variants"]),
            sizes={mode: tuple(sizes) for mode, sizes in declared["sizes"].items()},
            timeout_s=float(declared["timeout_s"]),
            pythons=declared["pythons"],
        )
    except StopIteration:
        raise UsageError(f"{path}: no EXPERIMENT = {{...}} at the top of the file") from None
    except (SyntaxError, ValueError, TypeError, KeyError, OSError) as error:
        raise UsageError(f"{path}: EXPERIMENT is not valid: {error!r}") from error


@cache
def catalogue() -> dict[str, Experiment]:
    """Every experiment by its id, in the order of their file names."""
    found = [load(path) for path in sorted(DIRECTORY.glob("[a-z]*_*.py"))]
    return {experiment.id: experiment for experiment in found}
