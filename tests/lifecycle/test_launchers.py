"""What starts a program in a roundabout way: it is scheduled and recorded all the same."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import fairlead

from fairlead.gil.observe.access import why_not

pytestmark = [pytest.mark.ends, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]
LOOK = "import fairlead.gil, sys; print(fairlead.gil.scheduler().policy, *sys.argv[1:])"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A program, and a sitecustomize of another library that a launcher puts first."""
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "sitecustomize.py").write_text("print('agent')")
    (tmp_path / "app.py").write_text(LOOK)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "says"), [("PYTHONPATH=agent", "agent\n"), ("-i", ""), ("-u PYTHONPATH", "")]
)
def test_first_line_that_sets_or_clears_the_environment_is_no_obstacle(
    words: str, says: str, place: Path
) -> None:
    script = place / "serve"
    script.write_text(f"#!/usr/bin/env -S {words} {sys.executable} -u\n{LOOK}")
    script.chmod(0o755)
    child = f"import subprocess; subprocess.run({[str(script), 'x']})"
    for command in ([str(script), "x"], [sys.executable, "-c", child]):
        for verb in (["run"], ["record", "-o", "out.flrec", "--policy", "interactive"]):
            ran = fairlead(*verb, "--children", "--", *command, cwd=place)
            assert (ran.returncode, ran.stdout) == (0, f"{says}interactive x\n"), ran.stderr


@pytest.mark.parametrize("words", [["env", "PYTHONPATH=agent"], ["env", "-i"]])
@pytest.mark.parametrize(
    "start", ["subprocess.run(words)", "os.waitpid(os.posix_spawnp(words[0], words, os.environ), 0)"]
)
def test_child_behind_env_is_scheduled_and_recorded(start: str, words: list[str], place: Path) -> None:
    code = f"import os, subprocess\nwords = {[*words, sys.executable, 'app.py', 'x']}\n{start}"
    says = "agent\n" if "PYTHONPATH=agent" in words else ""
    for verb in (["run"], ["record", "-o", "out.flrec", "--policy", "interactive"]):
        ran = fairlead(*verb, "--children", "--", sys.executable, "-c", code, cwd=place)
        assert (ran.returncode, ran.stdout) == (0, f"{says}interactive x\n"), ran.stderr
    assert len(list(place.glob("out.flrec*"))) == 2


@pytest.mark.parametrize(
    "words",
    [["nice"], ["timeout", "100"], ["xargs", "-a", "/dev/null"], ["sh", "-c", 'exec "$@"', "sh"], ["nohup"]],
)
def test_launcher_that_is_no_python_is_refused_or_followed(words: list[str], place: Path) -> None:
    command = [*words, sys.executable, "app.py", "x"]
    for verb in (["run"], ["record", "-o", "out.flrec", "--policy", "interactive"]):
        refused = fairlead(*verb, "--", *command, cwd=place)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert f"{words[0]} is no Python" in refused.stderr
        assert f"put fairlead {verb[0]} right before the python, or say --children" in refused.stderr
        assert refused.stderr.count("\n") == 1
        followed = fairlead(*verb, "--children", "--", *command, cwd=place)
        assert (followed.returncode, followed.stdout) == (0, "interactive x\n"), followed.stderr
