"""Published figures, read from the file that stands beside the experiments."""

from __future__ import annotations

import ast
import csv
import itertools
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

from fairlead.record.summary import Reference, Unit, meets

_KEY = ("experiment", "variant", "label", "metric", "unit")


@cache
def references(path: Path) -> dict[str, tuple[Reference, ...]]:
    """The published figures in a file, by experiment: a ``Reference`` for each variant, label and metric.

    The columns: ``experiment``; ``variant``, the parameters that the figures belong to, as "cores=one;
    policy=rr", of several values each as "cores=all|one", empty for all; ``label``, what they were measured
    on, beginning with the implementation where they are about one; ``metric``, a metric of the experiment's,
    a field of a cell, or "elapsed"; ``unit``; ``n``, empty where the source does not say; ``value``;
    ``versions``, those of the interpreter that the figure is about, as "<3.2", missing or empty for all.
    """
    curves: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                key = (*(row[name] for name in _KEY), row.get("versions") or "")
                curves.setdefault(key, []).append((int(row["n"] or 0), float(row["value"])))
    found: dict[str, list[Reference]] = {}
    for (name, variant, label, metric, unit, versions), points in curves.items():
        if unit not in get_args(Unit):
            raise ValueError(f"{path.name}: unknown unit {unit!r}")
        if versions:
            meets(versions, "")  # raises where it is none
        found.setdefault(name, []).extend(
            Reference(
                label=label,
                points=tuple(points),
                variant=one,
                metric=metric,
                unit=unit,  # type: ignore[arg-type]  # checked above
                versions=versions,
            )
            for one in _variants(variant)
        )
    return {name: tuple(all_of_it) for name, all_of_it in found.items()}


def _variants(words: str) -> Iterator[dict[str, Any]]:
    """Each variant that the figures belong to."""
    pairs = [word.split("=", 1) for word in filter(None, words.split("; "))]
    for values in itertools.product(*(value.split("|") for _, value in pairs)):
        yield {key: _typed(value) for (key, _), value in zip(pairs, values, strict=True)}


def _typed(word: str) -> Any:
    """A parameter's value as a declaration has it: a number where it is one."""
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError):
        return word
