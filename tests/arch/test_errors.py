"""Every public error has its section in docs/reference/errors.md, and is what the section says it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fairlead.errors
import fairlead.gil
from fairlead.errors import FairleadError

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "errors.md").read_text()
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S))


def every_error() -> dict[str, type[FairleadError]]:
    return {name: getattr(fairlead.errors, name) for name in fairlead.errors.__all__}


def test_every_error_has_a_section_and_a_docstring_that_ends_with_it() -> None:
    assert sorted(SECTIONS) == sorted(fairlead.errors.__all__)
    assert [name for name, error in every_error().items() if not error.__doc__] == []
    errors = every_error()
    del errors["FairleadError"]
    ends = {
        name: str(error.__doc__).rpartition("docs/reference/errors.md#")[2] for name, error in errors.items()
    }
    assert ends == {name: name.lower() for name in errors}


def test_all_names_every_class_of_the_module() -> None:
    every_error()  # three are made when they are asked for
    found = vars(fairlead.errors).items()
    classes = {name for name, value in found if isinstance(value, type) and issubclass(value, FairleadError)}
    assert classes == set(fairlead.errors.__all__)


def test_an_error_inherits_what_its_section_says() -> None:
    said = {
        (name, base.rpartition(".")[2])
        for name, text in SECTIONS.items()
        for sentence in re.findall(r"Also an? (.*?)\.\s", text, re.S)
        for base in re.findall(r"`([\w.]+)`", sentence)
    }
    assert len(said) > 25
    with_versions = {("QueueShutDown", "ShutDown"), ("BrokenPoolError", "BrokenExecutor")}
    errors = every_error()
    bases = {(name, base.__name__) for name, error in errors.items() for base in error.__mro__}
    assert said - with_versions <= bases


def test_every_public_name_of_gil_exists_and_has_a_docstring() -> None:
    assert [name for name in fairlead.gil.__all__ if not getattr(fairlead.gil, name).__doc__] == []
