"""The command line: what it answers, how it fails, and with which status."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from fairlead import __version__


def fairlead(*args: str, **options: object) -> subprocess.CompletedProcess[str]:
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    program = "from fairlead.cli import main; main()"
    return subprocess.run([sys.executable, "-c", program, *args], text=True, check=False, **given)  # type: ignore[call-overload,no-any-return]


def test_version_is_the_package_version() -> None:
    assert fairlead("--version").stdout == f"fairlead {__version__}\n"


def test_doctor_as_json_describes_the_running_interpreter() -> None:
    answer = json.loads(fairlead("doctor", "--format", "json").stdout)
    assert answer["interpreters"][0]["path"] == sys.executable
    assert answer["machine"]["cores"] >= 1
    assert answer["extras"]["lab"]["installed"] == (not answer["extras"]["lab"]["missing"])


def test_doctor_as_text_names_every_interpreter_of_the_json() -> None:
    text = fairlead("doctor").stdout
    for interpreter in json.loads(fairlead("doctor", "--format", "json").stdout)["interpreters"]:
        assert interpreter["path"] in text


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
        done = fairlead("doctor", "--format", "json", stdout=full)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1


def test_output_to_a_closed_pipe_is_quiet() -> None:
    program = f"{sys.executable} -c 'from fairlead.cli import main; main()' doctor --format json | true"
    done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""
