"""The command that measures once more what a summary shows: its sizes, variants, parameters, interpreters."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.lab.catalogue.registry import Experiment, Variant
from fairlead.record.summary import Series, Subject


@dataclass(frozen=True, slots=True)
class Nearest:
    """The variant of the catalogue that comes nearest to a series' parameters, and what differs from it."""

    label: str
    other: dict[str, Any]


def nearest(
    params: Mapping[str, Any], experiment: Experiment, modes: Sequence[str] = ("standard", "quick")
) -> Nearest:
    """``modes``: a parameter may have the value of any of them."""
    usual = {name: {p.value(mode) for mode in modes} for name, p in experiment.parameters.items()}
    found = [_differing(params, usual, variant) for variant in experiment.variants]
    return min(found, key=lambda one: len(one.other), default=Nearest("", dict(params)))


def _differing(params: Mapping[str, Any], usual: Mapping[str, set[Any]], variant: Variant) -> Nearest:
    own = {**variant.params, "policy": variant.policy, "cores": variant.cores}
    meant = {**usual, **{name: {value} for name, value in own.items()}}
    return Nearest(
        variant.label, {name: value for name, value in params.items() if value not in meant.get(name, ())}
    )


def commands(
    subjects: Sequence[Subject], series: Sequence[Series], catalogue: Mapping[str, Experiment]
) -> dict[str, str]:
    """By the name of each experiment, and of each group of them."""
    groups: dict[str, list[Series]] = {}
    for subject in subjects:
        own = [one for one in series if one.experiment == subject.id and subject.id in catalogue]
        for name in dict.fromkeys((subject.id, subject.group or subject.id)):
            groups.setdefault(name, []).extend(own)
    return {name: _command(name, own, catalogue) for name, own in groups.items() if own}


def _command(name: str, series: Sequence[Series], catalogue: Mapping[str, Experiment]) -> str:
    found = {
        mode: [nearest(one.variant, catalogue[one.experiment], (mode,)) for one in series]
        for mode in ("standard", "quick")
    }
    mode = min(found, key=lambda mode: sum(len(one.other) for one in found[mode]))
    own = catalogue[series[0].experiment]
    case = f":{own.parameters['case'].default}" if name == own.id and "case" in own.parameters else ""
    words = ["fairlead", "lab", "run", f"{own.path}{case}" if own.foreign else name]
    words += ["--quick"] if mode == "quick" else []
    for interpreter in dict.fromkeys(_named(one) for one in series):
        words += ["--interpreter", interpreter]
    labels = list(dict.fromkeys(one.label for one in found[mode]))
    expected = [v.label for e in {one.experiment for one in series} for v in catalogue[e].variants_for(mode)]
    if set(labels) != set(expected):
        words += [f"--variant={label}" for label in labels]
    for key, value in _common([one.other for one in found[mode]]).items():
        if key == "policy":
            words += ["--kernel-class", str(value)]
        elif key != "cores":  # "all", where the variant's two are all that there are
            words += ["--set", f"{key}={value}"]
    sizes = sorted({cell.n for one in series for cell in one.cells})
    return shlex.join([*words, *(["--sizes", ",".join(map(str, sizes))] if sizes else [])])


def _named(series: Series) -> str:
    """By its name, or by its path where that is one of several of a name."""
    name = str(series.interpreter.get("name", ""))
    return name if name and "#" not in name else str(series.interpreter.get("path", name))


def _common(others: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What all series have alike: a parameter that was set was set for all of them."""
    first = dict(others[0])
    return {key: value for key, value in first.items() if all(one.get(key) == value for one in others)}
