"""The hook that lets FAIRLEAD_GIL schedule programs: installed, on, off, removed, and with fairlead broken,
in a virtual environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.ends

NAME = "fairlead-gil.pth"
LOOK = "import fairlead.gil; print(fairlead.gil.scheduler().policy, fairlead.gil.scheduler().cpu_share)"
MAIN = "from fairlead.cli import main; main()"
LOADED = "import sys; print([name for name in sys.modules if name.startswith('fairlead')])"
scheduled = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


class Environment:
    """A virtual environment with the fairlead under test in it, as an installed wheel would be."""

    def __init__(self, place: Path) -> None:
        self.python = place / "bin" / "python"
        command = [sys.executable, "-m", "venv", "--without-pip", place]
        subprocess.run(command, check=True, capture_output=True, timeout=100)
        (self.site,) = place.glob("lib/python3*/site-packages")
        self.hook = self.site / NAME
        for name in ("fairlead", "click"):
            source = Path(str(import_module(name).__file__)).parent
            shutil.copytree(source, self.site / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("_native", "_probe"):  # beside the package's build, when its install is editable
            shutil.copy(str(import_module(f"fairlead.{name}").__file__), self.site / "fairlead")

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("FAIRLEAD", "PYTHON"))}
        command, where = [self.python, *arguments], {"cwd": self.site.parent, "env": environment | variables}
        return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, **where)

    def is_tidy(self) -> None:
        """Nothing half made is left."""
        assert [path.name for path in self.site.iterdir() if path.name.startswith(".")] == []

    def fairlead(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("-c", MAIN, "run", *arguments)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("hook") / "venv")


@pytest.fixture
def environment(installed: Environment) -> Iterator[Environment]:
    yield installed
    installed.hook.unlink(missing_ok=True)


@scheduled
def test_hook_is_off_until_installed_and_wanted_and_gone_when_removed(environment: Environment) -> None:
    assert environment.run("-c", LOOK, FAIRLEAD_GIL="interactive").stdout == "stock 0.05\n"
    done = environment.fairlead("--install-hook")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"hook installed: {environment.hook}\n")
    environment.is_tidy()
    for code, variables, says in (
        (LOADED, {}, "[]\n"),
        (LOADED, {"FAIRLEAD_GIL": ""}, "[]\n"),
        (LOOK, {"FAIRLEAD_GIL": "interactive"}, "interactive 0.05\n"),
        (LOOK, {"FAIRLEAD_GIL": "interactive", "FAIRLEAD_GIL_CPU_SHARE": ".5"}, "interactive 0.5\n"),
    ):
        ran = environment.run("-c", code, **variables)
        assert (ran.stdout, ran.stderr) == (says, "")
    isolated = environment.run("-E", "-c", LOOK, FAIRLEAD_GIL="interactive")
    assert (isolated.stdout, isolated.stderr) == ("stock 0.05\n", "")
    for says in "hook removed", "there was no hook":
        done = environment.fairlead("--remove-hook")
        assert (done.returncode, done.stdout) == (0, f"{says}: {environment.hook}\n")
        assert not environment.hook.exists()


@scheduled
def test_run_has_the_last_word_where_a_hook_is(environment: Environment) -> None:
    assert environment.fairlead("--install-hook").returncode == 0
    words = ["run", "--policy", "stock", "--", "python", "-c"]
    path = f"{environment.python.parent}{os.pathsep}{os.environ['PATH']}"
    done = environment.run("-c", MAIN, *words, LOADED, FAIRLEAD_GIL="interactive", PATH=path)
    assert "fairlead._probe" not in done.stdout, done.stderr


@scheduled
@pytest.mark.parametrize(
    ("variables", "broken", "text", "says"),
    [
        ({"FAIRLEAD_GIL": "best"}, "", None, "no policy 'best'"),
        ({"FAIRLEAD_GIL_CPU_SHARE": "30"}, "", None, "from .01 to .95"),
        ({"FAIRLEAD_GIL_CPU_SHARE": "x"}, "", None, "'x'"),
        ({}, "fairlead/gil/schedule/launched.py", "import sys; sys.exit(3)", "fairlead: "),
        ({}, "fairlead/gil/__init__.py", "this is no Python", "fairlead: "),
        ({}, "fairlead", None, "fairlead: "),
        ({}, "fairlead/_probe*.so", "garbage", "fairlead: "),
    ],
)
def test_wrong_words_and_a_broken_fairlead_are_one_line_and_the_program_runs(
    variables: dict[str, str], broken: str, text: str | None, says: str, environment: Environment
) -> None:
    assert environment.fairlead("--install-hook").returncode == 0
    files = list(environment.site.glob(broken)) if broken else []
    assert len(files) == bool(broken)
    for file in files:
        file.rename(file.with_name("whole"))
        if text is not None:
            file.write_text(text)
    try:
        done = environment.run("-c", "print('ran')", **{"FAIRLEAD_GIL": "interactive"} | variables)
    finally:
        for file in files:
            file.with_name("whole").replace(file)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert says in done.stderr
    assert (done.stderr[:10], done.stderr.count("\n")) == ("fairlead: ", 1)


def test_hook_that_cannot_be_put_there_is_one_line(environment: Environment) -> None:
    environment.hook.mkdir()
    try:
        for option in ("--install-hook", "--remove-hook"):
            done = environment.fairlead(option)
            assert (done.returncode, done.stdout) == (1, "")
            assert f"{environment.hook} cannot be " in done.stderr
            assert done.stderr.count("\n") == 1
    finally:
        environment.hook.rmdir()
    environment.is_tidy()


@pytest.mark.skipif(why_not() is None, reason="this interpreter can be scheduled")
def test_hook_is_not_installed_where_nothing_can_be_scheduled(environment: Environment) -> None:
    done = environment.fairlead("--install-hook")
    assert (done.returncode, done.stdout) == (1, "")
    assert "the hook was not installed: " in done.stderr
    assert done.stderr.count("\n") == 1
    assert not environment.hook.exists()


def test_hook_that_does_not_work_is_taken_away_again(environment: Environment) -> None:
    before_it = environment.site / "a.pth"
    before_it.write_text("import sys; sys._fairlead_gil = 1\n")  # as if it had run
    try:
        done = environment.fairlead("--install-hook")
    finally:
        before_it.unlink()
    assert (done.returncode, done.stdout) == (1, "")
    assert "the hook was not installed: " in done.stderr
    assert done.stderr.count("\n") == 1
    assert not environment.hook.exists()
