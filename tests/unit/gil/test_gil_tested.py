"""Interpreters that are later than those that the GIL hooks were tested on."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import fairlead.gil
from fairlead.errors import UntestedInterpreterWarning
from fairlead.gil.observe import tested
from fairlead.gil.observe.access import why_not

NATIVE = Path(__file__).parents[3] / "native"


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The running release is one micro version later than all that were tested."""
    monkeypatch.setattr(tested, "_warned", False)
    monkeypatch.setitem(tested.TESTED, sys.version_info[:2], sys.version_info.micro - 1)
    monkeypatch.delenv(tested.VARIABLE, raising=False)


@pytest.mark.usefixtures("later")
def test_later_release_whose_frames_look_otherwise_is_warned_of_once_unless_it_is_accepted_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(tested.VARIABLE, ".".join(map(str, sys.version_info[:3])))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tested.warn(frames_checked=False)
    monkeypatch.setenv(tested.VARIABLE, "3.11.99")
    with pytest.warns(UntestedInterpreterWarning, match=f"CPython {platform.python_version()} is later"):
        tested.warn(frames_checked=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tested.warn(frames_checked=False)


@pytest.mark.usefixtures("later")
def test_later_release_that_looks_as_expected_is_not_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tested.warn(frames_checked=True)
        if why_not() is None:
            with fairlead.gil.observe():
                pass
    monkeypatch.delitem(tested.TESTED, sys.version_info[:2])
    with pytest.warns(UntestedInterpreterWarning, match="none of its version"):
        tested.warn(frames_checked=True)


@pytest.mark.skipif(
    shutil.which("cc") is None or sys.platform != "linux",
    reason="there is no C compiler, or no GIL hooks here",
)
@pytest.mark.parametrize(
    ("version", "number", "options", "refused"),
    [
        ("3.10.9", "0x030A0900", [], "is not one of the versions"),
        ("3.15.9", "0x030F0900", [], None),
        ("3.16.0", "0x031000F0", [], "-Duntested_interpreter=true"),
        ("3.16.0", "0x031000F0", ["-DFL_PROBE_UNTESTED=1"], None),
    ],
)
def test_version_that_is_later_than_all_known_is_refused_unless_asked_for(
    version: str, number: str, options: list[str], refused: str | None, tmp_path: Path
) -> None:
    (tmp_path / "Python.h").write_text(f'#include <features.h>\n#define PY_VERSION "{version}"\n')
    program = '#include "gil/interpreter/compat.h"\n#ifdef FL_PROBE_REFUSAL\nREFUSED FL_PROBE_REFUSAL\n#endif'
    define = f"-DPY_VERSION_HEX={number}"
    done = subprocess.run(
        ["cc", "-E", "-P", f"-I{tmp_path}", f"-I{NATIVE}", define, *options, "-"],
        input=program,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = [line for line in done.stdout.splitlines() if line.startswith("REFUSED")]
    assert bool(found) == (refused is not None)
    assert refused is None or refused in found[0]
