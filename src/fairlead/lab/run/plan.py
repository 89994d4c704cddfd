"""What a run is going to measure, written down before it begins, so that it can be continued."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
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
REQUEST_NAME = "request.json"
"""Until there is a plan: a run can be continued from its first second."""
BUDGETS_S = {"quick": 60.0, "standard": 300.0, "full": 3600.0}
"""The time that a run of each mode takes for each interpreter unless it is told otherwise: a claim on one
interpreter says nothing of another, so that with twice as many there is twice as much to settle."""
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
    repeat: int = 1
    """How many runs to carry out, one after the other."""
    beside: int = 0
    """How many busy processes run beside each sample, on its cores."""


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
    growth: bool = True
    """Whether the experiment is about how the time grows with n: with its square, at worst; else in step."""

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
    later: tuple[str, ...] = ()
    """Names of the runs that follow it in the same directory, each with the same plan and budget."""
    files: tuple[str, ...] = ()
    """Paths of the user's own experiments among them."""

    def runs(self) -> Iterator[Plan]:
        """The plan of each run, in their order."""
        for name in (self.run, *self.later):
            yield replace(self, run=name, later=())

    def save(self, directory: Path) -> None:
        """Write the plan into a run directory; it is there whole or not at all. The declarations of a user's
        own experiments are copied beside it: a report can be made when their files have gone.

        Raises:
            OutputError: it cannot be written.
        """
        path = directory / FILE_NAME
        draft = directory / f".{FILE_NAME}.new"
        try:
            for own in map(Path, self.files):
                kept = directory / registry.KEPT / own.name
                if not kept.exists():
                    kept.parent.mkdir(exist_ok=True)
                    kept.write_bytes(own.read_bytes())
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
                    "later": tuple(data["later"]),
                    "files": tuple(data["files"]),
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
                    growth=experiment.subject.growth,
                    skipped=experiment.runs_on(interpreter)
                    or (real_time_refused if params["policy"] == "rr" else None)
                    or (_ONE_CORE if params["cores"] == "two" and len(cpus) < 2 else None),
                )
                # options can make two variants the same
                series.setdefault(json.dumps([experiment.id, params, interpreter.name], sort_keys=True), one)
    run, *later = [uuid.uuid4().hex for _ in range(options.repeat)]
    able = {one.interpreter for one in series.values() if not one.skipped}
    default_s = BUDGETS_S[options.mode] * max(1, len(able))
    return Plan(
        run=run,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        budget_s=default_s if options.budget_s is None else options.budget_s,
        interpreters=tuple(interpreters),
        # without any the key is absent, as it is in samples from before there was one
        environment=environment | ({"beside": options.beside} if options.beside else {}),
        series=tuple(series.values()),
        later=tuple(later),
        files=tuple(dict.fromkeys(str(one.path) for one in selected if one.foreign)),
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


# ---- until there is a plan


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
            (directory / REQUEST_NAME).write_text(json.dumps(asdict(self)), encoding="utf-8")
        except OSError as error:
            raise OutputError(
                f"{directory}: cannot be made ({error.strerror}); choose another --out"
            ) from error
        return made

    @classmethod
    def load(cls, directory: Path) -> Self | None:
        """The request of a run that was stopped before it had a plan; None where there is none."""
        try:
            data = json.loads((directory / REQUEST_NAME).read_text(encoding="utf-8"))
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
        (directory / REQUEST_NAME).unlink()
        for one in made:
            one.rmdir()


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
