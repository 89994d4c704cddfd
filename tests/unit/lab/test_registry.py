"""The catalogue: what it reads, what it chooses, and how it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from interpreters import made

from fairlead.errors import UsageError
from fairlead.lab.catalogue import checks, documents, registry
from fairlead.record.summary import Metric, Series
from fairlead.report.common import words

pytestmark = pytest.mark.ends

DECLARED: dict[str, Any] = {
    "id": "group.one-thing",
    "title": "One thing",
    "question": "What?",
    "explanation": "Because.",
    "size_name": "threads",
    "parameters": {"work": {"default": "a", "choices": ["a", "bee"], "help": "what is done"}},
    "variants": [
        {"label": "", "params": {}, "modes": ["quick", "full"]},
        {
            "label": "rr",
            "params": {"work": "bee"},
            "modes": ["full"],
            "policy": "rr",
            "cores": "one",
            "sizes": {"full": [30, 50], "full:PyPy": [2, 3]},
        },
    ],
    "sizes": {
        "quick": [10, 20],
        "quick:PyPy": [5, 6],
        "quick:2.7": [3, 4],
        "quick:<3.11": [7, 8],
        "standard": [20, 40],
        "full": [100, 900],
    },
    "timeout_s": 5,
    "pythons": ">=2.7,<3.15",
}


CASE = {"case": {"default": "c", "choices": ["c"], "help": "which"}}
LATE = {"name": "late", "title": "lateness", "unit": "s"}


def declare(directory: Path, **changes: Any) -> Path:
    path = directory / "group_one_thing.py"
    path.write_text(f"EXPERIMENT = {DECLARED | changes!r}\n")
    return path


def test_load_reads_everything_declared_and_never_executes_the_file(tmp_path: Path) -> None:
    experiment = registry.load(declare(tmp_path))
    assert experiment.id == "group.one-thing"
    assert experiment.parameters["work"].choices == ("a", "bee")
    assert [v.label for v in experiment.variants_for("full")] == ["", "rr"]
    assert [v.label for v in experiment.variants_for("quick")] == [""]
    assert experiment.variants[1].policy == "rr"
    assert experiment.variants[1].cores == "one"
    assert experiment.timeout_s == 5.0
    path = declare(tmp_path)
    path.write_text(path.read_text() + "raise SystemExit('executed')\n")
    assert registry.load(path).id == "group.one-thing"


def test_load_reads_what_the_time_is_of_and_from_which_size_on(tmp_path: Path) -> None:
    experiment = registry.load(
        declare(
            tmp_path, metrics=[LATE], value="late", smallest=1, sizes=DECLARED["sizes"] | {"quick": [1, 2]}
        )
    )
    assert (experiment.value, experiment.subject.value_name) == ("late", "lateness")
    assert experiment.subject.metrics == (Metric(name="late", title="lateness", unit="s"),)
    assert experiment.check_size(1) == 1
    plain = registry.load(declare(tmp_path))
    assert (plain.value, plain.subject.value_name, plain.smallest) == (None, "elapsed", 2)


def test_without_variants_there_is_one_for_each_way_or_a_plain_one(tmp_path: Path) -> None:
    path = declare(tmp_path, ways="work")
    bare = {key: value for key, value in DECLARED.items() if key != "variants"}
    path.write_text(f"EXPERIMENT = {bare | {'ways': 'work'}!r}")
    ways = registry.load(path).variants_for("quick")
    assert [(one.label, one.params) for one in ways] == [("a", {"work": "a"}), ("bee", {"work": "bee"})]
    path.write_text(f"EXPERIMENT = {bare!r}")
    assert [(one.label, one.params, one.modes) for one in registry.load(path).variants] == [
        ("", {}, checks.MODES)
    ]


CASES = {"cases": {"a-b": "A and b", "c": "C"}, "growth": False, "sizes": DECLARED["sizes"] | {"quick": [10]}}


def test_catalogue_has_an_experiment_for_each_case_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(tmp_path, **CASES)
    monkeypatch.setattr(registry, "DIRECTORY", tmp_path)
    registry.catalogue.cache_clear()
    try:
        known = registry.catalogue()
        assert {name: one.subject.title for name, one in known.items()} == {
            "group.one-thing-a-b": "A and b",
            "group.one-thing-c": "C",
        }
        first = known["group.one-thing-a-b"]
        assert (first.subject.group, first.subject.growth) == ("group.one-thing", False)
        assert first.parameters["case"].default == "a-b"
        with pytest.raises(UsageError, match="case='c' is not known: one of a-b"):
            first.check_params({"case": "c"})
        assert registry.select(["group.one-thing"]) == list(known.values())
    finally:
        registry.catalogue.cache_clear()


WAYS = {
    "cases": {
        "a-b": {
            "title": "A and b",
            "question": "Which?",
            "sizes": {"quick": [1], "standard": [2], "full": [3]},
        },
        "c": "C",
    },
    "ways": "method",
    "base": "alone",
    "growth": False,
    "smallest": 1,
    "parameters": {"method": {"default": "alone", "choices": ["alone", "threads"], "help": "by what"}},
    "variants": [{"label": "", "params": {}, "modes": ["quick"]}],
}


def test_cases_have_what_is_their_own_and_share_the_rest(tmp_path: Path) -> None:
    whole = registry.load(declare(tmp_path, **WAYS))
    first, second = whole.cases.values()
    assert (first.subject.title, first.subject.question, first.sizes["full"]) == ("A and b", "Which?", (3,))
    assert (second.subject.title, second.subject.question) == ("C", whole.subject.question)
    assert (first.id, first.subject.group) == ("group.one-thing-a-b", "group.one-thing-a-b")
    assert (first.subject.ways, first.subject.base) == ("method", "alone")
    assert [metric.name for metric in first.subject.metrics] == ["speed_up"]


def test_cases_have_variants_parameters_claims_and_work_of_their_own(tmp_path: Path) -> None:
    claim = {
        "topic": "t {case}",
        "of": {},
        "over": {},
        "more_than": 1,
        "says": "{title}: a",
        "otherwise": "b",
    }
    own = {
        **WAYS["cases"]["a-b"],
        "parameters": {"steps": {"default": 2, "choices": [1, 2, 4], "help": "how far"}},
        "claims": [claim | {"topic": "own"}],
        "calibrated": {"parameter": "steps", "seconds": 0.5},
    }
    variants = [*WAYS["variants"], {"label": "c only", "params": {}, "modes": ["full"], "cases": ["c"]}]
    changes = {**WAYS, "cases": {"a-b": own, "c": "C"}, "claims": [claim], "variants": variants}
    first, second = registry.load(declare(tmp_path, **changes)).cases.values()
    assert list(first.parameters) == ["case", "method", "steps"]
    assert [one.topic for one in first.claims] == ["t a-b", "own"]
    assert [one.says for one in (*first.claims, *second.claims)] == ["A and b: a", "A and b: a", "C: a"]
    assert first.calibrated == registry.Calibration(parameter="steps", seconds=0.5)
    assert [one.label for one in first.variants] == [""]
    assert ([one.label for one in second.variants], second.calibrated) == (["", "c only"], None)
    assert list(second.parameters) == ["case", "method"]


def test_a_case_has_ways_and_a_kind_of_size_of_its_own(tmp_path: Path) -> None:
    own = {
        "title": "B",
        "ways": ["b", "alone"],
        "size_name": "tasks",
        "growth": True,
        "sizes": DECLARED["sizes"],
    }
    bare = {key: value for key, value in DECLARED.items() if key not in ("parameters", "variants")}
    claims = [
        {"topic": "{case}", "of": {"by": "b"}, "over": {"by": "alone"}},
        {"topic": "-", "over_metric": "m"},
    ]
    bare |= {"ways": "by", "cases": {"a": own, "b": own | {"ways": ["c"]}}, "claims": claims}
    path = declare(tmp_path)
    path.write_text(f"EXPERIMENT = {bare!r}")
    first, second = registry.load(path).cases.values()
    assert (first.parameters["by"].default, first.parameters["by"].choices) == ("b", ("b", "alone"))
    assert [one.params for one in first.variants] == [{"by": "b"}, {"by": "alone"}]
    assert [one.params for one in second.variants] == [{"by": "c"}]
    assert [[one.topic for one in case.claims] for case in (first, second)] == [["a", "-"], ["-"]]
    assert (first.subject.size_name, first.subject.growth, first.subject.ways) == ("tasks", True, "by")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"parameter": "stesp", "seconds": 1}, "unknown calibrated parameter 'stesp': one of work"),
        (
            {"parameter": "work", "seconds": 1},
            "the choices of 'work', which is calibrated, are numbers that rise",
        ),
        ({"parameter": "steps", "seconds": 0}, "seconds of calibrated is above 0"),
        ({"parameter": "steps", "seconds": 1, "of": {"x": 1}}, "has no parameter 'x'"),
        ({"parameter": "steps"}, "seconds"),
    ],
)
def test_work_that_cannot_be_calibrated_is_refused(
    tmp_path: Path, change: dict[str, Any], fault: str
) -> None:
    steps = {"steps": {"default": 2, "choices": [1, 2, 4], "help": "how far"}}
    with pytest.raises(UsageError, match=fault):
        registry.load(declare(tmp_path, parameters=DECLARED["parameters"] | steps, calibrated=change))


def test_work_is_calibrated_on_an_experiment_that_there_is_with_the_same_parameter() -> None:
    known = registry.catalogue()
    found = {name: how for name, one in known.items() if (how := one.calibrated)}
    assert {name.partition("-")[0] for name in found} == {"models.cpu", "models.mixed", "party.nbody"}
    for name, how in found.items():
        there = known[how.of.get("experiment", name)]
        assert there.parameters[how.parameter] == known[name].parameters[how.parameter]
        there.check_params({key: value for key, value in how.of.items() if key != "experiment"})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"variants": [{"label": "", "params": {}, "modes": [], "cases": ["b"]}]},
            "unknown case of a variant 'b'",
        ),
        ({"ways": "metod"}, "ways 'metod' is no parameter"),
        ({"base": "lone"}, "unknown base 'lone': one of alone, threads"),
        ({"cases": {"a": {"titel": "A"}}}, r"unknown key of a case 'titel' \(did you mean title\?\)"),
        ({"cases": {"a": {"title": "A", "sizes": {"quick": [1]}}}}, "no sizes for the mode 'standard'"),
    ],
)
def test_faulty_ways_and_cases_are_refused(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        registry.load(declare(tmp_path, **{**WAYS, **change}))


def test_references_are_the_rows_beside_the_file_by_variant_label_and_metric(tmp_path: Path) -> None:
    (tmp_path / registry.REFERENCES).write_text(
        "experiment,variant,label,metric,unit,n,value\n"
        "group.one-thing,work=bee; cores=1,there,elapsed,s,10,1.0\n"
        "group.one-thing,work=bee; cores=1,there,elapsed,s,100,100.0\n"
        "group.one-thing,,there,max_rss_kb,KiB,,4096\n"
        "group.one-thing,cores=all|2,elsewhere,elapsed,s,,3\n"
        "group.other,,there,elapsed,s,1,1\n"
    )
    grown, memory, *either = registry.load(declare(tmp_path)).subject.references
    assert grown.points == ((10, 1.0), (100, 100.0))
    assert grown.exponent([10, 20, 100]) == pytest.approx(2.0)
    assert grown.variant == {"work": "bee", "cores": 1}
    assert (memory.points, memory.exponent([1, 2]), memory.variant) == (((0, 4096.0),), None, {})
    assert (memory.metric, memory.unit) == ("max_rss_kb", "KiB")
    assert [one.variant for one in either] == [{"cores": "all"}, {"cores": 2}]
    assert {one.points for one in either} == {((0, 3.0),)}


def of_cpython(experiment: str, variant: dict[str, Any]) -> Series:
    own = {"implementation": "CPython"}
    return Series(experiment=experiment, interpreter=own, variant=variant, label="", cells=())


@pytest.mark.parametrize(
    ("cores", "machines"),
    [("one", ["1 core"]), ("two", ["2 cores"]), ("all", ["10 cores", "2 cores", "1 core"])],
)
def test_model_on_some_cores_stands_beside_the_published_machine_with_as_many(
    cores: str, machines: list[str]
) -> None:
    subject = registry.catalogue()["models.cpu-threads"].subject
    variant = {"case": "threads", "workers": "default", "policy": "other", "cores": cores}
    shown = dict.fromkeys(one.label for one in words.published(subject, of_cpython(subject.id, variant)))
    assert [label.split(", ")[1] for label in shown] == machines


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("square.mutex", {"work": "spin"}), ("square.mutex", {"policy": "rr"}),
        ("square.mutex", {"cores": "one"}), ("square.process-start", {"work": "yield"}),
        ("gil.battle", {"interval_ms": 0.5}), ("gil.battle", {"check_interval": 10_000}),
        ("gil.countdown", {"cores": "one"}), ("gil.sha256", {"policy": "rr"}),
    ],
)  # fmt: skip
def test_a_published_figure_stands_beside_what_it_was_measured_of_alone(
    name: str, other: dict[str, Any]
) -> None:
    subject = registry.catalogue()[name].subject
    plain = {key: one.default for key, one in registry.catalogue()[name].parameters.items()}
    plain |= {"policy": "other", "cores": "all"}
    plain |= {"steps": 100_000_000} if name == "gil.countdown" else {}
    plain |= {"megabytes": 1024} if name == "gil.sha256" else {}
    assert words.published(subject, of_cpython(name, plain))
    assert not words.published(subject, of_cpython(name, plain | other))


def test_every_published_figure_belongs_to_a_variant_and_a_metric_of_its_experiment() -> None:
    known = registry.catalogue()
    rows = (registry.DIRECTORY / registry.REFERENCES).read_text(encoding="utf-8").splitlines()[1:]
    assert {row.partition(",")[0] for row in rows} <= set(known), "each row belongs to an experiment"
    squares = [row for row in rows if row.startswith("square.")]
    assert len(squares) == 12 * 9
    assert sum(row.split(",")[0].startswith("models.") and ",elapsed," in row for row in rows) == 54
    shown = [one for name in documents.documents() for one in registry.select([f"document:{name}"])]
    for experiment in known.values():
        own = {metric.name for metric in experiment.subject.metrics}
        own |= {"elapsed", "cpu_percent", "max_rss_kb"}
        for reference in experiment.subject.references:
            assert reference.metric in own, (experiment.id, reference)
            given = {k: v for k, v in reference.variant.items() if k not in ("policy", "cores")}
            experiment.check_params(given)
            usual = {name: {p.default, p.quick} for name, p in experiment.parameters.items()}
            measured = [
                one
                for its in (experiment, *(one for one in shown if one.id == experiment.id))
                for one in its.variants
                if all(
                    value == one.params[name]
                    if name in one.params
                    else value in usual.get(name, {getattr(one, name, None)})
                    for name, value in reference.variant.items()
                )
            ]
            assert measured, f"no variant of {experiment.id} measures {reference.variant}"


@pytest.mark.parametrize(
    ("cores", "machine", "ratio"),
    [(1, "1 core", 9.42 / 9.80), (2, "2 cores", 11.55 / 7.68), (3, "2 cores", 11.55 / 7.68),
     (8, "10 cores", 11.38 / 2.62), (128, "10 cores", 11.38 / 2.62)],
)  # fmt: skip
def test_of_all_published_machines_a_claim_is_held_against_the_one_with_as_many_cores(
    cores: int, machine: str, ratio: float
) -> None:
    known = registry.catalogue()
    names = ("models.cpu-sequential", "models.cpu-process-pool")
    one, other = (
        [
            reference
            for reference in registry.of_machine(known[name].subject, cores).references
            if reference.metric == "elapsed" and reference.variant["cores"] == "all"
        ]
        for name in names
    )
    assert [reference.label.split(", ")[1] for reference in (*one, *other)] == [machine] * 2
    assert one[0].points[0][1] / other[0].points[0][1] == pytest.approx(ratio)
    # figures that are about one core are so on any machine, and those of squares about two interpreters
    of_one = [
        r
        for r in registry.of_machine(known[names[0]].subject, cores).references
        if r.variant["cores"] == "one" and r.metric == "elapsed"
    ]
    assert [r.label.split(", ")[1] for r in of_one] == ["1 core"]
    square = known["square.mutex"].subject
    assert registry.of_machine(square, cores).references == square.references


@pytest.mark.parametrize("broken", ["group.one-thing,,x,elapsed,s,1", "group.one-thing,,x,elapsed,miles,1,1"])
def test_a_damaged_row_of_references_is_refused(tmp_path: Path, broken: str) -> None:
    (tmp_path / registry.REFERENCES).write_text(f"experiment,variant,label,metric,unit,n,value\n{broken}\n")
    with pytest.raises(UsageError, match="not valid"):
        registry.load(declare(tmp_path))


@pytest.mark.parametrize(
    ("version", "implementation", "sizes"),
    [
        ("3.13.0", "CPython", (10, 20)), ("2.7.18", "CPython", (3, 4)), ("3.8.1", "CPython", (7, 8)),
        ("3.11.13", "PyPy", (5, 6)), ("2.7.18", "PyPy", (5, 6)), ("3.15.0a1", "CPython", (10, 20)),
    ],
)  # fmt: skip
def test_sizes_for_takes_the_first_key_that_fits(
    tmp_path: Path, version: str, implementation: str, sizes: tuple[int, ...]
) -> None:
    experiment = registry.load(declare(tmp_path))
    assert experiment.sizes_for("quick", made(version, implementation)) == sizes
    assert experiment.sizes_for("standard", made(version, implementation)) == (20, 40)


def test_sizes_for_a_variant_takes_its_own_where_it_has_any_and_an_unknown_mode_names_the_modes(
    tmp_path: Path,
) -> None:
    experiment = registry.load(declare(tmp_path))
    plain, rr = experiment.variants
    assert experiment.sizes_for("full", made("3.13.0"), rr) == (30, 50)
    assert experiment.sizes_for("full", made("3.11.1", "PyPy"), rr) == (2, 3)
    assert experiment.sizes_for("quick", made("2.7.1"), rr) == (3, 4)
    assert experiment.sizes_for("full", made("3.13.0"), plain) == (100, 900)
    with pytest.raises(UsageError, match="quick, standard, full"):
        registry.load(declare(tmp_path)).sizes_for("slow", made("3.13.0"))


def test_runs_on_and_check_params_accept_what_is_declared_and_give_a_reason_otherwise(tmp_path: Path) -> None:
    experiment = registry.load(declare(tmp_path))
    assert experiment.runs_on(made("2.7.18")) is None
    assert experiment.runs_on(made("3.14.2")) is None
    reason = experiment.runs_on(made("3.15.0b1"))
    assert reason == "group.one-thing needs Python >=2.7,<3.15; this is 3.15.0b1"
    experiment = registry.load(declare(tmp_path))
    experiment.check_params({"n": 2, "work": "bee"})
    experiment.check_params({})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"wrok": "a"}, r"no parameter 'wrok' \(did you mean work\?\): it has work"),
        ({"work": "be"}, r"work='be' is not known \(did you mean bee\?\): one of a, bee"),
        ({"n": 1}, "size 1 is too small for group.one-thing: at least 2"),
        ({"n": 4194305}, "size 4194305 is too large: at most 4194304"),
        ({"n": "12"}, "size '12' is not a whole number"),
        ({"n": True}, "size True is not a whole number"),
        ({"n": 2.5}, "size 2.5 is not a whole number"),
    ],
)
def test_check_params_refuses_and_names_what_is_allowed(
    tmp_path: Path, params: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        registry.load(declare(tmp_path)).check_params(params)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"title": 1}, "title is a text"),
        ({"question": ""}, "question is a text"),
        ({"extra": 1}, "unknown key 'extra'"),
        ({"tilte": 1}, r"unknown key 'tilte' \(did you mean title\?\)"),
        ({"id": "group.other"}, "the file is named after 'group.one-thing'"),
        ({"pythons": "3.x"}, "'3.x' is no version"),
        ({"timeout_s": 0}, "timeout_s is above 0"),
        ({"timeout_s": "soon"}, "could not convert"),
        ({"sizes": {"quick": [1, 2]}}, "no sizes for the mode 'standard'"),
        ({"sizes": DECLARED["sizes"] | {"quick": [3, 2]}}, "at least two, rising"),
        ({"sizes": DECLARED["sizes"] | {"quick": [1, 2]}}, "size 1 is too small"),
        ({"variants": [{"label": "", "params": {}, "modes": [], "sizes": {"full": [5]}}]}, "at least two"),
        ({"variants": [{"label": "", "params": {}, "modes": [], "sizes": {"full:2.7": [5, 6]}}]}, "alone"),
        ({"sizes": DECLARED["sizes"] | {"fast": [2, 3]}}, "unknown mode 'fast'"),
        ({"sizes": DECLARED["sizes"] | {"quick:Pypy": [2, 3]}}, "'Pypy' is no version"),
        ({"variants": [{"label": "", "params": {"x": 1}, "modes": []}]}, "no parameter 'x'"),
        ({"variants": [{"label": "", "params": {}, "modes": ["all"]}]}, "unknown mode 'all'"),
        ({"variants": [{"label": "", "params": {}, "modes": [], "policy": "fifo"}]}, "unknown policy 'fifo'"),
        ({"variants": [{"label": "", "params": {}, "modes": [], "cores": "six"}]}, "unknown cores 'six'"),
        ({"variants": [{"label": "", "params": {}, "modes": []}] * 2}, "the same label"),
        ({"variants": [{"params": {}, "modes": []}]}, "label"),
        ({"parameters": {"p": {"default": 1, "choices": [2], "help": ""}}}, "none of its choices"),
        ({"parameters": {"p": {"choices": [2], "help": ""}}}, "lacks the key 'default'"),
        ({"smallest": 0}, "size 0 is too small"),
        ({"smallest": 11}, "size 2 is too small for group.one-thing: at least 11"),
        ({"value": "late"}, "value 'late' is no metric with the unit s"),
        ({"metrics": [LATE | {"unit": "ms"}]}, "unknown unit 'ms'"),
        ({"metrics": [LATE | {"unit": "count"}], "value": "late"}, "no metric with the unit s"),
        ({"metrics": [LATE, LATE]}, "two metrics have the same name"),
        ({"metrics": [{"name": "late"}]}, "title"),
        (CASES | {"parameters": CASE}, "the parameter case is made of what stands in cases"),
        ({"parameters": CASE}, "the parameter case is made of what stands in cases"),
        (CASES | {"growth": True}, "at least two, rising"),
        (CASES | {"sizes": DECLARED["sizes"] | {"quick": []}}, "at least one, rising"),
    ],
)
def test_load_refuses_what_cannot_be_meant(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    path = declare(tmp_path, **changes)
    with pytest.raises(UsageError, match=fault) as caught:
        registry.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no EXPERIMENT"), ("EXPERIMENT = {", "not valid"), ("EXPERIMENT = dict(id=1)", "not valid"),
        ("EXPERIMENT = {}", "lacks the key 'id'"), ("EXPERIMENT = []", "not valid"), ("\0", "not valid"),
        (None, "No such file"),
    ],
)  # fmt: skip
def test_load_refuses_a_broken_or_unreadable_file(tmp_path: Path, text: str | None, fault: str) -> None:
    path = tmp_path / "group_one_thing.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=fault):
        registry.load(path)


def test_catalogue_is_whole_and_every_entry_explains_itself() -> None:
    known = registry.catalogue()
    assert "square.mutex" in known
    for experiment in known.values():
        assert experiment.subject.question.endswith("?")
        assert len(experiment.subject.explanation) > 200
        if experiment.id.startswith("square."):
            assert experiment.subject.references, "squares have been measured before"
        for mode in checks.MODES:
            assert experiment.variants_for(mode)


def test_experiments_of_a_claim_measure_the_same_figures_with_the_same_parameters() -> None:
    known = registry.catalogue()
    pairs = [
        (one, known[claim.of["experiment"]])
        for one in known.values()
        for claim in one.claims
        if claim.of.get("experiment", one.id) != one.id
    ]
    assert {one.id for one, _ in pairs} >= {name for name in known if name.startswith("cured.")}
    for one, other in pairs:
        # turns are of the square's own schedule, and so are its switches a turn
        own = {"per_turn", "turns", "quickest_s"}
        figures, others = ({m for m in e.subject.metrics if m.name not in own} for e in (one, other))
        assert figures == others, f"{one.id} and {other.id} have columns that cannot be compared"
        for name, parameter in one.parameters.items():
            theirs = other.parameters[name]
            assert parameter.default == theirs.default
            assert set(parameter.choices) <= set(theirs.choices)
        for mode in checks.MODES:
            assert set(one.sizes[mode]) <= set(other.sizes[mode]), f"{one.id} {mode}: nothing to compare with"


def test_select_takes_ids_families_and_patterns_each_once() -> None:
    everything = list(registry.catalogue().values())
    squares = [e for e in everything if e.id.startswith("square.")]
    mutex = registry.catalogue()["square.mutex"]
    assert registry.select([]) == everything
    assert registry.select(["square"]) == squares
    assert registry.select(["square.*"]) == squares
    assert registry.select(["square.mutex", "square.mutex"]) == [mutex]
    assert registry.select(["square.mutex", "square"])[0] == mutex
    assert len(registry.select(["square.mutex", "square"])) == len(squares)


def test_select_takes_a_case_of_a_users_file(tmp_path: Path) -> None:
    file = declare(tmp_path, **CASES)
    try:
        assert [one.id for one in registry.select([str(file)])] == [
            "group.one-thing-a-b",
            "group.one-thing-c",
        ]
        assert [one.id for one in registry.select([f"{file}:c"])] == ["group.one-thing-c"]
        with pytest.raises(UsageError, match=r"has no case 'a-c': it has a-b, c"):
            registry.select([f"{file}:a-c"])
    finally:
        registry.catalogue.cache_clear()


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("square.mutx", "square.mutex"),
        ("mutex", "square.mutex"),
        ("sqare", "square"),
        ("square_mutex", "square.mutex"),
        *((word, "") for word in ("", "*", "zebra", "square.mutex.*", ".*")),
    ],
)
def test_select_unknown_word_suggests_the_nearest_and_says_where_to_look(word: str, meant: str) -> None:
    with pytest.raises(UsageError, match="fairlead lab list") as refused:
        registry.select([word])
    assert f"did you mean {meant}?)" in str(refused.value) or not meant


def test_quick_value_of_a_parameter_is_for_quick_runs_alone() -> None:
    seconds = registry.catalogue()["gil.convoy"].parameters["seconds"]
    assert (seconds.value("quick"), seconds.value("standard"), seconds.value("full")) == (0.2, 1, 1)
    assert registry.Parameter(default=3, choices=(3,), help="").value("quick") == 3
