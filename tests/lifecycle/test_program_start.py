"""What fairlead brings into a program before its first line: modules of its own, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest
from installed import Environment

from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

WAYS = {
    "run": ["run"],
    "children": ["run", "--children"],
    "serve": ["run", "--serve", "127.0.0.1:0"],
    "loops": ["run", "--loops"],
    "canary": ["run", "--canary", "1s"],
    "record": ["record", "-o", "out.flrec"],
    "both": ["record", "-o", "out.flrec", "--policy", "interactive", "--children"],
    "hook": [],
}
"""``hook``: by FAIRLEAD_GIL in the environment, where the hook is installed."""
MINE = ("types", "token", "copy", "operator", "ast", "keyword", "queue", "inspect", "dataclasses", "json",
        "enum", "re", "typing", "shlex", "shutil", "pathlib", "random", "signal", "asyncio")  # fmt: skip
"""Modules of the standard library that the start of a Python, or of a Python with -m, does without."""
MODULES = "import sys; print(*sorted(sys.modules))"
SUBINTERPRETER = f"""
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
made = interpreters.create()
interpreters.run_string(made, {MODULES!r})
interpreters.destroy(made)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = Environment(tmp_path_factory.mktemp("start") / "venv")
    done = made.fairlead("run", "--install-hook")
    assert done.returncode == 0, done.stderr
    return made


def started(way: str, environment: Environment, cwd: Path, *command: str | Path) -> list[str]:
    """The lines that the program says, when it is started so; "stock": without fairlead."""
    if way == "stock":
        done = environment.run(*command, cwd=cwd)
    elif way == "hook":
        done = environment.run(*command, cwd=cwd, FAIRLEAD_GIL="interactive")
    else:
        done = environment.fairlead(*WAYS[way], "--", environment.python, *command, cwd=cwd)
    assert done.returncode == 0, done.stderr
    says = {"record", "--serve"} & set(WAYS.get(way, []))  # where the recording is, or whom to ask
    assert done.stderr.count("\n") == len(says), done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("way", WAYS)
def test_a_program_begins_with_the_modules_of_a_stock_start_and_ours(
    way: str, environment: Environment, tmp_path: Path
) -> None:
    (stock,) = started("stock", environment, tmp_path, "-c", MODULES)
    (ours,) = started(way, environment, tmp_path, "-c", MODULES)
    more = set(ours.split()) - set(stock.split())
    assert {name for name in more if name.partition(".")[0] != "fairlead"} == set()
    assert "fairlead._probe" in more
    assert set(stock.split()) <= set(ours.split())


@pytest.mark.parametrize("way", WAYS)
def test_a_further_interpreter_begins_with_the_modules_of_a_stock_start(
    way: str, environment: Environment, tmp_path: Path
) -> None:
    stock = started("stock", environment, tmp_path, "-c", SUBINTERPRETER)
    assert started(way, environment, tmp_path, "-c", SUBINTERPRETER) == stock


@pytest.mark.parametrize("how", ["script", "module", "code", "console script", "child"])
@pytest.mark.parametrize("way", WAYS)
def test_modules_of_the_program_win_over_those_of_the_standard_library(
    way: str, how: str, environment: Environment, tmp_path: Path
) -> None:
    program = (
        "import sys\nfor name in sys.argv[1:]: print(name, getattr(__import__(name), 'whose', 'theirs'))\n"
    )
    child = (
        f"import os, sys; words = [sys.executable, '-c', {program!r}, *sys.argv[1:]]\n"
        "os.spawnv(os.P_WAIT, words[0], words)"
    )
    command = {
        "script": ["main.py"],
        "module": ["-m", "main"],
        "code": ["-c", program],
        "console script": ["console"],
        "child": ["-c", child],
    }[how]
    (tmp_path / "main.py").write_text(MODULES)
    (modules,) = started(
        "stock", environment, tmp_path, *(["-m", "main"] if how == "module" else ["-c", MODULES])
    )
    mine = set(MINE) - set(modules.split())
    assert {"token", "queue", "copy", "ast", "inspect", "dataclasses"} <= mine
    for name in mine:
        (tmp_path / f"{name}.py").write_text("whose = 'mine'\n")
    for name in ("main.py", "console"):
        (tmp_path / name).write_text(f"#!{environment.python}\n{program}")
    assert started(way, environment, tmp_path, *command, *mine) == [f"{name} mine" for name in mine]
