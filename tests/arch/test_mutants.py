"""The mutants of tools/mutants.toml can be planted, and name tests that exist. TOML has each name once."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
MUTANTS = tomllib.loads((ROOT / "tools" / "mutants.toml").read_text("utf-8"))


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_can_be_planted_and_names_tests_that_exist(name: str) -> None:
    mutant = MUTANTS[name]
    assert set(mutant) == {"file", "old", "new", "why", "tests"}
    assert mutant["old"] != mutant["new"]
    assert (ROOT / mutant["file"]).read_text("utf-8").count(mutant["old"]) == 1
    assert mutant["tests"]
    for test in mutant["tests"]:
        file, _, function = test.partition("::")
        path = ROOT / file
        assert path.exists(), test
        assert not function or re.search(
            rf"^ *(async )?def {function.partition('[')[0]}\b", path.read_text("utf-8"), re.M
        ), test
