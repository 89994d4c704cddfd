"""``pytest --fairlead-gil`` in a pytest of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.ends

TESTS = """
import threading

def test_quiet():
    pass

def test_contended():
    ran = []
    def spin(n):
        while len(ran) < 4:  # each entry but the first took the GIL from a thread that did not stop
            if ran[-1:] != [n]:
                ran.append(n)
    threads = [threading.Thread(target=spin, args=(n,), name=f"spinner-{n}") for n in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()

def test_that_fails():
    assert False
"""


def run(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (directory / "test_it.py").write_text(TESTS)
    words = ["-m", "pytest", "-p", "fairlead.pytest_plugin", "-p", "no:cacheprovider"]
    command = [sys.executable, *words, *options]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_the_test_whose_threads_waited_is_named_with_both(tmp_path: Path, workers: list[str]) -> None:
    done = run(tmp_path, "--fairlead-gil", *workers)
    assert "1 failed, 2 passed" in done.stdout, done.stderr
    shown = done.stdout.partition("waits for the GIL")[2]
    [contended] = [line for line in shown.splitlines() if "test_it.py::test_contended  (" in line]
    assert " behind " in contended
    assert "spinner-" in contended


def test_without_the_option_nothing_is_observed_or_said(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert "1 failed, 2 passed" in done.stdout
    assert "waits for the GIL" not in done.stdout


def test_plugin_imports_nothing_before_it_is_asked() -> None:
    program = (
        "import sys, fairlead.pytest_plugin; print([n for n in sys.modules if n.startswith('fairlead.')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['fairlead.pytest_plugin']\n"
