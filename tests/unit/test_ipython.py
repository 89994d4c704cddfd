"""``%%gil``: what a cell's threads did with the GIL. tests/e2e/test_companions.py has IPython itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from fairlead import ipython
from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


class Shell:
    """What the extension uses of IPython's."""

    def __init__(self) -> None:
        self.magic: Callable[..., Any]
        self.names: dict[str, Any] = {}

    def register_magic_function(self, function: Callable[..., Any], kind: str, name: str) -> None:
        assert (kind, name) == ("line_cell", "gil")
        self.magic = function

    def run_cell(self, text: str, store_history: bool) -> SimpleNamespace:
        assert not store_history
        try:
            exec(text, self.names)
        except ZeroDivisionError as error:
            return SimpleNamespace(error_in_exec=error)
        return SimpleNamespace(error_in_exec=None)


def test_cell_is_run_and_its_threads_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell()
    ipython.load_ipython_extension(shell)
    lock = threading.Barrier(2)
    shell.names |= {"threading": threading, "lock": lock}
    cell = """
def spin():
    lock.wait()
    sum(range(300_000))
threads = [threading.Thread(target=spin, name=f"spinner-{n}") for n in (1, 2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
answer = 42
"""
    shell.magic("", cell)
    assert shell.names["answer"] == 42
    out = capsys.readouterr().out
    head, *rows = out.splitlines()
    assert head.split()[:4] == ["held", "waited", "longest", "thread,"]
    assert {row.split()[-1] for row in rows} >= {"spinner-1", "spinner-2"}


def test_line_is_run_and_an_error_of_the_cell_is_raised(capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell()
    ipython.load_ipython_extension(shell)
    shell.magic("answer = 6 * 7")
    assert shell.names["answer"] == 42
    with pytest.raises(ZeroDivisionError):
        shell.magic("", "1 / 0")
    assert "MainThread" in capsys.readouterr().out
