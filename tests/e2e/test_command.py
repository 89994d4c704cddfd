"""The command line: what it answers, how it fails, and with which status."""

from __future__ import annotations

import contextlib
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import click
import jsonschema
import programs
import pytest
from commands import exit_status, fairlead, python

from fairlead import __version__, cli, errors
from fairlead.gil.observe.access import why_not
from fairlead.lab.catalogue import registry
from fairlead.lab.doctor import Examination, examine
from fairlead.lab.isolation.stop import Stop

pytestmark = pytest.mark.once

PROGRAM = "from fairlead.cli import main; main()"
FEW_ROUNDS = (
    "from fairlead.lab.run import runner, sampling; sampling.AT_MOST = 6; runner.ATTEMPTS = 1\n" + PROGRAM
)
"""Ends by its number of samples, long before its budget: what is in the run does not depend on the load."""
Said = tuple[int, str, str]
Ask = Callable[..., Said]


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


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """The command in this process: its status, and what it says on either stream."""

    def ask(*words: object) -> Said:
        return exit_status(*map(str, words)), *capsys.readouterr()

    return ask


def is_refused(said: Said, status: int, *words: str) -> bool:
    """In one line on standard error that has these words."""
    assert (said[:2], said[2].count("\n")) == ((status, ""), 1), said
    assert said[2].startswith("fairlead: ")
    assert [word for word in words if word not in said[2]] == []
    return True


def shell(script: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """With the command in the place of {fairlead}."""
    command = f"{sys.executable} -c '{PROGRAM}'"
    return subprocess.run(
        ["sh", "-c", script.format(fairlead=command)], capture_output=True, text=True, check=False, **options
    )


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.RunInterruptedError("stopped", signal.SIGTERM), 143),
        (errors.RunInterruptedError("stopped", signal.SIGINT), 130),
        (click.Abort(), 130),
        (errors.UsageError("wrong words"), 2),
        (errors.RecordError("damaged"), 1),
    ],
    ids=["SIGTERM", "SIGINT", "Ctrl-C", "usage", "failure"],
)
def test_status_says_how_a_command_ended(
    error: Exception, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(**_: object) -> None:
        raise error

    monkeypatch.setattr(cli.root, "main", command)
    with pytest.raises(SystemExit) as ended:
        cli.main([])
    assert ended.value.code == status
    assert capsys.readouterr().err == f"fairlead: {str(error) or 'interrupted'}\n"


def test_version_is_the_package_version() -> None:
    assert fairlead("--version").stdout == f"fairlead {__version__}\n"


@pytest.fixture(scope="module")
def examination() -> Examination:
    """What ``fairlead doctor`` finds: it starts every interpreter, and that is once enough."""
    with Stop() as stop:
        return examine(stop)


@pytest.fixture
def doctor(examination: Examination, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What it says, on a terminal of so many columns."""

    def doctor(*words: str, columns: int = 100) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr("fairlead.cli.doctor.examine", lambda _: examination)
        status, shown, _ = ask("doctor", *words)
        assert status == 0
        return shown

    return doctor


def test_doctor_as_json_has_this_interpreter_the_yield_probe_and_what_experiments_lack(
    doctor: Callable[..., str],
) -> None:
    answer = json.loads(doctor("--format", "json"))
    assert answer["interpreters"][0]["path"] == sys.executable
    assert answer["machine"]["cores"] >= 1
    assert answer["extras"]["lab"]["installed"] == (not answer["extras"]["lab"]["missing"])
    allowed = answer["real_time"]["allowed"]
    assert answer["yield_probe"].keys() == ({"other", "rr"} if allowed else {"other"})
    assert answer["yield_probe"]["other"]["yield"]["alone_us"] > 0
    assert answer["experiments"].keys() >= {"square.mutex", "square.process-mutex"}
    lacking = answer["experiments"]["square.process-mutex"]["lacking"]
    assert any("SCHED_RR" in line for line in lacking) == (not allowed)


def test_doctor_says_in_fifteen_lines_what_can_be_done_here_and_why_not_the_rest(
    doctor: Callable[..., str],
) -> None:
    answer = json.loads(doctor("--format", "json"))
    lines = doctor().splitlines()
    assert len(lines) <= 15
    assert [*answer["abilities"]][:6] == ["record", "run", "record --pid", "advise", "lab", "lab, SCHED_RR"]
    for name, found in answer["abilities"].items():
        (line,) = [line for line in lines if line.startswith(f"{name}  ")]
        assert line.removeprefix(name).split()[0] == ("yes" if found["can"] else "no")
        assert found["remark"]
    for one in answer["interpreters"]:
        assert f" {one['name']}" in " ".join(lines)
        assert one["path"] in doctor("-v")


@pytest.mark.parametrize(("words", "columns"), [([], 40), (["-v"], 60)])
def test_doctor_keeps_to_the_width_of_the_terminal(
    words: list[str], columns: int, doctor: Callable[..., str]
) -> None:
    lines = doctor(*words, columns=columns).splitlines()
    assert [line for line in lines if len(line) > columns and " " in line.strip()] == []


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
        done = python("-c", hide + PROGRAM, *words)
        assert done.returncode == status, done.stderr
        assert 'pip install "fairlead[lab]"' in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_list_as_json_says_what_can_be_varied_and_what_can_run_here(ask: Ask) -> None:
    entries = {entry["id"]: entry for entry in json.loads(ask("lab", "list", "--format", "json")[1])}
    assert list(entries) == list(registry.catalogue())
    signal, trace = entries["gil.signal"], entries["gil.trace"]
    assert (signal["family"], signal["can_run"], signal["reason"]) == ("gil", True, None)
    assert signal["parameters"]["interval_ms"]["choices"] == [0.5, 5, 50]
    assert signal["metrics"][0]["name"] == "delay_s"
    assert signal["requirements"] == {"python": ">=2.7", "needs": []}
    assert trace["requirements"] == {"python": ">=3.11", "needs": ["fairlead"]}
    assert "2.7" in trace["interpreters"]
    for name, reason in trace["interpreters"].items():
        assert (reason is None) == (not name.startswith(("2.7", "3.6", "3.7", "3.8", "3.9", "3.10")))


def test_list_is_a_screen_and_of_what_is_named_says_what_can_be_varied(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ask("lab", "list")[1].splitlines()
    assert len(lines) <= 50
    for name in ("square.mutex", "gil.convoy", "models.io-*", "party.fib"):
        assert sum(line.startswith(f"{name}  ") for line in lines) == 1
    _, one, _ = ask("lab", "list", "gil.convoy")
    assert "interval_ms" in one
    assert "'1 CPU thread, scheduled'" in one
    assert ask("lab", "list", "gil.convoi")[0] == 2
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, ask("lab", "list", "gil")[1].splitlines())) <= 60


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nope", "nope"),
        ("lab nope", "nope"),
        ("doctor --format xml", "xml"),
        ("doctor surplus", "surplus"),
        ("lab run nope", "unknown experiment 'nope'"),
        ("lab run square.mutx", "did you mean square.mutex?"),
        ("lab run --interpreter 1.4", "no interpreter '1.4' here"),
        ("lab run --sizes 5,many", "'many' is not a whole number"),
        ("lab run --sizes 0", "at least 1"),
        ("lab run --cpus 0,x", "'x' is not a core"),
        ("lab run --cpus 9999", "core 9999 is not one"),
        ("lab run --budget soon", "'soon' is not a time"),
        ("lab run --resume", "--out"),
        ("lab run --resume --out x --quick", "keeps its plan"),
        ("lab run --contrast --all-interpreters", "exclude each other"),
        ("lab run --quick --full", "exclude each other"),
        ("lab run --work spin --set work=yield", "work is set 2 times"),
        ("lab run --set work=spin --set work=spin", "work is set 2 times"),
        ("lab run square.mutex --set wrok=spin", "no experiment named has this parameter; there are work"),
        ("lab run square.mutex --set work=spn", "work='spn' is not known (did you mean spin?)"),
        ("lab run square.mutex --set work", "write NAME=VALUE"),
        ("lab run gil.convoy --variant alon", "'alone'"),
    ],
)
def test_wrong_words_are_one_line_and_status_2(
    words: str, said: str, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_refused(ask(*words.split()), 2, said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [[], ["lab"]])
def test_command_without_arguments_shows_its_help_and_ends_with_status_2(words: list[str], ask: Ask) -> None:
    _, shown, _ = ask(*words, "--help")
    assert ask(*words) == (2, "", shown)


@pytest.mark.parametrize(
    ("script", "status", "stderr"),
    [
        (
            "{fairlead} lab list > /dev/full",
            1,
            "fairlead: the output cannot be written: No space left on device\n",
        ),
        ("{fairlead} lab list >&-", 1, "fairlead: the output cannot be written: Bad file descriptor\n"),
        ("{fairlead} nope 2>&-", 2, ""),
        ("{fairlead} lab list | true", 0, ""),
    ],
)
def test_output_that_cannot_be_written_is_one_line_or_none(script: str, status: int, stderr: str) -> None:
    done = shell(script)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", stderr)


def test_run_names_a_place_that_cannot_be_reached(tmp_path: Path, ask: Ask) -> None:
    # as a directory of another user cannot; a name that is too long fails for root, too
    place = tmp_path / ("x" * 300)
    said = ask("lab", "run", "square.mutex", "--quick", "--out", place)
    assert is_refused(said, 1, f"fairlead: {place}", "File name too long")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run of the real experiment, as small as it gets."""
    out = tmp_path_factory.mktemp("lab") / "run"
    asked = ("square.mutex", "--quick", "--sizes", "5,10,20", "--budget", "5m", "--out", str(out))
    done = python("-c", FEW_ROUNDS, "lab", "run", *asked)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"Report: {out}/report.html"
    assert "passing a lock" in done.stdout
    assert "calibrating" in done.stderr
    return out


def test_run_writes_plan_samples_and_report(run: Path) -> None:
    assert {path.name for path in run.iterdir()} == {"plan.json", "samples.jsonl", "report.html"}
    assert (run / "report.html").read_text().startswith("<!DOCTYPE html>")
    for line in (run / "samples.jsonl").read_text().splitlines():
        sample = json.loads(line)
        assert sample["environment"]["yield_probe"]["yield"]["alone_us"] > 0
        assert sample["elapsed_s"] > (sample["wall_s"] or 0)


@pytest.mark.long
def test_run_whose_table_cannot_be_shown_still_writes_the_page(tmp_path: Path) -> None:
    done = shell(
        "{fairlead} lab run square.mutex --sizes 5,10 --budget 1s --out run > /dev/full", cwd=tmp_path
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1,
        "fairlead: the output cannot be written: No space left on device",
    )
    assert (tmp_path / "run" / "report.html").read_text().endswith("</html>")


@pytest.mark.parametrize(
    ("command", "form"),
    [("report", "csv"), *product(("report", "compare"), ("text", "html", "json"))],
)
def test_report_and_comparison_in_every_form_and_to_a_file_are_the_same(
    run: Path, tmp_path: Path, ask: Ask, command: str, form: str
) -> None:
    names = ("one", "three", "two") if command == "compare" else ("alone",)
    for name in names:
        (tmp_path / "gathered" / name).mkdir(parents=True)
        shutil.copy(run / "samples.jsonl", tmp_path / "gathered" / name)
    source = tmp_path / "gathered" / ("" if command == "compare" else "alone")
    status, shown, _ = ask("lab", command, source, "--format", form)
    assert status == 0
    if command == "compare" and form != "text":
        assert [name for name in names if f"gathered/{name}" not in shown] == []
    file = tmp_path / f"report.{form}"
    assert ask("lab", command, source, "-o", file)[0] == 0
    assert shown.rstrip("\n") == file.read_bytes().decode().rstrip("\n")


def test_report_as_json_gives_samples_median_and_fit_and_for_pyperf_what_it_compares(
    run: Path, ask: Ask, tmp_path: Path
) -> None:
    answer = json.loads(ask("lab", "report", run, "--format", "json")[1])
    schema = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "site" / "results_schema.py"))
    jsonschema.validate(answer, json.loads(schema["text"]()))
    assert {result["params"]["n"] for result in answer["results"]} == {5, 10, 20}
    for result in answer["results"]:
        assert result["samples"] > 0
        assert result["median"] > 0
        assert result["fit"].keys() >= {"exponent", "low", "high", "model"}
    file = tmp_path / "suite.json"
    assert ask("lab", "report", run, "--format", "pyperf", "-o", file)[0] == 0
    done = python("-m", "pyperf", "compare_to", file, file)
    assert done.returncode == 0, done.stderr
    assert "square.mutex" in done.stdout


def test_report_of_a_damaged_file_shows_the_rest_and_ends_with_status_1(
    run: Path, tmp_path: Path, ask: Ask
) -> None:
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes((run / "samples.jsonl").read_bytes()[:-40])
    status, shown, said = ask("lab", "report", damaged)
    assert (status, said.count("\n")) == (1, 1)
    assert "passing a lock" in shown
    assert "damaged.jsonl:" in said


def test_compare_of_a_run_with_itself_shows_no_change(run: Path, ask: Ask) -> None:
    status, shown, _ = ask("lab", "compare", run, run)
    assert status == 0
    rows = [line.split() for line in shown.splitlines() if re.match(r" +(\d+ +a|b)  ", line)]
    assert [row[0] for row in rows] == ["5", "b", "10", "b", "20", "b"]
    assert all("1.00" in row for row in rows if row[0] == "b")
    assert "faster" not in shown
    assert "slower" not in shown
    (series,) = json.loads(ask("lab", "compare", run, run, "--format", "json")[1])["series"]
    assert [(cell["n"], cell["ratio"]) for cell in series["cells"]] == [(5, 1.0), (10, 1.0), (20, 1.0)]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("compare {run}", 2, "one run has nothing to be compared with: name two or more"),
        ("report {absent}", 1, "no such file or directory"),
        ("compare {absent} {absent}", 1, "no such file or directory"),
        ("report {run} {absent}", 1, "no such file or directory"),
        ("compare {run} {absent}", 1, "no such file or directory"),
        ("report {run} -o {absent}/report.html", 1, "cannot be written (No such file or directory)"),
    ],
)
def test_results_or_places_that_are_not_there_are_one_line(
    run: Path, tmp_path: Path, ask: Ask, words: str, status: int, said: str
) -> None:
    absent = tmp_path / "absent"
    assert is_refused(
        ask("lab", *(word.format(run=run, absent=absent) for word in words.split())), status, said
    )


def test_run_in_a_terminal_shows_a_bar(tmp_path: Path) -> None:
    master, slave = os.openpty()
    options = ["--quick", "--sizes", "5,6", "--budget", "5m", "--out", str(tmp_path / "run")]
    program = "from fairlead.lab.run import sampling; sampling.ENOUGH = 1\n" + FEW_ROUNDS.replace(
        "= 6", "= 1"
    )
    command = [sys.executable, "-c", program, "lab", "run", "square.mutex", *options]
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
    done = fairlead("lab", "run", "square.mutex", "--sizes", "1000000", "--budget", "5s", "--out", out)
    assert done.returncode == 2
    assert re.search(r"n=1000000 takes \d+ s or more \(n=\d+ took [\d.]+ s\).*give smaller", done.stderr)
    assert done.stderr.count("\n") == 1
    asked = ("square.mutex", "--sizes", "5,6", "--budget", "5m", "--out", out)
    again = python("-c", FEW_ROUNDS, "lab", "run", *asked)
    assert again.returncode == 0, "nothing of the refused run is in the way"


@pytest.mark.long
@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_demo_measures_the_three_ways_and_leaves_nothing_behind() -> None:
    done = fairlead("demo", "--rounds", "1", "--format", "json")
    assert done.returncode == 0, done.stderr
    ways = json.loads(done.stdout)["ways"]
    assert [way["name"] for way in ways] == [
        "CPython as it is",
        "switch interval 0.5 ms",
        "fairlead run",
    ]
    assert all(way["rounds"] == 1 and 0 < way["median_s"] <= way["p99_s"] for way in ways)
    assert all(way["calls_per_s"] > 0 and way["steps_beside_calls_per_s"] > 0 for way in ways)
