"""What the build makes: the content of a wheel, and the extension with the portable platform file."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import fairlead
from fairlead import _native
from fairlead.cli.root import COMMANDS

CLONE = Path(__file__).parents[2]

needs_build_tools = pytest.mark.skipif(
    importlib.util.find_spec("mesonpy") is None or importlib.util.find_spec("ninja") is None,
    reason="meson-python and ninja are not installed in this environment",
)


def run(*command: str | Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=CLONE, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel() -> set[str]:
    """The files of the wheel that this environment's fairlead was installed from."""
    for path in (Path(sys.prefix) / "wheel").glob("*.whl"):
        with zipfile.ZipFile(path) as archive:
            return set(archive.namelist())
    pytest.skip("fairlead was not installed from a wheel; in the environments of make test-all it is")


def test_wheel_has_every_file_of_the_package(wheel: set[str]) -> None:
    source = CLONE / "src"
    wanted = {
        str(path.relative_to(source))
        for path in (source / "fairlead").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted - wheel == set()
    assert "fairlead/py.typed" in wheel


def test_wheel_has_the_extension_and_nothing_that_is_only_for_the_clone(wheel: set[str]) -> None:
    package = {name for name in wheel if name.startswith("fairlead/")}
    assert f"fairlead/{Path(_native.__file__).name}" in package
    assert {Path(name).suffix for name in package} & {".c", ".h", ".build", ".a", ".o", ".pyc"} == set()
    assert {name for name in wheel if name.startswith(("tests", "native"))} == set()


def test_wheel_has_a_man_page_of_every_command(wheel: set[str]) -> None:
    pages = {Path(name).stem for name in wheel if "/data/share/man/man1/" in name}
    assert {"fairlead", *(f"fairlead-{command}" for command in COMMANDS)} <= pages


@needs_build_tools
@pytest.mark.nightly
@pytest.mark.timeout(120)
def test_extension_with_the_portable_platform_says_what_it_cannot(tmp_path: Path) -> None:
    build = tmp_path / "build"
    run(sys.executable, "-m", "mesonbuild.mesonmain", "setup", "-Dplatform=posix", build)
    extension = build / "native" / Path(_native.__file__).name
    run(sys.executable, "-m", "ninja", "-C", build, extension.relative_to(build))
    program = f"""
import errno, importlib.machinery, importlib.util
loader = importlib.machinery.ExtensionFileLoader("fairlead._native", {str(extension)!r})
native = importlib.util.module_from_spec(importlib.util.spec_from_loader("fairlead._native", loader))
loader.exec_module(native)
assert native.cores().affinity == native.cores().online
assert native.process_usage().user_ns > 0
try:
    native.thread_usage()
except OSError as error:
    print(error.errno == errno.ENOTSUP, error)
"""
    assert run(sys.executable, "-c", program) == (
        "True [Errno 95] this system keeps no accounts per thread; use process_usage()\n"
    )


def test_version_is_the_same_everywhere() -> None:
    (citation,) = re.findall(r"^version: (.*)$", (CLONE / "CITATION.cff").read_text(), re.MULTILINE)

    assert {importlib.metadata.version("fairlead"), citation} == {fairlead.__version__}
