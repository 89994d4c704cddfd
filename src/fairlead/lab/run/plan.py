"""What a run is going to measure, written down before it begins, so that it can be continued."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from fairlead.errors import OutputError, RecordError, UsageError
from fairlead.lab.catalogue import registry
from fairlead.lab.catalogue.interpreters import Interpreter
from fairlead.lab.catalogue.registry import Experiment, Variant
from fairlead.record.results import PLAN_NAME

SCHEMA = 1
FILE_NAME = PLAN_NAME
BUDGETS_S = {"quick": 60.0, "standard": 300.0, "full": 3600.0}
"""The time that a run of each mode takes unless it is told otherwise."""
_PINNED = {"all": None, "two": 2, "one": 1}
"""How many of the cores a variant's probe may use."""
_ONE_CORE = "needs two cores, and this run has one"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the user asked for; what is None is left to the experiments."""

    ids: tuple[str, ...] = ()
    """Experiments, families or patterns; none: the whole catalogue."""
    mode: str = "quick"
    sizes: tuple[int, ...] | None = None
    work: str | None = None
    cpus: tuple[int, ...] | None = None
    policy: str | None = None
    budget_s: float | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    """Parameters by name, for every experiment named that has one of the name; with the values as text."""
    variants: tuple[str, ...] = ()
    """Labels of the variants to run, of whatever mode; none: those of the mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSeries:
    """One experiment with one set of parameters on one interpreter, over rising sizes."""

    experiment: str
    params: dict[str, Any]
    """All that the probe is given but n: the experiment's own parameters, ``policy`` and ``cores``."""
    interpreter: str
    """Its name."""
    sizes: tuple[int, ...]
    cpus: tuple[int, ...]
    """The cores that the probe may use."""
    timeout_s: float
    skipped: str | None = None
    """Why it cannot be run here."""

    @property
    def policy(self) -> str:
        """The scheduling policy: "other" or "rr"."""
        return str(self.params["policy"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run, complete in itself."""

    run: str
    """Unique name of the run; marks every process it starts."""
    created: str
    budget_s: float
    interpreters: tuple[Interpreter, ...]
    environment: dict[str, Any]
    series: tuple[PlannedSeries, ...]

    def save(self, directory: Path) -> None:
        """Write the plan into a run directory; it is there whole or not at all.

        Raises:
            OutputError: it cannot be written.
        """
        path = directory / FILE_NAME
        draft = directory / f".{FILE_NAME}.new"
        try:
            with draft.open("w", encoding="utf-8") as file:
                json.dump({"schema": SCHEMA, **asdict(self)}, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise OutputError(
                f"{path}: cannot be written ({error.strerror}); choose another --out"
            ) from error

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Read the plan of a run that is to be continued.

        Raises:
            RecordError: there is none, or it is damaged or of a newer version.
        """
        path = directory / FILE_NAME
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            schema = data.pop("schema")
            if schema > SCHEMA:
                raise RecordError(
                    f"{path}: written by a newer version of fairlead; upgrade to continue this run"
                )
            return cls(
                **{
                    **data,
                    "interpreters": tuple(Interpreter(**record) for record in data["interpreters"]),
                    "series": tuple(_series(record) for record in data["series"]),
                }
            )
        except FileNotFoundError:
            raise RecordError(f"{directory}: no run to continue here ({FILE_NAME} is missing)") from None
        except OSError as error:
            raise RecordError(f"{path}: cannot be read ({error.strerror})") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, RecordError):
                raise
            raise RecordError(
                f"{path}: damaged; the run cannot be continued, its samples can be read"
            ) from error


def _series(record: dict[str, Any]) -> PlannedSeries:
    return PlannedSeries(**{**record, "sizes": tuple(record["sizes"]), "cpus": tuple(record["cpus"])})


def make_plan(
    options: RunOptions,
    interpreters: Sequence[Interpreter],
    environment: dict[str, Any],
    real_time_refused: str | None,
) -> Plan:
    """Decide what to measure.

    Every experiment x variant x interpreter is one series. What a series cannot have here (an interpreter
    that is too old, a policy that is refused) makes it a skipped one, with the reason.

    Raises:
        UsageError: an unknown experiment, parameter or core; says which there are.
    """
    allowed = tuple(environment["affinity"])
    cpus = allowed if options.cpus is None else options.cpus
    if strangers := [cpu for cpu in cpus if cpu not in allowed]:
        listed = ",".join(map(str, allowed))
        raise UsageError(f"core {strangers[0]} is not one that this process may use: those are {listed}")
    series: dict[str, PlannedSeries] = {}
    selected = registry.select(options.ids)
    _check_set(selected, options)
    for experiment in selected:
        for variant in _variants(experiment, options):
            params = _params(experiment, variant, options, len(cpus))
            for interpreter in interpreters:
                one = PlannedSeries(
                    experiment=experiment.id,
                    params=params,
                    interpreter=interpreter.name,
                    sizes=_sizes(experiment, variant, interpreter, options),
                    cpus=cpus[: _PINNED[params["cores"]]],
                    timeout_s=experiment.timeout_s,
                    skipped=experiment.runs_on(interpreter)
                    or (real_time_refused if params["policy"] == "rr" else None)
                    or (_ONE_CORE if params["cores"] == "two" and len(cpus) < 2 else None),
                )
                # options can make two variants the same
                series.setdefault(json.dumps([experiment.id, params, interpreter.name], sort_keys=True), one)
    return Plan(
        run=uuid.uuid4().hex,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        budget_s=BUDGETS_S[options.mode] if options.budget_s is None else options.budget_s,
        interpreters=tuple(interpreters),
        environment=environment,
        series=tuple(series.values()),
    )


def _check_set(selected: Sequence[Experiment], options: RunOptions) -> None:
    """Refuse a parameter or a variant that no experiment has."""
    for name, _ in options.parameters:
        if not any(name in experiment.parameters for experiment in selected):
            known = dict.fromkeys(one for experiment in selected for one in experiment.parameters)
            there = ", ".join(known) or "none"
            raise UsageError(f"--set {name}: no experiment named has this parameter; there are {there}")
    labels = {variant.label: None for experiment in selected for variant in experiment.variants}
    for label in options.variants:
        if label not in labels:
            known_labels = ", ".join(repr(one) for one in labels if one)
            raise UsageError(
                f"--variant {label!r} is not known: "
                + (
                    f"there are {known_labels}"
                    if known_labels
                    else "these experiments have one without a name"
                )
            )


def _variants(experiment: Experiment, options: RunOptions) -> Sequence[Variant]:
    if not options.variants:
        return experiment.variants_for(options.mode)
    return [one for one in experiment.variants if one.label in options.variants]


def _sizes(
    experiment: Experiment, variant: Variant, interpreter: Interpreter, options: RunOptions
) -> tuple[int, ...]:
    if options.sizes is None:
        return experiment.sizes_for(options.mode, interpreter, variant)
    return tuple(experiment.check_size(size) for size in options.sizes)


def _params(experiment: Experiment, variant: Variant, options: RunOptions, cores: int) -> dict[str, Any]:
    """The parameters of one variant: the experiment's defaults, then the variant's own, then the user's."""
    policy = options.policy or variant.policy
    params = {name: parameter.value(options.mode) for name, parameter in experiment.parameters.items()}
    params |= variant.params
    if options.work is not None:
        experiment.check_params({"work": options.work})
        params["work"] = options.work
    elif policy == "rr" and "yield" in _choices(experiment, "work"):
        # under SCHED_RR time.sleep(0) gives up nothing: the thread spins until its slice is over
        params["work"] = "yield"
    for name, text in options.parameters:
        if name in experiment.parameters:
            params[name] = _chosen(experiment, name, text)
    # two cores that are all there are: measured once
    pinned = "all" if (variant.cores, cores) == ("two", 2) else variant.cores
    return params | {"policy": policy, "cores": pinned}


def _chosen(experiment: Experiment, name: str, text: str) -> Any:
    """The value of a parameter that is written so."""
    by_text = {str(choice): choice for choice in experiment.parameters[name].choices}
    if text not in by_text:
        experiment.check_params({name: text})
    return by_text[text]


def _choices(experiment: Experiment, name: str) -> Iterable[Any]:
    parameter = experiment.parameters.get(name)
    return parameter.choices if parameter else ()
