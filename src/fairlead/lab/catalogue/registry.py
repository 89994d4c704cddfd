"""The catalogue of experiments, read from the files in ``experiments/``.

An experiment is one file: a program that runs on any interpreter from Python 2.7 on, and
above it one literal dictionary, ``EXPERIMENT``, that says what it is. The registry reads
that dictionary as text and never executes the file, so that a broken experiment cannot
take the lab down, and the interpreter that measures never has to be the one that runs the lab.
A user's file elsewhere is an experiment by the same contract.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from fairlead.errors import UsageError
from fairlead.lab.catalogue import checks
from fairlead.lab.catalogue.declared import Declared
from fairlead.lab.catalogue.interpreters import Interpreter
from fairlead.lab.catalogue.references import references
from fairlead.record.summary import Metric, Reference, Subject, meets

DIRECTORY = Path(__file__).parents[1] / "experiments"
REFERENCES = "references.csv"
"""Beside the experiments: what others have published of them, row by row."""
KEPT = "experiments"
"""In a run's directory: the declarations of a user's own experiments, as they were when it began."""

SMALLEST = 2
"""The least n of an experiment that declares no other: one participant alone has none to wait for."""

SPEED_UP = Metric(name="speed_up", title="speed-up", unit="ratio")
"""What an experiment with a ``base`` is given besides its own metrics; ``ranking.sped_up`` fills it in."""

_OPTIONAL = (
    "variants", "schedule", "needs", "smallest", "metrics", "value", "growth", "cases", "ways", "base",
    "claims", "calibrated",
)  # fmt: skip
KEYS = (*checks.TEXTS, "parameters", "sizes", "timeout_s", *_OPTIONAL)
OF_A_CASE = (
    "title", "question", "explanation", "size_name", "sizes", "growth", "parameters", "ways", "claims",
    "calibrated",
)  # fmt: skip
"""What a case may have of its own (parameters and claims besides the file's); the rest it shares with the
other cases."""
_CORES_OF = re.compile(r"\b(\d+) cores?\b")
"""In the label of a published figure: how many cores the machine had."""


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
    params: dict[str, Any] = field(default_factory=dict)
    modes: tuple[str, ...] = checks.MODES
    """The modes of a run ("quick", "standard", "full") that include it."""
    policy: str = "other"
    """Scheduling policy of the whole probe: "other" or "rr" (round robin, real time)."""
    cores: str = "all"
    """"all"; or "two" or "one": pin the whole probe to the first of the cores it may use."""
    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Sizes of its own for some modes, written like those of the experiment, which they replace."""
    cases: tuple[str, ...] = ()
    """The cases of the file that have it; none: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How large a task has to be here: the plan chooses the value of a parameter, before the first sample."""

    parameter: str
    """It gets the least of its choices with which a sample takes so long. The choices rise in steps so large
    (half as much again, or twice) that two runs on one machine choose the same."""
    seconds: float
    """Processor time of the sample, so that what other programs take changes nothing."""
    of: dict[str, Any] = field(default_factory=dict)
    """Which sample, by its parameters; its n is the least of the mode "quick"."""


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
    """What it imports besides the standard library; see ``checks.NEEDS``."""
    smallest: int = SMALLEST
    """The least n it takes."""
    cases: dict[str, Experiment] = field(default_factory=dict)
    """By the values of a parameter ``case``, of a file that is an experiment for each of them: those
    experiments. The catalogue has them, and not what they come from."""
    claims: tuple[Declared, ...] = ()
    """What a run is to settle. Experiments of one group have the same."""
    value: str | None = None
    """The metric, in seconds, that the statistics are about; None for the time of the measured region."""
    calibrated: Calibration | None = None
    """Of an experiment whose tasks have to be long enough for what is claimed of them."""

    @property
    def id(self) -> str:
        return self.subject.id

    @property
    def foreign(self) -> bool:
        """Whether it is a user's."""
        return self.path.parent != DIRECTORY

    def sizes_for(
        self, mode: str, interpreter: Interpreter, variant: Variant | None = None
    ) -> tuple[int, ...]:
        """The sizes worth running in a mode on an interpreter, smallest first.

        Raises:
            UsageError: there is no such mode.
        """
        if mode not in checks.MODES:
            raise UsageError(f"unknown mode {mode!r}: one of {', '.join(checks.MODES)}")
        table = variant.sizes if variant is not None and mode in variant.sizes else self.sizes
        for key, sizes in table.items():
            its_mode, _, kind = key.partition(":")
            if its_mode == mode and kind and checks.is_kind(interpreter, kind):
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
        size = checks.check_size(value)
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
                near = checks.did_you_mean(name, self.parameters)
                known = ", ".join(self.parameters) or "none but n"
                raise UsageError(f"{self.id} has no parameter {name!r}{near}: it has {known}")
            elif value not in self.parameters[name].choices:
                choices = [str(choice) for choice in self.parameters[name].choices]
                near = checks.did_you_mean(str(value), choices)
                raise UsageError(
                    f"{self.id}: {name}={value!r} is not known{near}: one of {', '.join(choices)}"
                )


def select(ids: Sequence[str]) -> list[Experiment]:
    """The experiments that words name, each once, in the order of the words.

    A word is an id ("square.mutex"), a family or a pattern of one ("square", "square.*"), the part of ids
    that several have in common ("models.io"), a document ("document:square"), whose experiments have no
    other variants and sizes than it shows, or a file ("./my_scaling.py", "./my_pools.py:start" for a case of
    it), which is added to the catalogue. No words at all name the whole catalogue.

    Raises:
        UsageError: a word that names none, or a file that is no experiment.
    """
    from fairlead.lab.catalogue import documents

    known = catalogue()
    if not ids:
        return list(known.values())
    chosen: dict[str, Experiment] = {}
    for word in ids:
        if word.startswith(documents.PREFIX):
            chosen.update((one.id, one) for one in documents.experiments(word))
            continue
        family = word.removesuffix(".*") + "."
        found = (
            of_file(word)
            if is_file(word)
            else [known[word]]
            if word in known
            else [e for e in known.values() if e.id.startswith((family, word + "-"))]
        )
        if not found:
            near = checks.did_you_mean(word, [*known, *(name.partition(".")[0] for name in known)])
            for name in known:
                if word == name.partition(".")[2]:
                    near = f" (did you mean {name}?)"
            raise UsageError(f"unknown experiment {word!r}{near}: `fairlead lab list` shows all")
        chosen.update((experiment.id, experiment) for experiment in found)
    return list(chosen.values())


def is_file(word: str) -> bool:
    """Whether a word names a user's file, or a case of it."""
    return word.partition(":")[0].endswith(".py")


def of_file(word: str) -> list[Experiment]:
    """The experiments of a user's file, or the one of its case that is named behind it; else a UsageError."""
    path, _, case = word.partition(":")
    found = add(Path(path))
    cases = {one.parameters["case"].default: one for one in found if "case" in one.parameters}
    if case and case not in cases:
        raise UsageError(f"{path} has no case {case!r}: it has {', '.join(cases) or 'none'}")
    return [cases[case]] if case else found


def parse_sizes(text: str) -> tuple[int, ...]:
    """Sizes as a user writes them, "50,100,200": smallest first, each once.

    Raises:
        UsageError: one of them is no whole number from 1 to ``checks.LARGEST``.
    """
    sizes = set()
    for word in text.split(","):
        try:
            size = int(word)
        except ValueError:
            what = f"size {word.strip()!r}" if word.strip() else f"a size in {text!r}"
            raise UsageError(f"{what} is not a whole number: write 50,100,200") from None
        sizes.add(checks.check_size(size))
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
            checks.check(one)
    except StopIteration:
        raise UsageError(f"{path}: no EXPERIMENT = {{...}} at the top of the file") from None
    except KeyError as error:
        raise UsageError(f"{path}: EXPERIMENT lacks the key {error}") from error
    except (SyntaxError, ValueError, TypeError, AttributeError, OSError) as error:
        raise UsageError(f"{path}: EXPERIMENT is not valid: {error}") from error
    return experiment


def add(path: Path) -> list[Experiment]:
    """Have a user's file in the catalogue of this process, in place of an earlier one with its id.

    Raises:
        UsageError: it is no experiment, or has the id of one of the lab's own.
    """
    file = load(path.absolute())
    found = list(file.cases.values()) or [file]
    known = catalogue()
    for one in found:
        if one.id in known and not known[one.id].foreign:
            raise UsageError(f"{path}: the lab has an experiment {one.id} of its own: choose another name")
    known.update((one.id, one) for one in found)
    return found


def add_kept(run: Path) -> list[str]:
    """Have the user's experiments of a run in the catalogue, from the copies in its directory: the files
    themselves may have changed or gone. One line for each that this version cannot read, or that is not the
    program of the same name that another run has measured."""
    problems = []
    before = {one.path.name: one.path for one in catalogue().values() if one.foreign}
    for path in sorted(((run if run.is_dir() else run.parent) / KEPT).glob("*.py")):
        try:
            add(path)
        except UsageError as error:
            problems.append(f"{error}; shown without what it declares")
        else:
            other = before.get(path.name, path)
            if other.exists() and other.read_bytes() != path.read_bytes():
                problems.append(f"{path} and {other} are two programs: report their runs one by one")
    return problems


@cache
def catalogue() -> dict[str, Experiment]:
    """Every experiment by its id, in the order of their file names; behind them those that were added. A file
    is named after its id.

    What is called probe*.py beside them are parts that they share.

    Raises:
        UsageError: a file in the catalogue is not valid.
    """
    paths = [path for path in sorted(DIRECTORY.glob("[a-z]*.py")) if not path.name.startswith("probe")]
    files = [load(path) for path in paths]
    return {one.id: one for file in files for one in list(file.cases.values()) or [file]}


def _experiment(path: Path, declared: dict[str, Any]) -> Experiment:
    """What a file declares, with an experiment for each of its cases if it has any."""
    checks.known("key", declared, KEYS)
    if "case" in declared.get("parameters", {}):
        raise ValueError("the parameter case is made of what stands in cases")
    cases = {
        case: {"title": own} if isinstance(own, str) else own
        for case, own in declared.get("cases", {}).items()
    }
    for own in cases.values():
        checks.known("key of a case", own, OF_A_CASE)
    for variant in declared.get("variants", []):
        checks.known("case of a variant", variant.get("cases", ()), list(cases))
    if not cases:
        return _one(path, declared)
    made = {case: _case(path, case, _with_its_own(declared, own)) for case, own in cases.items()}
    first = next(iter(cases.values()))
    return replace(_one(path, {**first, **declared}), cases=made)


def _with_its_own(declared: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    parameters = declared.get("parameters", {}) | own.get("parameters", {})
    shared = declared.get("claims", [])
    both = {**declared, **own, "parameters": parameters}
    if ways := own.get("ways"):
        name = both["ways"] = declared["ways"]
        parameters[name] = {"default": ways[0], "choices": ways, "help": "by what"}
        sides = ("of", "over")
        shared = [c for c in shared if all(c.get(side, {}).get(name, ways[0]) in ways for side in sides)]
    return both | {"claims": [*shared, *own.get("claims", [])]}


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
        claims=tuple(claim.of_case(case, one.subject.title) for claim in one.claims),
        variants=tuple(variant for variant in one.variants if not variant.cases or case in variant.cases),
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
        variants=_variants(declared),
        sizes=_sizes(declared["sizes"]),
        timeout_s=float(declared["timeout_s"]),
        pythons=declared["pythons"],
        needs=tuple(declared.get("needs", ())),
        smallest=declared.get("smallest", SMALLEST),
        claims=tuple(Declared(**claim) for claim in declared.get("claims", ())),
        value=declared.get("value"),
        calibrated=Calibration(**declared["calibrated"]) if "calibrated" in declared else None,
    )


def _variants(declared: dict[str, Any]) -> tuple[Variant, ...]:
    """Those declared; else one for each way of doing the work, or a plain one."""
    if "variants" not in declared:
        name = declared.get("ways", "")
        ways = declared.get("parameters", {}).get(name, {"choices": ()})["choices"]
        return tuple(Variant(label=str(way), params={name: way}) for way in ways) or (Variant(label=""),)
    return tuple(
        Variant(
            **v
            | {
                "modes": tuple(v.get("modes", checks.MODES)),
                "cases": tuple(v.get("cases", ())),
                "sizes": _sizes(v.get("sizes", {})),
            }
        )
        for v in declared["variants"]
    )


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


def of_machine(subject: Subject, cores: int) -> Subject:
    """The same subject; of the published figures that are about all cores of a machine, those of the machine
    with as many as here, or of the nearest.

    Its label says which that was. What says nothing of cores is about any machine.
    """
    far = [
        (one, None if (has := _machine(one)) is None else abs(math.log(has / cores)))
        for one in subject.references
    ]
    nearest: dict[tuple[str, ...], float] = {}
    for one, how_far in far:
        if how_far is not None:
            nearest[_compared(one)] = min(how_far, nearest.get(_compared(one), how_far))
    kept = [one for one, how_far in far if how_far is None or how_far == nearest[_compared(one)]]
    return replace(subject, references=tuple(kept))


def _machine(reference: Reference) -> int | None:
    """How many cores a figure is of that is about all cores of a machine."""
    has = _CORES_OF.search(reference.label)
    return int(has[1]) if has and reference.variant.get("cores", "all") == "all" else None


def _compared(reference: Reference) -> tuple[str, ...]:
    """What figures are of that only one machine's are shown of."""
    implementation = reference.label.split()[0].rstrip(",")
    variant = {key: value for key, value in reference.variant.items() if key != "cores"}
    return implementation, reference.metric, str(sorted(variant.items()))
