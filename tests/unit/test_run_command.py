"""``fairlead run``: the words it refuses, and how it tells a Python. What it does is tests/lifecycle's."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from commands import here

from fairlead.cli.record import default_name
from fairlead.errors import UsageError
from fairlead.gil.observe.programs import starting

pytestmark = pytest.mark.ends


@pytest.fixture(autouse=True)
def _stays_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def execve(*_: object) -> NoReturn:
        raise AssertionError("the program was started")

    for start in ("execve", "posix_spawn"):
        monkeypatch.setattr(os, start, execve)
    monkeypatch.chdir(tmp_path)
    for variable in ("FAIRLEAD_GIL", "FAIRLEAD_GIL_CPU_SHARE"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "app.py").write_text("")
    (tmp_path / "app.sh").write_text("")
    (tmp_path / "shell.sh").write_text("#!/usr/bin/env sh\n")
    (tmp_path / "shell.sh").chmod(0o755)
    (tmp_path / "notes").write_text("no recording")
    os.mkfifo(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("words", "says", "status"),
    [
        ("run", "name the program after --: fairlead run", 2),
        ("run --", "name the program after --: fairlead run", 2),
        ("run -- {nothing}", "name the program after --: fairlead run", 2),
        ("record -- {nothing} app.py", "name the program after --: fairlead record", 2),
        ("run --polcy fair -- app.py", "--polcy (did you mean --policy?) (see: fairlead run", 2),
        ("run --polcy=stock -- app.py", "has no option --polcy=stock (did you mean --policy?)", 2),
        ("record --sample -- app.py", "has no option --sample (see: fairlead record --help)", 2),
        ("top --evry 1s -- app.py", "fairlead top has no option --evry (did you mean --every?)", 2),
        ("rum -- app.py", "there is no command 'rum' (did you mean run?) (see: fairlead --help)", 2),
        ("server", "there is no command 'server' (see: fairlead --help)", 2),
        ("--server", "No such option '--server' (see: fairlead --help)", 2),
        ("run -- no-such-program", "No such file or directory on PATH; give its path, as ./no-", 2),
        ("run -- ./no-such.sh", "cannot be started: No such file or directory", 2),
        ("run -- ./app.sh", "Permission denied; make it executable, or name its interpreter", 2),
        ("run -- /", "cannot be started: Is a directory", 2),
        ("run -- true", "put fairlead run right before the python, or say --children to schedule", 1),
        ("run -- env X=1 true", "true is no Python, nor a script of one", 1),
        ("run -- env", "env is no Python, nor a script of one", 1),
        ("run -- env -C / python app.py", "env is no Python, nor a script of one", 1),
        ("run -- env X=1 no-such-program", "no-such-program cannot be started: No such file", 2),
        ("run -- env X=1 {python} -I app.py", "-I ignores PYTHONPATH", 1),
        ("record -- true", "put fairlead record right before the python, or say --children to record", 1),
        ("run -- ./shell.sh", "shell.sh (run by sh) is no Python, nor a script of one: put fairlead run", 1),
        ("top -- true", "nor a script of one: put fairlead top right before the python\n", 1),
        ("record -- env X=1 true", "true is no Python, nor a script of one", 1),
        ("record --children --pid 1", "--children is for a program that is started", 2),
        ("run -- {python} -I app.py", "-I ignores PYTHONPATH", 1),
        ("run -- {python} -X utf8 -W error -uS app.py", "-uS ignores PYTHONPATH", 1),
        ("run --policy best -- app.py", "'best' is not one of", 2),
        ("run --policy", "'--policy' requires an argument", 2),
        ("run --cpu-share much -- app.py", "'much' is not a valid float", 2),
        ("run --cpu-share 30 -- app.py", "cpu_share is from .01 to .95, not 30: .05 keeps 5 % of the GIL", 2),
        ("run --cpu-share nan -- app.py", "cpu_share is from .01 to .95, not nan", 2),
        ("run --timer-slack 2 -- app.py", "timer_slack is from 1e-9 to 1 second, not 2", 2),
        ("run --policy stock --cpu-share .5 -- app.py", "--cpu-share goes with --policy interactive", 2),
        ("run --canary 1ms -- app.py", "--canary is from 100ms to 1h, not 0.001 s", 2),
        ("run --canary 5s --policy stock -- app.py", "leave out --policy stock", 2),
        ("run --for 5s -- app.py", "--for goes with --pid", 2),
        ("run --pid 1 -- app.py", "leave out the command", 2),
        ("run --pid 1 --canary 5s", "leave out the command, --canary", 2),
        ("ctl status", "Missing option '--pid'", 2),
        ("ctl 1234 status", "name the process by its option: fairlead ctl --pid 1234 status", 2),
        ("ctl --pid 1 restart", "'restart' is not one of", 2),
        ("run --install-hook -- app.py", "--install-hook and COMMAND exclude each other", 2),
        ("run --remove-hook --policy stock", "--policy and --remove-hook exclude each other", 2),
        ("run --install-hook --remove-hook", "--install-hook and --remove-hook exclude each other", 2),
        ("record --cpu-share .4 -- app.py", "--cpu-share goes with --policy interactive", 2),
        ("record --policy interactive --pid 1", "--policy is for a program that is started", 2),
        ("record --policy interactive --cpu-share 2 -- app.py", "from .01 to .95", 2),
        ("run --stalled-after 5s -- python", "--stalled-after goes with --serve", 2),
        ("run --busy-after 5s -- python", "--busy-after goes with --serve", 2),
        ("run --token-file x -- python", "--token-file goes with --serve", 2),
        ("run --serve example.org:80 -- python", "not an address to serve at", 2),
        ("run --serve 0.0.0.0:80 -- python", "give --token-file", 2),
        ("run --serve 0.0.0.0:80 --token-file /no/it -- python", "be read from /no/it: No such file", 2),
        ("run --serve 0 --stalled-after 1ms -- python", "--stalled-after is in seconds", 2),
        ("run --serve 0 --pid 1", "leave out the command, --canary, --if-possible", 2),
        ("record -o no/where.flrec -- app.py", "cannot be written", 1),
        ("record -o notes -- app.py", "notes exists and is not a recording", 1),
        ("record -o pipe -- app.py", "pipe is a device or a pipe", 1),
        ("record -- no-such-program", "cannot be started", 2),
        ("record -- {python} -W error -uE app.py", "-uE ignores PYTHONPATH", 1),
        ("record --pid 1 -- app.py", "leave out the command", 2),
        ("record --pid 4194304", "there is no process", 2),
        ("record --threshold soon -- app.py", "'soon' is not a time", 2),
        ("top --pid 1 -- app.py", "leave out the command", 2),
    ],
)
def test_what_cannot_be_run_is_one_line_and_the_program_is_not_started(
    words: str, says: str, status: int, tmp_path: Path
) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    ran = here(*(word.format(python=sys.executable, nothing="") for word in words.split()))
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (status, "", 1)
    assert says in ran.stderr
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "stem"),
    [("python app.py", "app"), ("python -c print(1)", "program"), ("python -c " + "pass;" * 99, "program")],
)
def test_recording_has_a_name_that_a_shell_takes(words: str, stem: str) -> None:
    assert re.fullmatch(rf"{stem}-\d{{8}}-\d{{6}}.flrec", default_name(words.split()))


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("FAIRLEAD_GIL", "best", "Invalid value for FAIRLEAD_GIL, in the environment: 'best' is not one of"),
        ("FAIRLEAD_GIL_CPU_SHARE", "2", "from .01 to .95"),
    ],
)
def test_wrong_default_from_the_environment_is_one_line_that_names_it(
    variable: str, value: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    ran = here("run", "--", "app.py")
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert says in ran.stderr


PYTHON3 = str(shutil.which("python3"))


@pytest.mark.parametrize(
    ("head", "interpreter", "environment"),
    [
        ("#!/usr/bin/python3 -I\n", ["/usr/bin/python3", "-I"], {"A": "1"}),
        ("#! /opt/pypy3.11\n", ["/opt/pypy3.11"], {"A": "1"}),
        ("#!/usr/bin/env python3\n", [PYTHON3], {"A": "1"}),
        ("#!/usr/bin/env -S A=b python3 -u\n", [PYTHON3, "-u"], {"A": "b"}),
        (f"#!/usr/bin/env -S -i {PYTHON3} -u\n", [PYTHON3, "-u"], {}),
        ("#!/usr/bin/env -S -u A python3\n", [PYTHON3], {}),
        (
            "#!/bin/sh\n'''exec' \"/a b/python3\" \"$0\" \"$@\"\n' '''\n",
            ["/a b/python3", "$0", "$@"],
            {"A": "1"},
        ),
        ("#!/bin/sh\nexec python3 app.py\n", None, {"A": "1"}),
        ("#!/usr/bin/perl\n", None, {"A": "1"}),
        ("#!/usr/bin/env\n", None, {"A": "1"}),
        ('#!"unbalanced\n', None, {"A": "1"}),
        ("#!", None, {"A": "1"}),
        ("", None, {"A": "1"}),
        ("\x7fELF", None, {"A": "1"}),
    ],
)
def test_interpreter_of_a_script_and_its_environment_are_read_from_its_head(
    head: str, interpreter: list[str] | None, environment: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "script"
    script.write_text(head)
    script.chmod(0o755)
    found = starting.read([str(script), "x"], {"A": "1", "PATH": os.environ["PATH"]})
    assert found.python == (interpreter and [*interpreter, str(script), "x"])
    assert {name: value for name, value in found.environment.items() if name != "PATH"} == environment


def test_python_by_another_name_is_one_by_what_the_name_leads_to(tmp_path: Path) -> None:
    (tmp_path / "py").symlink_to(sys.executable)
    assert starting.read([str(tmp_path / "py"), "x"]).python == [str(tmp_path / "py"), "x"]


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        (["env", "B=2"], {"A": "1", "B": "2"}),
        (["env", "-i", "B=2"], {"B": "2"}),
        (["env", "-", "--"], {}),
        (["env", "-u", "A", "B="], {"B": ""}),
        (["env", "--unset=A"], {}),
        (["/usr/bin/env", "A=2", "env", "B=2"], {"A": "2", "B": "2"}),
        (["env", "-S", "B=2 C='3 4'"], {"A": "1", "B": "2", "C": "3 4"}),
    ],
)
def test_env_is_done_and_not_run(words: list[str], environment: dict[str, str]) -> None:
    command = starting.read([*words, sys.executable, "x=y"], {"A": "1"})
    assert command.environment == environment
    assert command.python == [sys.executable, "x=y"]


def test_program_of_env_is_looked_for_in_the_path_that_env_sets(tmp_path: Path) -> None:
    (tmp_path / "py").symlink_to(sys.executable)
    assert starting.read(["env", f"PATH={tmp_path}", "py"]).python == [str(tmp_path / "py")]


@pytest.mark.parametrize(
    ("mark", "maker"), [(b"MEI\014\013\012\013\016", "PyInstaller"), (b"NUITKA_ONEFILE_PARENT", "Nuitka")]
)
@pytest.mark.parametrize("verb", ["run", "record"])
def test_packed_program_is_refused_by_name_even_with_children(
    mark: bytes, maker: str, verb: str, tmp_path: Path
) -> None:
    packed = tmp_path / "packed"
    packed.write_bytes(b"\x7fELF" + bytes(5000) + mark + bytes(88))
    packed.chmod(0o755)
    why = starting.read([str(packed)]).refusal(verb, children=True)
    assert why is not None
    assert why.startswith(f"{packed} was packed by {maker} and ignores PYTHONPATH")
    assert why.endswith(f"call fairlead.gil.{starting.WORDS[verb].verb}() in the program")


def test_file_that_may_not_be_executed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "serve").write_text("#!/usr/bin/python3\n")
    with pytest.raises(UsageError, match="Permission denied"):
        starting.read([str(tmp_path / "serve")])


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("-I app.py", "-I"),
        ("-uE app.py", "-uE"),
        ("-W ignore -S app.py", "-S"),
        ("-Wignore -X dev -E app.py", "-E"),
        ("--check-hash-based-pycs always -I app.py", "-I"),
        ("-s -P -u app.py -I", None),
        ("-W I app.py", None),
        ("-WI app.py", None),
        ("-m pkg -I", None),
        ("-uc code -I", None),
        ("- -I", None),
        ("-X", None),
        ("", None),
    ],
)
def test_option_that_keeps_us_out_is_found_where_python_reads_options(words: str, option: str | None) -> None:
    assert starting.ignored_path(["python", *words.split()]) == option


@pytest.mark.parametrize(("family", "hint"), [([], ""), ([7, 8], "; --children gives the order to 2 more")])
def test_ctl_of_a_process_that_takes_no_orders_is_one_line_that_knows_its_children(
    family: list[int], hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(*_: object) -> NoReturn:
        raise UsageError("takes no orders")

    module = importlib.import_module("fairlead.cli.ctl")
    monkeypatch.setattr(module, "scheduled_family", lambda _: family)
    monkeypatch.setattr(module, "send", send)
    ran = here("ctl", "--pid", 1, "status")
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert f"takes no orders{hint}" in ran.stderr
