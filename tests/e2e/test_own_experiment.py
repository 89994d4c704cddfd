"""A user's experiment, repeated runs and calibrated work, on real interpreters; reports without the file."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from commands import exit_status, python
from interpreters import here

from fairlead.cli.lab import results
from fairlead.lab.catalogue import registry

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
NEWEST = max((i for i in here().interpreters if i.implementation == "CPython"), key=lambda i: i.version_key)
PROGRAM = (
    "from fairlead.lab.run import runner, sampling; sampling.AT_MOST = 5; runner.ATTEMPTS = 1\n"
    "from fairlead.cli import main; main()"
)
"""Ends by its number of samples, long before its budget."""


def samples(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "samples.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the example, and a run of it on two interpreters in ``out``."""
    place = tmp_path_factory.mktemp("own")
    shutil.copy(ROOT / "examples" / "my_scaling.py", place)
    words = ["--quick", "--budget", "5m", "--repeat", "2", "--set", "calls=16", "--out", str(place / "out")]
    interpreters = ["--interpreter", sys.executable, "--interpreter", NEWEST.path]
    done = python("-c", PROGRAM, "lab", "run", str(place / "my_scaling.py"), *words, *interpreters)
    assert done.returncode == 0, done.stderr
    assert "counting words" in done.stdout
    assert "run 2 of 2" in done.stderr
    return place


def test_own_experiment_is_measured_on_every_interpreter_in_every_run(place: Path) -> None:
    taken = [one for one in samples(place / "out") if one["status"] == "ok"]
    sizes = [1, 2] if len(taken[0]["environment"]["affinity"]) > 1 else [1]
    versions = {one["interpreter"]["version"] for one in taken}
    runs = {one["run"] for one in taken}
    assert len(runs) == 2
    assert NEWEST.version in versions
    counted = Counter((one["run"], one["interpreter"]["version"], one["params"]["n"]) for one in taken)
    assert counted == {(run, version, n): 5 for run in runs for version in versions for n in sizes}
    assert {one["params"]["calls"] for one in taken} == {16}
    assert {one["details"]["calls"] for one in taken} == {16}


def test_report_needs_only_the_run(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moved = shutil.copytree(place / "out", tmp_path / "moved")
    registry.catalogue.cache_clear()
    try:
        assert exit_status("lab", "report", str(moved), "--format", "json") == 0
        (subject,) = json.loads(capsys.readouterr().out)["experiments"]
        assert subject["title"] == "Counting words in threads"
        again = results.summary([moved])[0].again["my.scaling"]
        assert again.startswith(f"fairlead lab run {moved}/experiments/my_scaling.py ")
        changed = shutil.copytree(moved, tmp_path / "changed")
        with (changed / registry.KEPT / "my_scaling.py").open("a") as file:
            file.write("# changed\n")
        assert exit_status("lab", "report", str(moved), str(changed)) == 1
        assert "are two programs: report their runs one by one" in capsys.readouterr().err
        shutil.rmtree(moved / registry.KEPT)
        registry.catalogue.cache_clear()
        assert exit_status("lab", "report", str(moved), "-v") == 0
        assert "my.scaling" in capsys.readouterr().out
    finally:
        registry.catalogue.cache_clear()


def test_a_run_goes_on_only_with_the_same_file(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place, tmp_path / "there")
    file, out = tmp_path / "there" / "my_scaling.py", tmp_path / "there" / "out"
    plan = (out / "plan.json").read_text()
    (out / "plan.json").write_text(plan.replace(str(place / "my_scaling.py"), str(file)))
    again = ["lab", "run", "--resume", "--out", str(out)]
    done = python("-c", PROGRAM, *again)
    assert done.returncode == 0, done.stderr
    assert "nothing was measured" in done.stderr
    for change in (lambda: file.write_text(file.read_text() + "# changed\n"), file.unlink):
        change()
        done = python("-c", PROGRAM, *again)
        assert done.returncode == 2
        assert "my_scaling.py has changed since" in done.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("absent.py", "No such file"),
        ("square_mutex.py", "the lab has an experiment square.mutex of its own: choose another name"),
        ("my_other.py", "the id is 'my.scaling', the file is named after 'my.other'"),
    ],
)
def test_a_file_that_is_no_experiment_is_refused(
    tmp_path: Path, name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "examples" / "my_scaling.py").read_text()
    if name == "square_mutex.py":
        text = text.replace('"id": "my.scaling"', '"id": "square.mutex"')
    if name != "absent.py":
        (tmp_path / name).write_text(text)
    assert exit_status("lab", "run", str(tmp_path / name), "--out", str(tmp_path / "out")) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_calibrated_work_is_the_same_on_all_interpreters_and_long_enough(tmp_path: Path) -> None:
    program = PROGRAM.replace("sampling.AT_MOST = 5", "sampling.ENOUGH = sampling.AT_MOST = 1")
    chosen = [one for name in ("3.11", "3.14", "3.13t") for one in here().interpreters if one.name == name]
    asked = [word for one in chosen for word in ("--interpreter", one.path)]
    words = ["models.cpu-sequential", "--quick", "--variant", "", "--budget", "10m", *asked]
    done = python("-c", program, "lab", "run", *words, "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    taken = [one for one in samples(tmp_path / "out") if one["status"] == "ok"]
    assert {one["interpreter"]["version"] for one in taken} == {one.version for one in chosen}
    assert len({one["params"]["repeat"] for one in taken}) == 1
    # of the first, which it was measured on; other load makes processor time vary by a half or so
    first = [one for one in taken if one["interpreter"]["version"] == chosen[0].version]
    assert min(one["user_s"] + one["sys_s"] for one in first) > 0.4
