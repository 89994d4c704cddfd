"""Discovery among programs that lie, crash, hang and link to each other."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from programs import interpreter, living, script

from fairlead.errors import InterpreterFailedError, RunInterruptedError
from fairlead.lab.catalogue import identify as identify_module
from fairlead.lab.catalogue.identify import identify
from fairlead.lab.catalogue.interpreters import Discovery, choose_interpreters, discover, running
from fairlead.lab.isolation import subprocess_runner
from fairlead.lab.isolation.stop import Stop

pytestmark = pytest.mark.once


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory, and a PATH with nothing on it but what shell scripts need."""
    for name in ("PYENV_ROOT", "XDG_DATA_HOME", "UV_PYTHON_INSTALL_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(identify_module, "IDENTIFY_TIMEOUT_S", 60.0)
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sleep", "env"):
        (tools / tool).symlink_to(f"/bin/{tool}")
    monkeypatch.setenv("PATH", str(tools))
    return tmp_path


def names(found: Discovery) -> list[str]:
    return [interpreter.name for interpreter in found.interpreters[1:]]


@pytest.mark.usefixtures("home")
def test_discover_empty_machine_finds_the_running_one_as_it_is_started() -> None:
    found = discover()
    assert [i.path for i in found.interpreters] == [sys.executable]
    assert found.running == running()
    assert found.running.version == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.parametrize(
    ("variable", "place"),
    [
        ("", "tools/python3.99"),
        ("", ".pyenv/versions/3.99.1/bin/python"),
        ("", ".local/share/uv/python/cpython-3.99.1-linux/bin/python3.99"),
        ("", ".local/share/pythons/bin/python3.99"),
        ("PYENV_ROOT", "moved/versions/3.99.1/bin/python"),
        ("XDG_DATA_HOME", "moved/uv/python/cpython-3.99/bin/python"),
        ("UV_PYTHON_INSTALL_DIR", "moved/cpython-3.99/bin/python"),
    ],
)
def test_discover_every_place_is_searched_also_one_moved_by_a_variable(
    home: Path, monkeypatch: pytest.MonkeyPatch, variable: str, place: str
) -> None:
    if variable:
        monkeypatch.setenv(variable, str(home / "moved"))
    interpreter(home / place)
    assert names(discover()) == ["3.99"]


def test_discover_names_what_differs_and_finds_what_is_the_same(home: Path) -> None:
    count = home / "count"
    program = interpreter(home / ".pyenv/versions/3.99.1/bin/python3.99")
    program.write_text(program.read_text().replace("echo noise", f"echo x >> {count}"))
    (home / "tools/python3").symlink_to(program)
    (home / "tools/python3.99m").hardlink_to(program)
    assert names(discover()) == ["3.99"]
    assert count.read_text() == "x\n"


def test_discover_two_programs_of_one_kind_get_different_names(home: Path) -> None:
    interpreter(home / "tools/python3.99")
    interpreter(home / ".local/share/pythons/bin/python3.99", "3.99.2")
    assert names(discover()) == ["3.99", "3.99#2"]


def test_discover_wrapper_of_the_running_one_is_the_running_one(home: Path) -> None:
    script(home / "tools/python3", f'exec {sys.executable} "$@"')
    found = discover()
    assert names(found) == []
    assert found.select("python3") == found.running


def test_discover_other_names_are_not_run(home: Path) -> None:
    for name in ("python-config", "python3.99-gdb.py", "pythonw.exe", "bpython"):
        script(home / f"tools/{name}", f": > {home}/ran")
    (home / "tools/python3.98").write_text("not executable")
    discover()
    assert not (home / "ran").exists()


def test_choose_by_path_runs_no_other_program(home: Path) -> None:
    script(home / "tools/python3.98", f": > {home}/ran")
    wanted = interpreter(home / "mine/python3.99")
    with Stop() as stop:
        (chosen,) = choose_interpreters([str(wanted)], all_found=False, contrasted=False, stop=stop)
    assert (chosen.name, chosen.path) == ("3.99", str(wanted))
    assert not (home / "ran").exists()
    with Stop() as stop:
        choose_interpreters(["3.99", str(wanted)], all_found=False, contrasted=False, stop=stop)
    assert (home / "ran").exists(), "a name may mean any of them"


def test_discover_pyenv_shim_is_not_run_unless_asked_for(home: Path) -> None:
    real = interpreter(home / ".pyenv/versions/3.99.1/bin/python3.99")
    shim = script(home / ".pyenv/shims/python3.99", f': > {home}/ran\nexec {real} "$@"')
    os.environ["PATH"] += f":{shim.parent}"
    assert names(discover()) == ["3.99"]
    assert not (home / "ran").exists()
    found = discover([str(shim)])
    assert found.select(str(shim)).path == str(real)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("echo oops >&2; exit 7", "ended with status 7: oops"),
        ("kill -SEGV $$", "ended by SIGSEGV"),
        ("echo 'fairlead: {]'", "does not answer as one"),
        ("echo 'fairlead: [1]'", "does not answer as one"),
        ("echo 'fairlead: {\"version\": 3}'", "does not answer as one"),
        ("head -c 3000000 /dev/zero 2>/dev/null || :", "does not answer as one"),
    ],
)
def test_discover_program_that_is_no_interpreter_is_rejected_with_the_reason(
    home: Path, text: str, reason: str
) -> None:
    program = script(home / "tools/python3.99", text)
    found = discover()
    assert [r.path for r in found.rejected] == [str(program)]
    with pytest.raises(InterpreterFailedError, match=reason):
        found.select(str(program))
    assert living(str(program)) == []


def test_identify_program_that_hangs_is_ended_after_its_time(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is nearly over once it has begun, however long that took."""
    begun, limit = home / "begun", identify_module.IDENTIFY_TIMEOUT_S
    now = lambda: time.monotonic() + (limit - 0.1) * begun.exists()  # noqa: E731
    clock = SimpleNamespace(monotonic=now, sleep=time.sleep)
    monkeypatch.setattr(subprocess_runner, "time", clock)
    hangs = f"trap '' TERM; sleep 1000 & : > {begun}; echo; while :; do :; done"
    program = script(home / "tools/python3.99", hangs)
    with pytest.raises(InterpreterFailedError, match=f"no answer within {limit:g} s"):
        identify(str(program))
    assert living(str(program)) == []


def test_identify_program_that_cannot_be_started_says_why(home: Path) -> None:
    with pytest.raises(InterpreterFailedError, match="cannot be started as an interpreter: No such file"):
        identify(str(home / "absent"))


def test_discover_stopped_by_a_signal_ends_what_hangs(home: Path) -> None:
    program = script(home / "tools/python3.99", f"kill -INT {os.getpid()}; sleep 1000")
    with Stop() as stop, pytest.raises(RunInterruptedError):
        discover(stop=stop)
    assert living(str(program)) == []


@pytest.mark.parametrize("place", ["PYENV_ROOT", "XDG_DATA_HOME", "UV_PYTHON_INSTALL_DIR", "a program"])
def test_discover_passes_over_places_and_programs_that_cannot_be_read(
    home: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    # as another user's home cannot; a name that is too long fails for root, too
    if place == "a program":
        (home / "tools/python3.98").symlink_to(home / ("x" * 300))
    else:
        monkeypatch.setenv(place, str(home / ("x" * 300)))
    interpreter(home / "tools/python3.99")
    assert names(discover()) == ["3.99"]
