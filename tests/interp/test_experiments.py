"""Every experiment on every interpreter of this machine, at sizes that take no time."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from interpreters import here

from fairlead.gil.observe.access import why_not
from fairlead.lab.catalogue import registry
from fairlead.lab.catalogue.interpreters import Interpreter, contrast
from fairlead.lab.catalogue.registry import Experiment
from fairlead.lab.isolation import subprocess_runner

pytestmark = pytest.mark.once

DISCOVERY = here()
FOUND = tuple(i for i in DISCOVERY.interpreters if "#" not in i.name)
CONTRAST = contrast(DISCOVERY)
CATALOGUE = registry.catalogue()
FILES = sorted(registry.DIRECTORY.glob("*.py"))
NEWEST = max((i for i in FOUND if i.implementation == "CPython"), key=lambda i: i.version_key)
TWO = (DISCOVERY.running, NEWEST)
"""The one that has fairlead, and the one that has whatever there is."""
ENDS = (DISCOVERY.running, CONTRAST[-1])
"""The one that has fairlead, and the oldest, whose language is the narrowest."""


def on(interpreters: Iterable[Interpreter], *at_once: Interpreter) -> list[Any]:
    """All of them, of which make test runs those that are wanted at once."""
    return [i if i in at_once else pytest.param(i, marks=pytest.mark.long) for i in interpreters]


N = 5
DONE = {
    **dict.fromkeys(("square.thread-start", "square.process-start", "cured.thread-start"), "taken"),
    **dict.fromkeys(("square.mutex", "square.process-mutex", "cured.mutex"), "passed"),
    **dict.fromkeys(("square.semaphore", "cured.semaphore"), "awake"),
    **dict.fromkeys(("gil.battle", "gil.countdown", "gil.trace"), "counted"),
    **dict.fromkeys(("gil.convoy", "gil.open-loop"), "asked"),
    "gil.sha256": "hashed",
    "gil.short-calls": "called",
    "gil.signal": "computed",
    "gil.simulate": "threads",
    "gil.thread-cost": "lived",
}
DONE |= {name: "done" for name in CATALOGUE if name.startswith(("models.", "party."))}
"""The detail in which an experiment says how many came through."""
SMALL: dict[str, dict[str, Any]] = {
    "gil.convoy": {"seconds": 0.2},
    "gil.countdown": {"steps": 50_000},
    "gil.open-loop": {"seconds": 0.2},
    "gil.sha256": {"megabytes": 8},
    "gil.short-calls": {"seconds": 0.2},
    "gil.signal": {"signals": 3},
}
SMALL |= {name: {"task": "tiny"} for name in CATALOGUE if name.startswith("party.")}
"""Parameters with which an experiment takes no time."""
PARTS = {
    "probe_load.py": "gil_",
    "probe_square.py": "square_",
    "probe_models.py": "models_",
    "probe_tasks.py": "models_",
    "probe_methods.py": "party",
    "probe_workloads.py": "party",
    "probe_interpreters.py": "party",
    "probe_specialisation.py": "party",
}
"""Shared parts by the beginning of the names of those that they are parts of."""


def run(interpreter: Interpreter, path: Path, *arguments: str) -> dict[str, Any]:
    """The one line that a probe prints; fails if there is more or less, or if it did not end well."""
    (answer,) = answers(interpreter, str(path), *arguments)
    return answer


def answers(interpreter: Interpreter, *words: str) -> list[dict[str, Any]]:
    command, environment = (
        [interpreter.path, *words],
        subprocess_runner.clean_environment(free_threaded=False),
    )
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended
    return [json.loads(line) for line in ended.stdout.splitlines()]


def further(experiment: Experiment) -> bool:
    """Whether it is a model with parts that not every interpreter has, or that is like others."""
    return re.search("models.*(fairlead|interpreter|loops)", experiment.id) is not None


def measured(interpreter: Interpreter, experiment: Experiment, **params: Any) -> dict[str, Any]:
    fixed = {name: one.default for name, one in experiment.parameters.items() if name == "case"}
    least = {"delay_ms": 5, "repeat": 1}
    small = {name: value for name, value in least.items() if name in experiment.parameters}
    small |= SMALL.get(experiment.id, {})
    # a fence against a hang, below pytest's: how long a process takes to start is the machine's affair
    given = {"n": N, "timeout_s": 55, **fixed, **small, **params}
    return run(interpreter, experiment.path, json.dumps(given))


def cases() -> list[tuple[Experiment, dict[str, Any]]]:
    """Every experiment with every kind of waking that it knows, scheduled, with threads that stop, and with a
    free-threaded build's GIL; methods are below."""
    found: list[tuple[Experiment, dict[str, Any]]] = []
    for experiment in CATALOGUE.values():
        if experiment.subject.ways != "case":
            continue
        wakes = experiment.parameters["wake"].choices if "wake" in experiment.parameters else [None]
        found += [(experiment, {"wake": wake} if wake else {}) for wake in wakes]
        if "scheduler" in experiment.parameters:
            found.append((experiment, {"scheduler": "interactive"}))
        if "gil" in experiment.parameters:
            found += [(experiment, {"work": "stop"}), (experiment, {"gil": "on"})]
    return found


def subjects(experiment: Experiment, params: dict[str, Any]) -> Sequence[Interpreter]:
    if "scheduler" in params:
        return [DISCOVERY.running]
    if not experiment.id.startswith("models."):
        return FOUND
    able = [i for i in FOUND if i.implementation == "CPython" and experiment.runs_on(i) is None]
    oldest = min(able, key=lambda i: i.version_key)
    return [i for i in FOUND if i in CONTRAST or i == oldest]


def chosen() -> Iterator[str]:
    """All experiments, but of models each work and each way of doing it once: the other pairs are the same
    code."""
    seen: set[str] = set()
    for name in CATALOGUE:
        parts = set(name.replace("async-", "").removeprefix("models.").split("-", 1))
        if not name.startswith("models.") or parts - seen:
            seen |= parts
            yield name


def where() -> list[Any]:
    """What is to be run on which interpreter. Those between ``ENDS`` are for make test-all, and so is what is
    the same on all, or of one code. Models, which are the standard library's, are run on ``CONTRAST`` and on
    the oldest CPython that each can run on."""
    few = [(name, DISCOVERY.running) for name in chosen()] + [("models.cpu-interpreter-pool", NEWEST)]
    return [
        pytest.param(
            experiment,
            params,
            interpreter,
            id=f"{experiment.id}-{'-'.join(params.values())}-{interpreter.name}",
            marks=[]
            if (experiment.id, interpreter) in few
            or (interpreter == ENDS[1] and not experiment.id.startswith("models."))
            else pytest.mark.long,
        )
        for experiment, params in cases()
        for interpreter in subjects(experiment, params)
    ]


@pytest.mark.parametrize(("experiment", "params", "interpreter"), where())
def test_experiment_measures_on_every_interpreter(
    interpreter: Interpreter, experiment: Experiment, params: dict[str, Any]
) -> None:
    if reason := experiment.runs_on(interpreter):
        pytest.skip(reason)
    begin = time.monotonic()
    answer = measured(interpreter, experiment, **params)
    elapsed_s = time.monotonic() - begin
    if "skipped" in answer and experiment.needs:
        assert interpreter != DISCOVERY.running, "the tests run on an interpreter that has fairlead"
        pytest.skip(answer["skipped"])
    if "skipped" in answer and "scheduler" in params:
        assert why_not() is not None
        pytest.skip(answer["skipped"])
    if "skipped" in answer and "gil" in params:
        assert not interpreter.free_threaded
        pytest.skip(answer["skipped"])
    if "skipped" in answer and further(experiment):
        assert "interpreter" in experiment.id or interpreter != DISCOVERY.running
        assert "need" in answer["skipped"]
        pytest.skip(answer["skipped"])
    if "skipped" in answer:
        assert interpreter.version_key < {"release-n": (3, 9), "barrier": (3, 2)}[params["wake"]]
        pytest.skip(answer["skipped"])
    details = answer.pop("details")
    assert details[DONE[experiment.id]] == N, "each came through exactly once"
    declared = {metric.name for metric in experiment.subject.metrics}
    assert set(details.get("metrics", {})) <= declared
    assert experiment.value is None or details["metrics"][experiment.value] > 0
    assert details.get("all_blocked_first", True) is True
    # the time is that until all are joined, and the region alone a figure beside it
    assert ("region_s" in declared) == ("region_s" in details.get("metrics", {}))
    assert 0 <= details.get("metrics", {}).get("region_s", 0) < answer["wall_s"]
    assert details["policy"] == "other"
    if experiment.id.endswith(("process-pool", "loops")):
        assert 1 < details["processes"] <= N + 1
    elif experiment.id.endswith("fairlead-processes"):
        assert details["processes"] > 1
    else:
        assert details["processes"] == (N + 1 if "process" in experiment.id else 1)
    assert 0 < answer["wall_s"] < elapsed_s, "the region is a part of the process's life"
    cpu_s = answer["user_s"] + answer["sys_s"]
    assert 0 < cpu_s < elapsed_s * (os.cpu_count() or 1), "no more CPU time than the cores had"
    assert answer["cpu_percent"] == pytest.approx(cpu_s / answer["wall_s"] * 100)
    counts = ("ctx_voluntary", "ctx_involuntary", "max_rss_kb", "sum_rss_kb")
    assert {type(answer[name]) for name in counts} == {int}
    if experiment.id.startswith(("gil.convoy", "gil.open-loop", "models.blocking-", "models.io-")):
        assert answer["ctx_voluntary"] > 0, "each waits for an answer, and gives its core up for that"
    assert 2_000 < answer["max_rss_kb"] < 1_000_000, "KiB: an interpreter has megabytes, and no gigabyte"
    if details["processes"] == 1:
        assert answer["sum_rss_kb"] == answer["max_rss_kb"]
    else:
        assert answer["sum_rss_kb"] > answer["max_rss_kb"]


@pytest.mark.long
@pytest.mark.skipif(why_not() is not None, reason=f"the GIL cannot be scheduled: {why_not()}")
@pytest.mark.parametrize("interpreter", on(FOUND, *TWO), ids=lambda i: i.name)
def test_stack_that_is_too_small_for_an_interpreter_is_a_reason_to_skip(interpreter: Interpreter) -> None:
    answer = measured(interpreter, CATALOGUE["gil.thread-cost"], stack_kb=32)
    assert (
        "need larger stacks" in answer["skipped"] if "skipped" in answer else answer["details"]["lived"] == N
    )


@pytest.mark.parametrize("interpreter", on(ENDS, *ENDS), ids=lambda i: i.name)
def test_the_old_gil_is_fought_for_as_strace_sees_it(interpreter: Interpreter) -> None:
    answer = measured(interpreter, CATALOGUE["gil.battle"], n=500, count="failures")
    if "skipped" in answer:
        assert interpreter.version_key >= (3, 2) or "strace" in answer["skipped"]
        pytest.skip(answer["skipped"])
    metrics, trace = answer["details"]["metrics"], answer["details"]["trace"]
    assert metrics["acquired"] == trace["counts"]["take"] > 0
    assert metrics["failed"] == trace["counts"]["busy"] >= metrics["failed_in_a_row"]
    # a thread that begins to wait has it in the end
    assert trace["counts"]["want"] == trace["counts"]["take"]
    assert len(trace["events"]) + trace["left_out"] == sum(
        trace["counts"][kind] for kind in ("want", "busy", "take", "drop")
    )


@pytest.mark.timing
def test_scheduled_mutex_takes_fewer_switches_than_the_square() -> None:
    plain, scheduled = (
        measured(DISCOVERY.running, CATALOGUE["square.mutex"], n=120, scheduler=scheduler)
        for scheduler in ("off", "interactive")
    )
    assert scheduled["ctx_voluntary"] < plain["ctx_voluntary"]


PARTY = [name for name in CATALOGUE if re.match(r"party\.(?!pyperformance)", name)]
"""Those of its workloads that no interpreter has to install anything for."""
METHODS = CATALOGUE["party.fib"].parameters["method"].choices
NEITHER = {"sequential", "threads", "thread-pool", "futures", "fairlead-threads"}
"""Methods that have neither processes nor interpreters."""


@pytest.mark.parametrize(
    ("name", "method", "interpreter"),
    [
        pytest.param(
            PARTY[index % len(PARTY)],
            method,
            interpreter,
            id=f"{method}-{interpreter.name}",
            marks=[]
            if interpreter == DISCOVERY.running or (interpreter == NEWEST and "interpreters" in method)
            else pytest.mark.long,
        )
        for index, method in enumerate(METHODS)
        for interpreter in FOUND
    ],
)
def test_method_does_every_task_and_says_what_it_took(
    interpreter: Interpreter, name: str, method: str
) -> None:
    experiment = CATALOGUE[name]
    if reason := experiment.runs_on(interpreter):
        pytest.skip(reason)
    answer = measured(interpreter, experiment, method=method)
    if "skipped" in answer:
        assert method not in NEITHER or interpreter != DISCOVERY.running
        assert "needs" in answer["skipped"] or "need" in answer["skipped"]
        pytest.skip(answer["skipped"])
    details = answer["details"]
    metrics = details["metrics"]
    assert details["done"] == N
    if name != "party.nbody" or method not in NEITHER:
        assert metrics["wrong_answers"] == 0
    assert metrics["cpu_share"] == pytest.approx(answer["cpu_percent"] / 100 / len(os.sched_getaffinity(0)))
    assert metrics["peak_kb"] == answer["sum_rss_kb"] >= answer["max_rss_kb"] > 1000
    if "processes" in method:
        assert details["processes"] > len(os.sched_getaffinity(0))
        assert details["not_measured"] == {"gil_share": "the tasks run in other processes"}
    elif method != "fairlead-auto":
        assert details["processes"] == 1
    if "gil_share" in metrics:
        assert 0 < metrics["gil_share"] <= 1
        assert details["not_measured"] == {}
    else:
        assert details["not_measured"]["gil_share"]


SPECIALISED = """
import sys
sys.path.insert(0, sys.argv[1])
import probe_specialisation, probe_workloads
for _ in range(20):
    probe_workloads.fib2(10), probe_workloads.nbody(20), probe_workloads.raytrace(6)
print(probe_specialisation.share(probe_workloads))
"""


@pytest.mark.parametrize("interpreter", on(FOUND, *TWO), ids=lambda i: i.name)
def test_specialisation_that_is_off_leaves_every_instruction_as_it_is(interpreter: Interpreter) -> None:
    if reason := CATALOGUE["party.fib2"].runs_on(interpreter):
        pytest.skip(reason)
    answer = measured(interpreter, CATALOGUE["party.fib2"], specialisation="off")
    if "skipped" in answer:
        assert "speciali" in answer["skipped"]
        pytest.skip(answer["skipped"])
    assert answer["details"]["done"] == N

    def share(**orders: str) -> float:
        argv = [interpreter.path, "-c", SPECIALISED, str(registry.DIRECTORY)]
        return float(subprocess.check_output(argv, env={**os.environ, **orders}))

    assert share(FAIRLEAD_PROBE_SPECIALISATION="off", PYTHON_TLBC="0") == 0
    assert share() > 0.2, "what finds none where it is off finds them where it is on"


@pytest.mark.parametrize("work", ["yield", "spin"])
@pytest.mark.parametrize(
    "experiment",
    [
        e if e.id == "square.mutex" else pytest.param(e, marks=pytest.mark.long)
        for e in CATALOGUE.values()
        if "work" in e.parameters
    ],
    ids=lambda e: e.id,
)
@pytest.mark.parametrize("interpreter", on(CONTRAST, *ENDS), ids=lambda i: i.name)
def test_experiment_measures_with_other_work(
    interpreter: Interpreter, experiment: Experiment, work: str
) -> None:
    answer = measured(interpreter, experiment, n=2, work=work)
    if "skipped" in answer and experiment.needs:
        pytest.skip(answer["skipped"])
    assert answer["wall_s"] > 0
    assert answer["details"][DONE[experiment.id]] == 2


UNKNOWN = [
    ('{"n": 1}', "n is a whole number of at least 2, not 1"),
    ('{"n": 2.5}', "n is a whole number of at least 2, not 2.5"),
    ('{"n": "9"}', 'n is a whole number of at least 2, not "9"'),
    ('{"n": true}', "n is a whole number of at least 2, not true"),
    ("{}", "the size n is missing"),
    (
        '{"n": 2, "wrok": 1}',
        'unknown parameter "wrok": there are n, timeout_s, cores, gil, policy, scheduler, work',
    ),
    ('{"n": 2, "work": "rest"}', 'work is one of sleep0, yield, spin, stop, not "rest"'),
    ('{"n": 2, "work": []}', "work is one of sleep0, yield, spin, stop, not []"),
    ('{"n": 2, "timeout_s": 0}', "timeout_s is a number of seconds above 0, not 0"),
    ('{"n": 2, "timeout_s": "1"}', 'timeout_s is a number of seconds above 0, not "1"'),
    ("[]", "give the parameters as one JSON object"),
    ("n=2", "give the parameters as one JSON object"),
    ('{"n": 2, "policy": "rr"}', "policy is to be rr, and is other"),
]
"""What a probe is given, and how what it says begins."""
EACH = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import probe, square_mutex
for argument in json.loads(sys.argv[2]):
    if not os.fork():
        sys.argv[1:] = [argument]
        probe.main(square_mutex.EXPERIMENT, square_mutex.measure)
    os.wait()
"""


@pytest.mark.parametrize("interpreter", on(CONTRAST, *ENDS), ids=lambda i: i.name)
def test_probe_given_what_it_does_not_know_says_what_it_knows(interpreter: Interpreter) -> None:
    arguments = json.dumps([argument for argument, _ in UNKNOWN])
    told = answers(interpreter, "-c", EACH, str(registry.DIRECTORY), arguments)
    for (_, reason), answer in zip(UNKNOWN, told, strict=True):
        assert list(answer) == ["failed"]
        assert answer["failed"].startswith(reason)


def test_probe_without_parameters_says_how_to_give_them() -> None:
    answer = run(DISCOVERY.running, CATALOGUE["square.mutex"].path)
    assert answer == {"failed": "give the parameters as one JSON object, such as '{\"n\": 100}'"}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores to use the wrong ones")
def test_probe_that_is_not_on_the_one_core_it_should_be_on_fails() -> None:
    answer = measured(DISCOVERY.running, CATALOGUE["square.process-mutex"], cores="one")
    assert answer["failed"].startswith("is to run on one core, and may use ")


@pytest.mark.skipif(
    subprocess_runner.real_time_refused() is not None, reason=str(subprocess_runner.real_time_refused())
)
@pytest.mark.parametrize("n", [10, 20])
@pytest.mark.parametrize("interpreter", on(CONTRAST, *ENDS), ids=lambda i: i.name)
def test_process_mutex_in_turns_on_one_core_takes_the_sum_of_all_turns(
    interpreter: Interpreter, n: int
) -> None:
    params = {"n": n, "work": "yield", "policy": "rr", "cores": "one", "timeout_s": 30}
    outcome = subprocess_runner.run(
        [interpreter.path, str(CATALOGUE["square.process-mutex"].path), json.dumps(params)],
        env=subprocess_runner.clean_environment(free_threaded=interpreter.free_threaded),
        timeout_s=40,
        mark=uuid.uuid4().hex,
        policy="rr",
        cpus=[min(os.sched_getaffinity(0))],
    )
    answer = json.loads(outcome.stdout)
    assert answer["details"]["policy"] == "rr"
    # before the k-th may pass, each of the k - 1 that are through has its turn: 1 + 2 + ... + (n - 1)
    assert answer["ctx_voluntary"] + answer["ctx_involuntary"] >= n * (n - 1) // 2


@pytest.mark.parametrize("interpreter", on(FOUND, *TWO), ids=lambda i: i.name)
def test_yield_probe_reports_cost_and_effect(interpreter: Interpreter) -> None:
    answer = run(interpreter, registry.DIRECTORY / "probe_yield.py")
    assert answer["policy"] == "other"
    for name in ("sleep0", "yield"):
        one = answer[name]
        assert one["alone_us"] > 0
        if interpreter.version_key < (3, 3):
            assert one["yields"] is None, "a process of this version cannot pin itself to a core"
        else:
            assert one["beside_us"] > 0
            assert one["yields"] is (one["switches_per_call"] >= 0.5)


@pytest.mark.parametrize("interpreter", on(FOUND, *CONTRAST), ids=lambda i: i.name)
def test_experiments_compile(interpreter: Interpreter) -> None:
    program = (
        "import io, sys\nfor path in sys.argv[1:]:\n    compile(io.open(path, 'rb').read(), path, 'exec')"
    )
    refused = {one.path for one in CATALOGUE.values() if one.runs_on(interpreter)}
    for path in FILES:
        if path.name in PARTS and any(one.name.startswith(PARTS[path.name]) for one in refused):
            refused.add(path)
    files = [str(path) for path in FILES if path not in refused]
    subprocess.run([interpreter.path, "-c", program, *files], check=True)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_experiment_imports_nothing_but_the_standard_library_and_its_sibling(path: Path) -> None:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a program of its own has no package to import from"
            names.add(str(node.module).partition(".")[0])
    known = {experiment.path: experiment.needs for experiment in CATALOGUE.values()}
    known[registry.DIRECTORY / "probe_fairlead.py"] = ("fairlead",)
    assert names - {
        "probe",
        "probe_fairlead",
        *(Path(part).stem for part in PARTS),
        *known.get(path, ()),
    } <= sys.stdlib_module_names | {"_interpreters", "_interpqueues"}


def test_experiments_hide_no_module_of_the_standard_library_and_keep_to_the_width_of_the_rest() -> None:
    assert {path.stem for path in FILES} & sys.stdlib_module_names == set()
    lines = [(path.name, line) for path in FILES for line in path.read_text().splitlines()]
    assert [(name, line) for name, line in lines if len(line) > 110] == []
