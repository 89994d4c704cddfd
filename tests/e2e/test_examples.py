"""Each of the examples' programs starts, is put under load in every way, and answers.

Their packages are installed by `python examples/run.py --install`; a program whose packages are not there is
left out.
"""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import python, sample

from fairlead.gil.observe.access import why_not
from fairlead.lab.catalogue import registry

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = runpy.run_path(str(EXAMPLES / "programs.py"))["PROGRAMS"]
CASES = registry.load(EXAMPLES / "own_programs.py").cases
ENVIRONMENT = runpy.run_path(str(EXAMPLES / "environment.py"))["Environment"]()

pytestmark = [pytest.mark.once, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return python(EXAMPLES / "run.py", *arguments, timeout=140)


def needs(name: str) -> None:
    if not ENVIRONMENT.has(PROGRAMS[name].packages):
        pytest.skip(f"its packages are not installed: python examples/run.py --install {name}")
    if PROGRAMS[name].redis and shutil.which("redis-server") is None:
        pytest.skip("no redis-server: apt install redis-server")


def test_each_program_is_a_case_with_two_workers_if_it_can_start_them() -> None:
    assert list(CASES) == list(PROGRAMS)
    for name, case in CASES.items():
        ways = {"stock", "interval", "fairlead"} | ({"2 workers"} if PROGRAMS[name].workers else set())
        assert {variant.params["by"] for variant in case.variants_for("quick")} == ways


def test_programs_are_listed_and_what_one_lacks_is_named(tmp_path: Path) -> None:
    done = run("--list")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(PROGRAMS)
    done = run("--list", "gunicorn-flusk")
    assert done.returncode == 2
    assert "no such program: gunicorn-flusk" in done.stderr
    assert "gunicorn-flask" in done.stderr
    found = sample(CASES["gunicorn-flask"], {"by": "stock"}, XDG_CACHE_HOME=str(tmp_path))
    command = f"{sys.executable} {EXAMPLES / 'run.py'} --install gunicorn-flask"
    assert found == {"skipped": f"its packages are not installed: {command}"}


@pytest.mark.long
@pytest.mark.timeout(150)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_answers_in_every_way(name: str) -> None:
    needs(name)
    for variant in CASES[name].variants_for("quick"):
        answer = sample(CASES[name], variant.params)
        assert answer.keys().isdisjoint({"skipped", "failed"}), answer
        found = answer["details"]["metrics"]
        assert found.keys() <= {metric.name for metric in CASES[name].subject.metrics}
        assert 0 < found["p50_s"] <= found["p99_s"] <= found["max_s"]
        assert found["answers"] > 0
        # an export may be under way, and a time-out of 10 ms is what redis-py is about
        assert found["lost"] == 0 or name in ("opentelemetry", "redis-py")


@pytest.mark.timing
@pytest.mark.timeout(150)
@pytest.mark.parametrize("name", [name for name, program in PROGRAMS.items() if program.cpu_threads])
def test_first_lines_of_a_report_name_the_thread_that_computes(name: str) -> None:
    needs(name)
    done = run(name, "--record", "--seconds", "2")
    assert done.returncode == 0, done.stderr
    computes = "Dask-Default-Threads-" if name == "dask" else "compute-"  # dask's own threads run the tasks
    assert re.search(rf"{computes}\d", "\n".join(done.stdout.splitlines()[:10])), done.stdout


@pytest.mark.timing
@pytest.mark.timeout(150)
def test_a_recording_names_the_thread_and_the_function_that_keep_the_gil() -> None:
    needs("long-c-call")
    done = run("long-c-call", "--record", "--seconds", "2")
    assert done.returncode == 0, done.stderr
    headline, _, _ = done.stdout.partition("\n\n")
    assert "snapshots keeps the GIL" in headline
    assert "save_snapshots (pickling_app.py" in headline
