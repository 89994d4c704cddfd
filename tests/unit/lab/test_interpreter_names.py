"""Which interpreter a name means, and which ones make a contrast."""

from __future__ import annotations

import pytest
from interpreters import made

from fairlead.errors import InterpreterFailedError, UsageError
from fairlead.lab.catalogue.interpreters import Discovery, Interpreter, Rejected, contrast

pytestmark = pytest.mark.ends


def named(name: str, version: str, implementation: str = "CPython", *, free: bool = False) -> Interpreter:
    own = {"name": name, "path": f"/opt/{name}", "executable": f"/opt/real/{name}"}
    return made(version, implementation, free=free, build={"debug": name.endswith("d")}, **own)


FOUND = Discovery(
    interpreters=(
        named("3.11", "3.11.7"),
        named("2.7", "2.7.18"),
        named("3.9", "3.9.18"),
        named("3.13", "3.13.0"),
        named("3.13#2", "3.13.5"),
        named("3.13t", "3.13.1", free=True),
        named("3.14t", "3.14.0", free=True),
        named("3.15d", "3.15.0"),
        named("pypy2.7", "2.7.18", "PyPy"),
        named("pypy3.11", "3.11.13", "PyPy"),
    ),
    rejected=(Rejected(path="/opt/broken", reason="/opt/broken ended with status 1"),),
    leads_to={"/opt/link": "/opt/real/3.9"},
)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("3.13", "3.13"), ("3.13#2", "3.13#2"), ("3.13.5", "3.13#2"), ("python3.13", "3.13"),
        ("cpython3.9", "3.9"), ("CPython3.9.18", "3.9"), ("3.13t", "3.13t"), ("3.13.1t", "3.13t"),
        ("2", "2.7"), ("3", "3.13#2"), ("pypy", "pypy3.11"), ("PyPy3.11", "pypy3.11"), ("pypy2", "pypy2.7"),
        ("/opt/link", "3.9"),
    ],
)  # fmt: skip
def test_select_name_means_the_right_one(asked: str, name: str) -> None:
    assert FOUND.select(asked).name == name


@pytest.mark.parametrize("asked", ["3.14", "4", "", "python", "/opt/unknown", "3.13.1"])
def test_select_unknown_name_says_what_was_found(asked: str) -> None:
    with pytest.raises(UsageError, match=r"found: 3\.11, 2\.7, "):
        FOUND.select(asked)


def test_select_near_miss_or_rejected_program_says_what_is_the_matter() -> None:
    with pytest.raises(UsageError, match=r"did you mean 3\.13t\?"):
        FOUND.select("3.13tt")
    with pytest.raises(InterpreterFailedError, match="ended with status 1"):
        FOUND.select("/opt/broken")


def test_contrast_takes_running_newest_free_pypy_and_oldest() -> None:
    assert [i.name for i in contrast(FOUND)] == ["3.11", "3.13#2", "3.14t", "pypy3.11", "2.7"]
    alone = Discovery(interpreters=FOUND.interpreters[:1], rejected=(), leads_to={})
    assert [i.name for i in contrast(alone)] == ["3.11"]
