"""The catalogue of experiments, read from the files in ``experiments/``.

An experiment is one file: a program that runs on any interpreter from Python 2.7 on, and
above it one literal dictionary, ``EXPERIMENT``, that says what it is. The registry reads
that dictionary as text and never executes the file, so that a broken experiment cannot
take the lab down, and the interpreter that measures never has to be the one that runs the lab.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

from fairlead.errors import UsageError
from fairlead.lab.catalogue.declared import Declared
from fairlead.lab.catalogue.interpreters import Interpreter
from fairlead.lab.catalogue.references import references
from fairlead.record.summary import Metric, Schedule, Subject, Unit, meets

DIRECTORY = Path(__file__).parents[1] / "experiments"
REFERENCES = "references.csv"
"""Beside the experiments: what others have published of them, row by row."""

MODES = ("quick", "standard", "full")
"""quick: a look in a minute or two. standard: sizes of a few seconds. full: the sizes of the references."""

IMPLEMENTATIONS = ("CPython", "PyPy")
POLICIES = ("other", "rr")
CORES = ("all", "two", "one")
NEEDS = ("fairlead",)
"""What an experiment may need besides a standard library. It skips itself, with the reason, where that is not
there: only the measured interpreter knows."""

SMALLEST = 2
"""The least n of an experiment that declares no other: one participant alone has none to wait for."""

SPEED_UP = Metric(name="speed_up", title="speed-up", unit="ratio")
"""What an experiment with a ``base`` is given besides its own metrics; ``ranking.sped_up`` fills it in."""

LARGEST = 1 << 22
"""The greatest n that an experiment takes: Linux has no more threads or processes (PID_MAX_LIMIT)."""

_TEXTS = ("id", "title", "question", "explanation", "size_name", "pythons")
_OPTIONAL = (
    "schedule", "needs", "smallest", "metrics", "value", "growth", "cases", "ways", "base", "claims"
)  # fmt: skip
_KEYS = (*_TEXTS, "parameters", "variants", "sizes", "timeout_s", *_OPTIONAL)
_OF_A_CASE = ("title", "question", "explanation", "sizes")
"""What a case may have of its own; the rest it shares with the other cases of its file."""
_FEWEST = {True: "two", False: "one"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of an experiment other than its size."""

    default: Any
    choices: tuple[Any, ...]
    help: str
    quick: Any = None
    """What it is in the mode "quick", where the default would take too long; None: the default."""

    def value(self, mode: str) -> Any:
        """What it is in a mode, unless a variant says otherwise."""
        return self.quick if mode == "quick" and self.quick is not None else self.default


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
    """"all"; or "two" or "one": pin the whole probe to the first of the cores it may use."""
    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Sizes of its own for some modes, written like those of the experiment, which they replace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One entry of the catalogue."""

    subject: Subject
    path: Path
    parameters: dict[str, Parameter]
    variants: tuple[Variant, ...]
    sizes: dict[str, tuple[int, ...]]
    """Sizes by mode. A key "quick:2.7" or "quick:<3.11" overrides "quick" for those versions of CPython, a
    key "quick:PyPy" for that implementation; the first that fits counts."""
    timeout_s: float
    """The time after which one sample is killed."""
    pythons: str
    """The versions of Python it runs on, as ">=2.7" or ">=3.8,<3.15"."""
    needs: tuple[str, ...] = ()
    """What it imports besides the standard library; see ``NEEDS``."""
    smallest: int = SMALLEST
    """The least n it takes."""
    cases: dict[str, Experiment] = field(default_factory=dict)
    """By the values of a parameter ``case``, of a file that is an experiment for each of them: those
    experiments. The catalogue has them, and not what they come from."""
    claims: tuple[Declared, ...] = ()
    """What a run is to settle. Experiments of one group have the same."""
    value: str | None = None
    """The metric, in seconds, that the statistics are about; None for the time of the measured region."""

    @property
    def id(self) -> str:
        return self.subject.id

    def sizes_for(
        self, mode: str, interpreter: Interpreter, variant: Variant | None = None
    ) -> tuple[int, ...]:
        """The sizes worth running in a mode on an interpreter, smallest first.

        Raises:
            UsageError: there is no such mode.
        """
        if mode not in MODES:
            raise UsageError(f"unknown mode {mode!r}: one of {', '.join(MODES)}")
        table = variant.sizes if variant is not None and mode in variant.sizes else self.sizes
        for key, sizes in table.items():
            its_mode, _, kind = key.partition(":")
            if its_mode == mode and kind and _is_kind(interpreter, kind):
                return sizes
        return table[mode]

    def variants_for(self, mode: str) -> tuple[Variant, ...]:
        """The variants that belong to a mode, in the order of their declaration."""
        return tuple(variant for variant in self.variants if mode in variant.modes)

    def runs_on(self, interpreter: Interpreter) -> str | None:
        """Why an interpreter cannot run this experiment; None when it can."""
        if meets(self.pythons, interpreter.version):
            return None
        return f"{self.id} needs Python {self.pythons}; this is {interpreter.version}"

    def check_size(self, value: object) -> int:
        """A size, if it is one that the experiment takes.

        Raises:
            UsageError: it is not; says which it takes.
        """
        size = _check_size(value)
        if size < self.smallest:
            raise UsageError(f"size {size} is too small for {self.id}: at least {self.smallest}")
        return size

    def check_params(self, params: Mapping[str, Any]) -> None:
        """Check parameters that a user gave, ``n`` among them or not.

        Raises:
            UsageError: a name or a value that the experiment does not know; says which it knows.
        """
        for name, value in params.items():
            if name == "n":
                self.check_size(value)
            elif name not in self.parameters:
                near = _did_you_mean(name, self.parameters)
                known = ", ".join(self.parameters) or "none but n"
                raise UsageError(f"{self.id} has no parameter {name!r}{near}: it has {known}")
            elif value not in self.parameters[name].choices:
                choices = [str(choice) for choice in self.parameters[name].choices]
                near = _did_you_mean(str(value), choices)
                raise UsageError(
                    f"{self.id}: {name}={value!r} is not known{near}: one of {', '.join(choices)}"
                )


def select(ids: Sequence[str]) -> list[Experiment]:
    """The experiments that words name, each once, in the order of the words.

    A word is an id ("square.mutex"), a family or a pattern of one ("square", "square.*"), or the part of ids
    that several have in common ("models.io").
    No words at all name the whole catalogue.

    Raises:
        UsageError: a word that names none.
    """
    known = catalogue()
    if not ids:
        return list(known.values())
    chosen: dict[str, Experiment] = {}
    for word in ids:
        family = word.removesuffix(".*") + "."
        found = (
            [known[word]]
            if word in known
            else [e for e in known.values() if e.id.startswith((family, word + "-"))]
        )
        if not found:
            near = _did_you_mean(word, [*known, *(name.partition(".")[0] for name in known)])
            for name in known:
                if word == name.partition(".")[2]:
                    near = f" (did you mean {name}?)"
            raise UsageError(f"unknown experiment {word!r}{near}: `fairlead lab list` shows all")
        chosen.update((experiment.id, experiment) for experiment in found)
    return list(chosen.values())


def parse_sizes(text: str) -> tuple[int, ...]:
    """Sizes as a user writes them, "50,100,200": smallest first, each once.

    Raises:
        UsageError: one of them is no whole number from 1 to ``LARGEST``.
    """
    sizes = set()
    for word in text.split(","):
        try:
            size = int(word)
        except ValueError:
            what = f"size {word.strip()!r}" if word.strip() else f"a size in {text!r}"
            raise UsageError(f"{what} is not a whole number: write 50,100,200") from None
        sizes.add(_check_size(size))
    return tuple(sorted(sizes))


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
            if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["EXPERIMENT"]
        )
        experiment = _experiment(path, declared)
        _check_name(experiment)
        for one in experiment.cases.values() or [experiment]:
            _check(one)
    except StopIteration:
        raise UsageError(f"{path}: no EXPERIMENT = {{...}} at the top of the file") from None
    except KeyError as error:
        raise UsageError(f"{path}: EXPERIMENT lacks the key {error}") from error
    except (SyntaxError, ValueError, TypeError, AttributeError, OSError) as error:
        raise UsageError(f"{path}: EXPERIMENT is not valid: {error}") from error
    return experiment


@cache
def catalogue() -> dict[str, Experiment]:
    """Every experiment by its id, in the order of their file names. A file is named after its id.

    What is called probe*.py beside them are parts that they share.

    Raises:
        UsageError: a file in the catalogue is not valid.
    """
    paths = [path for path in sorted(DIRECTORY.glob("[a-z]*.py")) if not path.name.startswith("probe")]
    files = [load(path) for path in paths]
    return {one.id: one for file in files for one in list(file.cases.values()) or [file]}


def _experiment(path: Path, declared: dict[str, Any]) -> Experiment:
    """What a file declares, with an experiment for each of its cases if it has any."""
    _known("key", declared, _KEYS)
    if "case" in declared.get("parameters", {}):
        raise ValueError("the parameter case is made of what stands in cases")
    cases = {
        case: {"title": own} if isinstance(own, str) else own
        for case, own in declared.get("cases", {}).items()
    }
    for own in cases.values():
        _known("key of a case", own, _OF_A_CASE)
    if not cases:
        return _one(path, declared)
    first = next(iter(cases.values()))
    return replace(
        _one(path, {**first, **declared}),
        cases={case: _case(path, case, {**declared, **own}) for case, own in cases.items()},
    )


def _case(path: Path, case: str, declared: dict[str, Any]) -> Experiment:
    """One case of a file: "models.io" has "models.io-threads", "party" has "party.fib"."""
    group = declared["id"]
    one = _one(path, declared)
    own_id = f"{group}-{case}" if "." in group else f"{group}.{case}"
    return replace(
        one,
        subject=replace(
            one.subject,
            id=own_id,
            group=own_id if "ways" in declared else group,
            references=references(path.with_name(REFERENCES)).get(own_id, ()),
        ),
        parameters={
            "case": Parameter(default=case, choices=(case,), help="which of the file's experiments it is"),
            **one.parameters,
        },
    )


def _one(path: Path, declared: dict[str, Any]) -> Experiment:
    base = declared.get("base", "")
    return Experiment(
        subject=Subject(
            id=declared["id"],
            title=declared["title"],
            question=declared["question"],
            explanation=declared["explanation"],
            size_name=declared["size_name"],
            references=references(path.with_name(REFERENCES)).get(declared["id"], ()),
            schedule=declared.get("schedule", ""),
            metrics=(*[SPEED_UP] * bool(base), *(Metric(**metric) for metric in declared.get("metrics", []))),
            value_name=_value_name(declared),
            growth=declared.get("growth", True),
            group=declared["id"] if "ways" in declared else "",
            ways=declared.get("ways", "case"),
            base=base,
        ),
        path=path,
        parameters={
            name: Parameter(
                default=p["default"], choices=tuple(p["choices"]), help=p["help"], quick=p.get("quick")
            )
            for name, p in declared.get("parameters", {}).items()
        },
        variants=tuple(
            Variant(**{**v, "modes": tuple(v["modes"]), "sizes": _sizes(v.get("sizes", {}))})
            for v in declared["variants"]
        ),
        sizes=_sizes(declared["sizes"]),
        timeout_s=float(declared["timeout_s"]),
        pythons=declared["pythons"],
        needs=tuple(declared.get("needs", ())),
        smallest=declared.get("smallest", SMALLEST),
        claims=tuple(Declared(**claim) for claim in declared.get("claims", ())),
        value=declared.get("value"),
    )


def _known(what: str, names: Iterable[str], known: Sequence[str]) -> None:
    if unknown := sorted(set(names).difference(known)):
        raise ValueError(f"unknown {what} {unknown[0]!r}{_did_you_mean(unknown[0], known)}")


def _value_name(declared: dict[str, Any]) -> str:
    """The title of the metric that the statistics are about."""
    titles = {metric["name"]: metric["title"] for metric in declared.get("metrics", [])}
    return str(titles.get(declared.get("value"), "elapsed"))


def _sizes(declared: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return {key: tuple(sizes) for key, sizes in declared.items()}


def _check_name(experiment: Experiment) -> None:
    named = experiment.path.stem.replace("_", ".", 1).replace("_", "-")
    if experiment.id != named:
        raise ValueError(f"the id is {experiment.id!r}, the file is named after {named!r}")


def _check(experiment: Experiment) -> None:
    """Raise ValueError for what parses, but cannot be meant."""
    for name in _TEXTS[1:-1]:
        if not isinstance(text := getattr(experiment.subject, name), str) or not text:
            raise ValueError(f"{name} is a text")
    _one_of("schedule", experiment.subject.schedule, get_args(Schedule))
    metrics = {metric.name: metric.unit for metric in experiment.subject.metrics}
    if len(metrics) != len(experiment.subject.metrics):
        raise ValueError("two metrics have the same name")
    for unit in metrics.values():
        _one_of("unit", unit, get_args(Unit))
    if experiment.value is not None and metrics.get(experiment.value) != "s":
        raise ValueError(f"value {experiment.value!r} is no metric with the unit s")
    _check_size(experiment.smallest)
    ways = experiment.parameters.get(experiment.subject.ways)
    if ways is None and experiment.subject.ways != "case":
        raise ValueError(f"ways {experiment.subject.ways!r} is no parameter")
    if experiment.subject.base:
        _one_of("base", experiment.subject.base, [str(way) for way in ways.choices] if ways else [])
    for need in experiment.needs:
        _one_of("need", need, NEEDS)
    for name, parameter in experiment.parameters.items():
        for value in (parameter.default, parameter.value("quick")):
            if value not in parameter.choices:
                raise ValueError(f"parameter {name}: the default {value!r} is none of its choices")
    for variant in experiment.variants:
        experiment.check_params(variant.params)
        _one_of("policy", variant.policy, POLICIES)
        _one_of("cores", variant.cores, CORES)
        for mode in variant.modes:
            _one_of("mode", mode, MODES)
        _check_sizes(variant.sizes, experiment)
    labels = [variant.label for variant in experiment.variants]
    if len(labels) != len(set(labels)):
        raise ValueError("two variants have the same label")
    for mode in MODES:
        if mode not in experiment.sizes:
            raise ValueError(f"no sizes for the mode {mode!r}")
    _check_sizes(experiment.sizes, experiment)
    if experiment.timeout_s <= 0:
        raise ValueError("timeout_s is above 0")
    meets(experiment.pythons, "3.11")


def _check_sizes(table: Mapping[str, tuple[int, ...]], experiment: Experiment) -> None:
    for key, sizes in table.items():
        mode, colon, kind = key.partition(":")
        _one_of("mode", mode, MODES)
        if mode not in table:
            raise ValueError(f"sizes {key!r}: there are none for {mode!r} alone")
        if colon and kind not in IMPLEMENTATIONS:
            meets(kind, "3.11")
        if len(sizes) < 1 + experiment.subject.growth or list(sizes) != sorted(
            {experiment.check_size(size) for size in sizes}
        ):
            raise ValueError(f"sizes {key!r}: at least {_FEWEST[experiment.subject.growth]}, rising")


def _one_of(what: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"unknown {what} {value!r}: one of {', '.join(choices)}")


def _check_size(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"size {value!r} is not a whole number")
    if value < 1:
        raise UsageError(f"size {value} is too small: at least 1")
    if value > LARGEST:
        raise UsageError(f"size {value} is too large: at most {LARGEST}")
    return value


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _is_kind(interpreter: Interpreter, kind: str) -> bool:
    """Whether an interpreter is of an implementation, or is a CPython of one of the versions."""
    if kind in IMPLEMENTATIONS:
        return interpreter.implementation == kind
    return interpreter.implementation == "CPython" and meets(kind, interpreter.version)
