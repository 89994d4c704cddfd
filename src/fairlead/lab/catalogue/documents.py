"""The documents that the experiments repeat, read from the file that stands beside them.

The head of that file says what its keys mean.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from fairlead.errors import UsageError
from fairlead.lab.catalogue import checks, registry
from fairlead.lab.catalogue.registry import Experiment, Variant
from fairlead.record.document import Document, Table

FILE = "documents.toml"
PREFIX = "document:"
"""What a word that names one begins with, where experiments are asked for."""


@cache
def documents() -> dict[str, Document]:
    """Every document by its name, in the order of the file."""
    return {
        name: Document(
            id=name,
            **{key: one[key] for key in ("author", "title", "address", "licence")},
            tables=tuple(_table(table) for table in one["tables"]),
        )
        for name, one in _read().items()
    }


def experiments(word: str) -> list[Experiment]:
    """What "document:NAME" stands for: the experiments of its tables with the variants and sizes of those.

    Raises:
        UsageError: there is no such document; says which there are.
    """
    name = word.removeprefix(PREFIX)
    if name not in _read():
        raise UsageError(f"unknown document {name!r}: there are {', '.join(_read())}")
    variants: dict[str, list[Variant]] = {}
    for table in _read()[name]["tables"]:
        variants.setdefault(table["experiment"], []).extend(_variants(table))
    known = registry.catalogue()
    return [replace(known[one], variants=tuple(its)) for one, its in variants.items()]


def repeated(measured: Iterable[str]) -> tuple[Document, ...]:
    """The documents of whose tables one at least is about a measured experiment."""
    ids = set(measured)
    return tuple(one for one in documents().values() if ids & {table.experiment for table in one.tables})


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads((registry.DIRECTORY / FILE).read_text(encoding="utf-8"))


def _variants(table: dict[str, Any]) -> Iterator[Variant]:
    """Those of a table, at its sizes but for quick runs."""
    declared = {one.label: one for one in registry.catalogue()[table["experiment"]].variants}
    slow = checks.MODES[1:]
    sizes = dict.fromkeys(slow, tuple(table["sizes"])) if "sizes" in table else {}
    for label in table.get("quick", []):
        yield replace(declared[label], modes=checks.MODES[:1])
    for label in table.get("variants", [""]):
        one = declared[label]
        if sizes:
            quick = {key: its for key, its in one.sizes.items() if key.startswith(checks.MODES[0])}
            one = replace(one, sizes=quick | sizes)
        modes = slow if "quick" in table else checks.MODES
        varied = table.get("vary", {})
        for values in itertools.product(*varied.values()):
            further = dict(zip(varied, values, strict=True))
            named = ", ".join(filter(None, [label, *(f"{key} {value}" for key, value in further.items())]))
            yield replace(one, label=named, params=one.params | further, modes=modes)


def _table(table: dict[str, Any]) -> Table:
    experiment, own = registry.catalogue()[table["experiment"]], list(_variants(table))
    named = {name for one in (*experiment.variants, *own) for name in one.params}
    usual = {name: one.default for name, one in experiment.parameters.items() if name in named}
    return Table(
        title=table["title"],
        experiment=table["experiment"],
        settings=tuple({**usual, **one.params, "policy": one.policy, "cores": one.cores} for one in own),
        labels=tuple(table.get("labels", ())),
        says=table.get("says", ""),
        claims=tuple(table.get("claims", ())),
    )
