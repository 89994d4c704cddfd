"""Whether a declaration can be meant: names that are known, sizes that rise, versions that compare."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, get_args

from fairlead.errors import UsageError
from fairlead.record.summary import Schedule, Unit, meets

if TYPE_CHECKING:
    from fairlead.lab.catalogue.interpreters import Interpreter
    from fairlead.lab.catalogue.registry import Experiment

MODES = ("quick", "standard", "full")
"""quick: a look in a minute or two. standard: sizes of a few seconds. full: the sizes of the references."""

IMPLEMENTATIONS = ("CPython", "PyPy")
POLICIES = ("other", "rr")
CORES = ("all", "two", "one")
NEEDS = ("fairlead",)
"""What an experiment may need besides a standard library. It skips itself, with the reason, where that is not
there: only the measured interpreter knows."""

LARGEST = 1 << 22
"""The greatest n that an experiment takes: Linux has no more threads or processes (PID_MAX_LIMIT)."""

TEXTS = ("id", "title", "question", "explanation", "size_name", "pythons")
_FEWEST = {True: "two", False: "one"}


def check(experiment: Experiment) -> None:
    """Raise ValueError for what parses, but cannot be meant."""
    for name in TEXTS[1:-1]:
        if not isinstance(text := getattr(experiment.subject, name), str) or not text:
            raise ValueError(f"{name} is a text")
    one_of("schedule", experiment.subject.schedule, get_args(Schedule))
    metrics = {metric.name: metric.unit for metric in experiment.subject.metrics}
    if len(metrics) != len(experiment.subject.metrics):
        raise ValueError("two metrics have the same name")
    for unit in metrics.values():
        one_of("unit", unit, get_args(Unit))
    if experiment.value is not None and metrics.get(experiment.value) != "s":
        raise ValueError(f"value {experiment.value!r} is no metric with the unit s")
    check_size(experiment.smallest)
    ways = experiment.parameters.get(experiment.subject.ways)
    if ways is None and experiment.subject.ways != "case":
        raise ValueError(f"ways {experiment.subject.ways!r} is no parameter")
    if experiment.subject.base:
        one_of("base", experiment.subject.base, [str(way) for way in ways.choices] if ways else [])
    for need in experiment.needs:
        one_of("need", need, NEEDS)
    for name, parameter in experiment.parameters.items():
        for value in (parameter.default, parameter.value("quick")):
            if value not in parameter.choices:
                raise ValueError(f"parameter {name}: the default {value!r} is none of its choices")
    for variant in experiment.variants:
        experiment.check_params(variant.params)
        one_of("policy", variant.policy, POLICIES)
        one_of("cores", variant.cores, CORES)
        for mode in variant.modes:
            one_of("mode", mode, MODES)
        check_sizes(variant.sizes, experiment)
    _check_calibrated(experiment)
    labels = [variant.label for variant in experiment.variants]
    if len(labels) != len(set(labels)):
        raise ValueError("two variants have the same label")
    for mode in MODES:
        if mode not in experiment.sizes:
            raise ValueError(f"no sizes for the mode {mode!r}")
    check_sizes(experiment.sizes, experiment)
    if experiment.timeout_s <= 0:
        raise ValueError("timeout_s is above 0")
    meets(experiment.pythons, "3.11")


def _check_calibrated(experiment: Experiment) -> None:
    if (how := experiment.calibrated) is None:
        return
    one_of("calibrated parameter", how.parameter, list(experiment.parameters))
    choices = experiment.parameters[how.parameter].choices
    if not all(type(one) in (int, float) for one in choices) or list(choices) != sorted(set(choices)):
        raise ValueError(f"the choices of {how.parameter!r}, which is calibrated, are numbers that rise")
    if not how.seconds > 0:
        raise ValueError("seconds of calibrated is above 0")
    if "experiment" not in how.of:
        experiment.check_params(how.of)


def check_sizes(table: Mapping[str, tuple[int, ...]], experiment: Experiment) -> None:
    for key, sizes in table.items():
        mode, colon, kind = key.partition(":")
        one_of("mode", mode, MODES)
        if mode not in table:
            raise ValueError(f"sizes {key!r}: there are none for {mode!r} alone")
        if colon and kind not in IMPLEMENTATIONS:
            meets(kind, "3.11")
        if len(sizes) < 1 + experiment.subject.growth or list(sizes) != sorted(
            {experiment.check_size(size) for size in sizes}
        ):
            raise ValueError(f"sizes {key!r}: at least {_FEWEST[experiment.subject.growth]}, rising")


def one_of(what: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"unknown {what} {value!r}: one of {', '.join(choices)}")


def known(what: str, names: Iterable[str], known: Sequence[str]) -> None:
    if unknown := sorted(set(names).difference(known)):
        raise ValueError(f"unknown {what} {unknown[0]!r}{did_you_mean(unknown[0], known)}")


def check_size(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"size {value!r} is not a whole number")
    if value < 1:
        raise UsageError(f"size {value} is too small: at least 1")
    if value > LARGEST:
        raise UsageError(f"size {value} is too large: at most {LARGEST}")
    return value


def did_you_mean(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def is_kind(interpreter: Interpreter, kind: str) -> bool:
    """Whether an interpreter is of an implementation, or is a CPython of one of the versions."""
    if kind in IMPLEMENTATIONS:
        return interpreter.implementation == kind
    return interpreter.implementation == "CPython" and meets(kind, interpreter.version)
