"""The hook that lets FAIRLEAD_GIL schedule programs: installed, on, off, removed, and with fairlead broken,
in a virtual environment of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import installed
import pytest
from installed import MAIN

from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.ends

NAME = "fairlead-gil.pth"
LOOK = "import fairlead.gil; print(fairlead.gil.scheduler().policy, fairlead.gil.scheduler().cpu_share)"
LOADED = "import sys; print([name for name in sys.modules if name.startswith('fairlead')])"
scheduled = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


class Environment(installed.Environment):
    """In which the hook is put and removed."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.hook = self.site / NAME

    def is_tidy(self) -> None:
        """Nothing half made is left."""
        assert [path.name for path in self.site.iterdir() if path.name.startswith(".")] == []


@pytest.fixture(scope="module")
def environment_made(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("hook") / "venv")


@pytest.fixture
def environment(environment_made: Environment) -> Iterator[Environment]:
    yield environment_made
    environment_made.hook.unlink(missing_ok=True)


@scheduled
def test_hook_is_off_until_installed_and_wanted_and_gone_when_removed(environment: Environment) -> None:
    assert environment.run("-c", LOOK, FAIRLEAD_GIL="interactive").stdout == "stock 0.05\n"
    done = environment.fairlead("run", "--install-hook")
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
        done = environment.fairlead("run", "--remove-hook")
        assert (done.returncode, done.stdout) == (0, f"{says}: {environment.hook}\n")
        assert not environment.hook.exists()


@scheduled
def test_run_has_the_last_word_where_a_hook_is(environment: Environment) -> None:
    assert environment.fairlead("run", "--install-hook").returncode == 0
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
    assert environment.fairlead("run", "--install-hook").returncode == 0
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
            done = environment.fairlead("run", option)
            assert (done.returncode, done.stdout) == (1, "")
            assert f"{environment.hook} cannot be " in done.stderr
            assert done.stderr.count("\n") == 1
    finally:
        environment.hook.rmdir()
    environment.is_tidy()


@pytest.mark.skipif(why_not() is None, reason="this interpreter can be scheduled")
def test_hook_is_not_installed_where_nothing_can_be_scheduled(environment: Environment) -> None:
    done = environment.fairlead("run", "--install-hook")
    assert (done.returncode, done.stdout) == (1, "")
    assert "the hook was not installed: " in done.stderr
    assert done.stderr.count("\n") == 1
    assert not environment.hook.exists()


def test_hook_that_does_not_work_is_taken_away_again(environment: Environment) -> None:
    before_it = environment.site / "a.pth"
    before_it.write_text("import sys; sys._fairlead_gil = 1\n")  # as if it had run
    try:
        done = environment.fairlead("run", "--install-hook")
    finally:
        before_it.unlink()
    assert (done.returncode, done.stdout) == (1, "")
    assert "the hook was not installed: " in done.stderr
    assert done.stderr.count("\n") == 1
    assert not environment.hook.exists()
