"""The benchmarks run and say something of everything they ask about; what they say is not judged here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from commands import python, sample

from fairlead.gil.observe.access import why_not
from fairlead.lab.catalogue import registry

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = [pytest.mark.once, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]


def ran(script: str, *arguments: object, cwd: Path | None = None) -> str:
    """What it prints; it complains of nothing."""
    done = python(BENCHMARKS / script, *arguments, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.long
def test_calibration_compares_each_way_and_each_rival() -> None:
    shown = ran("gil_calibration.py", "--quick")
    for way in ("stock", "interval", "fairlead"):
        assert re.search(rf"^{way} +p99, ms +predicted / measured x\d", shown, re.MULTILINE)
    assert len(re.findall(r"^fairlead / \w+ .* same verdict on \d of \d", shown, re.MULTILINE)) == 6


def own_ways() -> Iterator[ParameterSet]:
    """Each case of each file in each way; make test has the first of each file."""
    for path in sorted(BENCHMARKS.glob("own_*.py")):
        file = registry.load(path)
        marks: list[pytest.MarkDecorator] = []
        for case in file.cases.values() or [file]:
            for way in case.variants_for("quick"):
                yield pytest.param(case, way.params, id=f"{case.id} {way.label}", marks=marks)
                marks = [pytest.mark.long]


@pytest.mark.parametrize(("case", "way"), list(own_ways()))
def test_each_way_of_each_own_experiment_gives_a_sample(
    case: registry.Experiment, way: dict[str, object]
) -> None:
    result = sample(case, way)
    if "skipped" in result:
        assert result["skipped"]
        return
    assert "failed" not in result, result
    metrics = result["details"]["metrics"]
    # what own.Clocks gives beside clock_s is CPU time, which may be 0 of a short while: a guest's CPU clock
    # stands still until it has made up for what the host took
    assert metrics[case.value] >= 0
    assert metrics.get("clock_s", metrics[case.value]) > 0
    assert metrics.keys() <= {metric.name for metric in case.subject.metrics}
    for claim in case.claims:
        assert {claim.metric, claim.over_metric} - {""} <= {metric.name for metric in case.subject.metrics}


@pytest.mark.parametrize(
    ("way", "reason"), [("free-threaded", "an interpreter without a GIL"), ("go", "Go's compiler")]
)
def test_way_that_this_machine_does_not_have_is_skipped_with_the_reason(
    tmp_path: Path, way: str, reason: str
) -> None:
    echo = registry.load(BENCHMARKS / "own_servers.py").cases["echo-1-1"]
    result = sample(echo, {"by": way}, PATH=str(tmp_path), HOME=str(tmp_path))
    assert result["skipped"].startswith(f"needs {reason}")


def test_corpus_is_judged_program_by_program_and_judged_again_from_its_recordings(tmp_path: Path) -> None:
    arguments = ["--only", "short_program,poller", "--keep", tmp_path / "kept"]
    shown = ran("judge.py", *arguments)
    for name in ("short_program", "poller"):
        assert sum(f" {name} " in line for line in shown.splitlines()) == 1
    assert "of 1 healthy programs" in shown
    assert ran("judge.py", *arguments) == shown
