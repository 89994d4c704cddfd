"""tools/cross_compile.py reads the lists of files out of the build, and must go on finding all of them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

NATIVE = Path(__file__).parents[2] / "native"
TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "cross_compile.py"))


@pytest.mark.parametrize("system", ["linux", "macos", "windows"])
def test_files_of_the_core_are_found_in_the_build(system: str) -> None:
    files = TOOL["sources"](system)
    assert {"machine/fork.c", "sync/wait/waitq.c", f"machine/os/{system}.c"} <= set(files)
    assert [file for file in [*files, *TOOL["tests"](system)] if not (NATIVE / file).is_file()] == []


def test_files_of_both_extensions_and_of_each_platform_are_found_in_the_build() -> None:
    files = TOOL["extensions"]()
    assert files["_probe"] == ["gil/bind/module.c"]
    assert {"module/module.c", "sync/bind/locks/permits.c"} <= set(files["_native"])
    assert [file for named in files.values() for file in named if not (NATIVE / file).is_file()] == []
    used = {file for system in ("linux", "macos", "posix", "windows") for file in TOOL["sources"](system)}
    assert {f"machine/os/{path.name}" for path in (NATIVE / "machine/os").glob("*.c")} - used == set()


def test_headers_that_an_extension_includes_are_there_or_generated() -> None:
    files = [file for named in TOOL["extensions"]().values() for file in named]
    headers = [path for path in NATIVE.rglob("*.h") if NATIVE / "tests" not in path.parents]
    texts = [path.read_text() for path in [*(NATIVE / file for file in files), *headers]]
    included = {name for text in texts for name in re.findall(r'^#include "(.+?)"', text, re.MULTILINE)}
    missing = {name for name in included if not (NATIVE / name).is_file()}
    assert missing == set(TOOL["GENERATED"])
