"""Every interpreter of this machine says correctly what it is."""

from __future__ import annotations

import os
import subprocess

import pytest
from interpreters import here

from fairlead.lab.catalogue.interpreters import Interpreter, discover

pytestmark = pytest.mark.once

FOUND = here().interpreters


@pytest.mark.parametrize("interpreter", FOUND, ids=lambda i: i.name)
def test_identified_interpreter_is_what_it_says(interpreter: Interpreter) -> None:
    program = (
        "import sys; print('%d.%d.%d' % tuple(sys.version_info[:3])); "
        "print('PyPy' if hasattr(sys, 'pypy_version_info') else 'CPython'); "
        "print(getattr(sys, '_is_gil_enabled', lambda: True)())"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    said = subprocess.run(
        [interpreter.path, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    assert interpreter.version.startswith(said[0])
    assert said[1:] == [interpreter.implementation, str(interpreter.gil)]
    assert interpreter.name.startswith(("2.", "3.", "pypy"))


@pytest.mark.parametrize("interpreter", [i for i in FOUND if i.free_threaded], ids=lambda i: i.name)
@pytest.mark.parametrize("gil", [False, True])
def test_identified_free_threaded_build_shows_the_gil_it_is_started_with(
    monkeypatch: pytest.MonkeyPatch, interpreter: Interpreter, gil: bool
) -> None:
    monkeypatch.setenv("PYTHON_GIL", str(int(gil)))
    found = {i.name: i for i in discover().interpreters}
    assert found[interpreter.name].gil is gil
    assert found.keys() == {i.name for i in FOUND}, "PYTHON_GIL must not keep other builds from starting"
