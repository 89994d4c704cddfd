"""The command line: what it answers, how it fails, and with which status."""

from __future__ import annotations

import contextlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import programs
import pytest

from fairlead import __version__, cli
from fairlead.gil.observe.access import why_not
from fairlead.lab.catalogue import registry

pytestmark = pytest.mark.once

PROGRAM = "from fairlead.cli import main; main()"
FEW_ROUNDS = (
    "from fairlead.lab.run import runner, sampling; sampling.AT_MOST = 6; runner.ATTEMPTS = 1\n" + PROGRAM
)
"""Ends by its number of samples, long before its budget: what is in the run does not depend on the load."""


@pytest.fixture(scope="module", autouse=True)
def few_interpreters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Beside those of the system one that says it is Python 2.7: commands that look for interpreters start
    each that they find, and that costs most of their time."""
    home = tmp_path_factory.mktemp("home")
    programs.interpreter(home / "bin" / "python2.7", version="2.7.18")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PYENV_ROOT", "XDG_DATA_HOME", "UV_PYTHON_INSTALL_DIR"):
            patch.delenv(name, raising=False)
        patch.setenv("HOME", str(home))
        patch.setenv("PATH", f"{home / 'bin'}:/usr/bin:/bin")
        yield


def fairlead(*args: str, program: str = PROGRAM, **options: object) -> subprocess.CompletedProcess[str]:
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run([sys.executable, "-c", program, *args], text=True, check=False, **given)  # type: ignore[call-overload,no-any-return]


def narrow(*args: str) -> list[str]:
    """The lines for a terminal of 60 columns."""
    return fairlead(*args, env={**os.environ, "COLUMNS": "60"}).stdout.splitlines()


def here(words: list[str]) -> None:
    """The command in this process, where how it starts and ends is not the question."""
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 0


def test_version_is_the_package_version() -> None:
    assert fairlead("--version").stdout == f"fairlead {__version__}\n"


@pytest.fixture(scope="module")
def doctor() -> dict[str, Any]:
    """What ``fairlead doctor`` says as JSON: it starts every interpreter, and that is once enough."""
    answer: dict[str, Any] = json.loads(fairlead("doctor", "--format", "json").stdout)
    return answer


def test_doctor_as_json_describes_the_running_interpreter(doctor: dict[str, Any]) -> None:
    answer = doctor
    assert answer["interpreters"][0]["path"] == sys.executable
    assert answer["machine"]["cores"] >= 1
    assert answer["extras"]["lab"]["installed"] == (not answer["extras"]["lab"]["missing"])


def test_list_as_json_says_what_can_be_varied_and_what_can_run_here() -> None:
    entries = {entry["id"]: entry for entry in json.loads(fairlead("lab", "list", "--format", "json").stdout)}
    assert list(entries) == list(registry.catalogue())
    signal = entries["gil.signal"]
    assert (signal["family"], signal["can_run"], signal["reason"]) == ("gil", True, None)
    assert signal["parameters"]["interval_ms"]["choices"] == [0.5, 5, 50]
    assert signal["metrics"][0]["name"] == "delay_s"
    assert signal["requirements"] == {"python": ">=2.7", "needs": []}
    trace = entries["gil.trace"]
    assert trace["requirements"] == {"python": ">=3.11", "needs": ["fairlead"]}
    assert "2.7" in trace["interpreters"]
    for name, reason in trace["interpreters"].items():
        assert (reason is None) == (not name.startswith(("2.7", "3.6", "3.7", "3.8", "3.9", "3.10")))


def test_doctor_reports_the_yield_probe_and_what_each_experiment_lacks(doctor: dict[str, Any]) -> None:
    answer = doctor
    assert answer["yield_probe"].keys() == ({"other", "rr"} if answer["real_time"]["allowed"] else {"other"})
    assert answer["yield_probe"]["other"]["yield"]["alone_us"] > 0
    assert answer["experiments"].keys() >= {"square.mutex", "square.process-mutex"}
    lacking = answer["experiments"]["square.process-mutex"]["lacking"]
    assert any("SCHED_RR" in line for line in lacking) == (not answer["real_time"]["allowed"])


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="taking away the right to real-time scheduling takes root")
def test_doctor_and_run_without_real_time_say_what_it_takes(tmp_path: Path) -> None:
    # PR_CAPBSET_DROP of CAP_SYS_NICE: root without it after the next exec
    drop = "import ctypes, os, sys; assert ctypes.CDLL(None).prctl(24, 23, 0, 0, 0) == 0\n"
    command = [sys.executable, "-c", drop + "os.execv(sys.executable, sys.argv[1:])", sys.executable]
    doctor = subprocess.run([*command, "-c", PROGRAM, "doctor"], capture_output=True, text=True, check=False)
    assert doctor.returncode == 0, doctor.stderr
    assert "lab, SCHED_RR     no   real-time scheduling is refused" in doctor.stdout
    words = ["lab", "run", "square.mutex", "--kernel-class", "rr", "--out", str(tmp_path / "run")]
    run = subprocess.run([*command, "-c", PROGRAM, *words], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "real-time scheduling is refused" in " ".join(run.stdout.split())


def test_doctor_without_the_extra_works_and_says_what_is_missing() -> None:
    hide = (
        "import importlib.metadata as m, sys; real = m.distribution\n"
        "def distribution(name):\n"
        "    if name in ('numpy', 'rich', 'jinja2'): raise m.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "m.distribution = distribution\n"
        "for name in ('numpy', 'rich', 'jinja2'): sys.modules[name] = None\n"
    )
    for words, status in (["doctor"], 0), (["lab", "run"], 1):
        done = subprocess.run(
            [sys.executable, "-c", hide + PROGRAM, *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stderr
        assert 'pip install "fairlead[lab]"' in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_doctor_says_in_fifteen_lines_what_can_be_done_here_and_why_not_the_rest(
    doctor: dict[str, Any],
) -> None:
    answer = doctor
    lines = fairlead("doctor").stdout.splitlines()
    assert len(lines) <= 15
    assert [*answer["abilities"]][:6] == ["record", "run", "record --pid", "advise", "lab", "lab, SCHED_RR"]
    for name, found in answer["abilities"].items():
        (line,) = [line for line in lines if line.startswith(f"{name}  ")]
        assert line.removeprefix(name).split()[0] == ("yes" if found["can"] else "no")
        assert found["remark"]
    shown = " ".join(lines)
    assert all(f" {one['name']}" in shown for one in answer["interpreters"])


def test_doctor_asked_for_more_names_the_path_of_every_interpreter(doctor: dict[str, Any]) -> None:
    lines = narrow("doctor", "-v")
    for interpreter in doctor["interpreters"]:
        assert any(interpreter["path"] in line for line in lines)
    assert not [line for line in lines if len(line) > 60 and " " in line.strip()]


def test_list_is_a_screen_and_of_what_is_named_says_what_can_be_varied() -> None:
    lines = fairlead("lab", "list").stdout.splitlines()
    assert len(lines) <= 50
    for name in ("square.mutex", "gil.convoy", "models.io-*", "party.fib"):
        assert sum(line.startswith(f"{name}  ") for line in lines) == 1
    one = fairlead("lab", "list", "gil.convoy").stdout
    assert "interval_ms" in one
    assert "'1 CPU thread, scheduled'" in one
    assert max(map(len, narrow("lab", "list", "gil"))) <= 60
    assert fairlead("lab", "list", "gil.convoi").returncode == 2


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["square.mutex", "--set", "wrok=spin"], "no experiment named has this parameter; there are work"),
        (["square.mutex", "--set", "work=spn"], "work='spn' is not known (did you mean spin?)"),
        (["square.mutex", "--set", "work"], "write NAME=VALUE"),
        (["gil.convoy", "--variant", "alon"], "'alone'"),
    ],
)
def test_a_setting_or_variant_that_is_not_known_is_refused_with_those_that_are(
    asked: list[str], said: str
) -> None:
    done = fairlead("lab", "run", *asked)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["nope"], "nope"),
        (["lab", "nope"], "nope"),
        (["doctor", "--format", "xml"], "xml"),
        (["doctor", "surplus"], "surplus"),
    ],
)
def test_wrong_command_line_is_one_line_and_status_2(args: list[str], word: str) -> None:
    done = fairlead(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert word in done.stderr
    assert done.stderr.startswith("fairlead: ")
    assert done.stderr.count("\n") == 1


def test_output_to_a_full_disk_is_one_line_and_status_1() -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = fairlead("lab", "list", stdout=full)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("args", [[], ["lab"]])
def test_command_without_arguments_shows_its_help_and_ends_with_status_2(args: list[str]) -> None:
    done = fairlead(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == fairlead(*args, "--help").stdout


def test_output_that_was_closed_is_one_line_and_status_1() -> None:
    program = f"{sys.executable} -c 'from fairlead.cli import main; main()' lab list >&-"
    done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "fairlead: the output cannot be written: Bad file descriptor\n"


def test_run_to_a_place_that_cannot_be_reached_names_it(tmp_path: Path) -> None:
    # as a directory of another user cannot; a name that is too long fails for root, too
    place = tmp_path / ("x" * 300)
    done = fairlead("lab", "run", "square.mutex", "--quick", "--out", str(place))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"fairlead: {place}")
    assert "File name too long" in done.stderr


def test_closed_standard_error_costs_only_what_is_said_there() -> None:
    program = f"{sys.executable} -c 'from fairlead.cli import main; main()' nope 2>&-"
    done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_output_to_a_closed_pipe_is_quiet() -> None:
    program = f"{sys.executable} -c 'from fairlead.cli import main; main()' lab list | true"
    done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run of the real experiment, as small as it gets."""
    out = tmp_path_factory.mktemp("lab") / "run"
    asked = ("square.mutex", "--quick", "--sizes", "5,10,20", "--budget", "5m", "--out", str(out))
    done = fairlead("lab", "run", *asked, program=FEW_ROUNDS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"Report: {out}/report.html"
    assert "passing a lock" in done.stdout
    assert "calibrating" in done.stderr
    return out


@pytest.mark.long
def test_run_whose_table_cannot_be_shown_still_writes_the_page(tmp_path: Path) -> None:
    program = f"{sys.executable} -c 'from fairlead.cli import main; main()' lab run square.mutex"
    done = subprocess.run(
        ["sh", "-c", f"{program} --sizes 5,10 --budget 1s --out run > /dev/full"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1,
        "fairlead: the output cannot be written: No space left on device",
    )
    assert (tmp_path / "run" / "report.html").read_text().endswith("</html>")


def test_run_writes_plan_samples_and_report(run: Path) -> None:
    assert {path.name for path in run.iterdir()} == {"plan.json", "samples.jsonl", "report.html"}
    assert (run / "report.html").read_text().startswith("<!DOCTYPE html>")
    for line in (run / "samples.jsonl").read_text().splitlines():
        sample = json.loads(line)
        assert sample["environment"]["yield_probe"]["yield"]["alone_us"] > 0
        assert sample["elapsed_s"] > (sample["wall_s"] or 0)


@pytest.mark.parametrize("form", ["text", "html", "json", "csv"])
def test_report_in_every_form_and_to_a_file_is_the_same(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    here(["lab", "report", str(run), "--format", form])
    file = tmp_path / f"report.{form}"
    here(["lab", "report", str(run), "-o", str(file)])
    assert capsys.readouterr().out.rstrip("\n") == file.read_bytes().decode().rstrip("\n")


def test_report_for_pyperf_is_compared_by_pyperf(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "suite.json"
    here(["lab", "report", str(run), "--format", "pyperf", "-o", str(file)])
    done = subprocess.run(
        [sys.executable, "-m", "pyperf", "compare_to", str(file), str(file)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "square.mutex" in done.stdout


def test_report_as_json_gives_samples_median_and_fit(run: Path) -> None:
    answer = json.loads(fairlead("lab", "report", str(run), "--format", "json").stdout)
    schema = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "site" / "results_schema.py"))
    jsonschema.validate(answer, json.loads(schema["text"]()))
    assert {result["params"]["n"] for result in answer["results"]} == {5, 10, 20}
    for result in answer["results"]:
        assert result["samples"] > 0
        assert result["median"] > 0
        assert result["fit"].keys() >= {"exponent", "low", "high", "model"}


def test_report_of_a_damaged_file_shows_the_rest_and_ends_with_status_1(run: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes((run / "samples.jsonl").read_bytes()[:-40])
    done = fairlead("lab", "report", str(damaged))
    assert done.returncode == 1
    assert "passing a lock" in done.stdout
    assert "damaged.jsonl:" in done.stderr
    assert done.stderr.count("\n") == 1


def test_compare_of_a_run_with_itself_shows_no_change(run: Path) -> None:
    done = fairlead("lab", "compare", str(run), str(run))
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r" +(\d+ +a|b)  ", line)]
    assert [row[0] for row in rows] == ["5", "b", "10", "b", "20", "b"]
    assert all("1.00" in row for row in rows if row[0] == "b")
    assert "faster" not in done.stdout
    assert "slower" not in done.stdout


@pytest.mark.parametrize("form", ["text", "html", "json", "csv"])
def test_compare_of_a_directory_of_runs_in_every_form_and_to_a_file_is_the_same(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    for name in ("one", "three", "two"):
        (tmp_path / "gathered" / name).mkdir(parents=True)
        shutil.copy(run / "samples.jsonl", tmp_path / "gathered" / name)
    here(["lab", "compare", str(tmp_path / "gathered"), "--format", form])
    shown = capsys.readouterr().out
    for name in ("one", "three", "two"):
        assert f"gathered/{name}" in shown or form in ("text", "csv")
    file = tmp_path / f"comparison.{form}"
    here(["lab", "compare", str(tmp_path / "gathered"), "-o", str(file)])
    assert shown.rstrip("\n") == file.read_bytes().decode().rstrip("\n")


def test_compare_of_one_run_says_what_it_needs(run: Path) -> None:
    done = fairlead("lab", "compare", str(run))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fairlead: one run has nothing to be compared with: name two or more\n"


def test_compare_as_json_says_the_same(run: Path) -> None:
    done = fairlead("lab", "compare", str(run), str(run), "--format", "json")
    assert done.returncode == 0, done.stderr
    (series,) = json.loads(done.stdout)["series"]
    assert [(cell["n"], cell["ratio"]) for cell in series["cells"]] == [(5, 1.0), (10, 1.0), (20, 1.0)]


@pytest.mark.parametrize("command", [["report"], ["compare"], ["report", "{run}"], ["compare", "{run}"]])
def test_results_that_are_not_there_are_one_line(run: Path, tmp_path: Path, command: list[str]) -> None:
    names = [word.format(run=run) for word in command]
    done = fairlead("lab", *names, *[str(tmp_path / "absent")] * (2 if command == ["compare"] else 1))
    assert (done.returncode, done.stdout) == (1, "")
    assert "no such file or directory" in done.stderr
    assert done.stderr.count("\n") == 1


def test_report_to_a_place_that_cannot_be_written_is_one_line(run: Path, tmp_path: Path) -> None:
    done = fairlead("lab", "report", str(run), "-o", str(tmp_path / "absent" / "report.html"))
    assert done.returncode == 1
    assert "cannot be written (No such file or directory)" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["nope"], "unknown experiment 'nope'"),
        (["square.mutx"], "did you mean square.mutex?"),
        (["--interpreter", "1.4"], "no interpreter '1.4' here"),
        (["--sizes", "5,many"], "'many' is not a whole number"),
        (["--sizes", "0"], "at least 1"),
        (["--cpus", "0,x"], "'x' is not a core"),
        (["--cpus", "9999"], "core 9999 is not one"),
        (["--budget", "soon"], "'soon' is not a time"),
        (["--resume"], "--out"),
        (["--resume", "--out", "x", "--quick"], "keeps its plan"),
        (["--contrast", "--all-interpreters"], "exclude each other"),
        (["--quick", "--full"], "exclude each other"),
        (["--work", "spin", "--set", "work=yield"], "work is set 2 times"),
        (["--set", "work=spin", "--set", "work=spin"], "work is set 2 times"),
    ],
)
def test_run_with_wrong_words_is_one_line_and_status_2(tmp_path: Path, options: list[str], word: str) -> None:
    done = fairlead("lab", "run", *options, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert word in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_run_in_a_terminal_shows_a_bar(tmp_path: Path) -> None:
    master, slave = os.openpty()
    options = ["--sizes", "5,10", "--budget", "1s", "--out", str(tmp_path / "run")]
    command = [sys.executable, "-c", PROGRAM, "lab", "run", "square.mutex", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, text=True)
    os.close(slave)
    shown = b""
    # reading from a terminal that everybody has left is an input/output error
    with os.fdopen(master, "rb", buffering=0) as terminal, contextlib.suppress(OSError):
        while piece := terminal.read(65536):
            shown += piece
    stdout, _ = process.communicate()
    assert process.returncode == 0
    assert b"left: square.mutex n=" in shown
    assert "\x1b" not in stdout


@pytest.mark.long
def test_a_size_that_the_budget_cannot_hold_is_refused_with_an_estimate(tmp_path: Path) -> None:
    out = tmp_path / "run"
    asked = ["square.mutex", "--sizes", "1000000", "--budget", "5s", "--out", str(out)]
    done = fairlead("lab", "run", *asked)
    assert done.returncode == 2
    assert re.search(r"n=1000000 takes \d+ s or more \(n=\d+ took [\d.]+ s\).*give smaller", done.stderr)
    assert done.stderr.count("\n") == 1
    again = fairlead("lab", "run", "square.mutex", "--sizes", "5,6", "--budget", "1s", "--out", str(out))
    assert again.returncode == 0, "nothing of the refused run is in the way"


@pytest.mark.long
@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_demo_measures_the_three_ways_and_leaves_nothing_behind() -> None:
    done = fairlead("demo", "--rounds", "1", "--format", "json")
    assert done.returncode == 0, done.stderr
    ways = json.loads(done.stdout)["ways"]
    assert [way["name"] for way in ways] == [
        "CPython as it is",
        "sys.setswitchinterval(0.0005)",
        "fairlead run",
    ]
    assert all(way["rounds"] == 1 and 0 < way["median_s"] <= way["p99_s"] for way in ways)
