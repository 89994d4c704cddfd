"""Each of the examples' programs starts, is put under load in every mode, and answers.

Their packages are installed by `python examples/run.py --install`; a program whose packages are not there is
left out.
"""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest
from commands import python

from fairlead.gil.observe.access import why_not

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = runpy.run_path(str(EXAMPLES / "programs.py"))["PROGRAMS"]
ENVIRONMENT = runpy.run_path(str(EXAMPLES / "environment.py"))["Environment"]()

pytestmark = [pytest.mark.once, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return python(EXAMPLES / "run.py", *arguments, timeout=140)


def needs(name: str) -> None:
    if not ENVIRONMENT.has(PROGRAMS[name].packages):
        pytest.skip(f"its packages are not installed: python examples/run.py --install {name}")
    if PROGRAMS[name].redis and shutil.which("redis-server") is None:
        pytest.skip("no redis-server: apt install redis-server")


def test_examples_are_listed_and_what_one_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("--list")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(PROGRAMS)
    done = run("gunicorn-flusk")
    assert done.returncode == 2
    assert "no such program: gunicorn-flusk" in done.stderr
    assert "gunicorn-flask" in done.stdout
    monkeypatch.setenv("PATH", "/nonexistent")
    done = run("celery", "--quick")
    assert done.returncode == 1
    assert done.stderr == "celery: redis-server is missing: apt install redis-server\n"


@pytest.mark.long
@pytest.mark.timeout(150)
@pytest.mark.parametrize("name", PROGRAMS)
def test_example_answers_in_every_mode(name: str, tmp_path: Path) -> None:
    needs(name)
    path = tmp_path / "samples.json"
    done = run(name, "--quick", "--json", str(path))
    assert done.returncode == 0, done.stderr
    samples = json.loads(path.read_text())["samples"]
    two = {"2 workers"} if PROGRAMS[name].workers else set()
    assert {sample["mode"] for sample in samples} == {"stock", "interval", "fairlead"} | two
    for sample in samples:
        assert sample["figures"]["requests/s"] > 0
        assert "unanswered" not in sample["figures"] or name == "opentelemetry", "an export may be under way"


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


def samples(foreign: float, **p99: float) -> list[dict[str, object]]:
    """Two rounds of each mode; the second is worse by a half."""
    same = {"requests/s": 80.0, "CPU share": 0.5}
    return [
        {"mode": mode, "foreign": foreign, "figures": {"p50, ms": ms / 4, "p99, ms": ms * factor, **same}}
        for factor in (1, 1.5)
        for mode, ms in p99.items()
    ]


def test_page_shows_medians_worst_rounds_and_the_noise_and_is_that_of_the_committed_results(
    tmp_path: Path,
) -> None:
    result = {
        "origin": "8 cores of a processor; Linux 1.2; 2026-01-02; commit abc; CPython 3.13.0",
        "versions": {"flask": "3.1"},
        "samples": samples(0.07, stock=100, interval=20, fairlead=12),
    }
    for name in ("waitress-flask", "long-c-call", "foreign-2/waitress-flask"):
        path = tmp_path / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(result))
    (tmp_path / "long-c-call.txt").write_text("Long hold: snapshots keeps the GIL\n")
    write = "import page, pathlib, sys; print(page.written(pathlib.Path(sys.argv[1])))"
    page = python("-c", write, tmp_path, cwd=EXAMPLES).stdout
    row = (
        "| Flask under waitress (8 threads), two queries of 2 ms | 25 / 5 / 3"
        " | 125 [150] / 25 [30] / 15 [18] | 80 / 80 / 80 | 0.5 / 0.5 / 0.5 | 7% |"
    )
    assert page.replace("\u00a0", " ").count(row) == 2
    assert "125\u00a0[150]\u00a0/ 25" in page, "a line breaks between figures only"
    assert "2 rounds, with\n\n```text\nflask==3.1\n```" in page
    assert (
        page.count("Measured on 8 cores of a processor; Linux 1.2; 2026-01-02; commit abc; CPython 3.13.0.")
        == 3
    )
    assert "Each cell is: stock / switch interval / fairlead." in page
    assert "```text\nLong hold: snapshots keeps the GIL\n```" in page
    assert "gunicorn" not in "".join(re.findall("<!-- quiet -->.*?<!-- end -->", page, re.DOTALL))
    page = python("page.py", "--check", cwd=EXAMPLES)
    assert page.returncode == 0, page.stderr
