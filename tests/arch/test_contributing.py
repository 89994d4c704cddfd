"""The files that CONTRIBUTING.md says a change touches exist, name the example, and are counted right."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from poolkinds import KINDS

from fairlead import pools
from fairlead.gil.observe import tested

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LISTS = PAGE[PAGE.index("## Where a new thing goes") : PAGE.index("## Make a release")]
EXAMPLES = {
    "a primitive": (
        "### A primitive",
        {"ROOM": "coordination", "NAME": "rate"},
        r"\brate(_|limiter|\.|s\b)|_rate\b",
    ),
    "a pool kind": ("### A pool kind", {"MODULE": "asynchronous", "NAME": "async"}, "async"),
    "an experiment": ("### An experiment", {"NAME": "gil_open_loop"}, "gil.open-loop"),
    "an export of a recording": ("Of a recording", {"NAME": "gecko"}, "firefox"),
    "an export of the lab": ("Of the lab", {"NAME": "pyperf"}, "pyperf"),
    "a CPython version": ("### A CPython version", {}, r"3\.15|030F|\(3, 15\)"),
}
"""Where the list of each change begins, what the words in capitals stand for, and what names the example."""

REFERRED_TO = {
    "native/sync/wait/waitq.h",
    "src/fairlead/pools/engine/contract.py",
    "tests/arch/test_layers.py",
}
"""Files that a list points to and that a change of its kind need not touch."""


def steps(heading: str) -> str:
    """The numbered steps under a heading."""
    found = re.search(rf"^{heading}(?s:.*?)\n((?:(?:\d\. |   ).*\n)+)", LISTS, re.MULTILINE)
    assert found is not None, f"there is no list under {heading!r}"
    return found[1]


def touched(change: str) -> tuple[list[str], list[str]]:
    """The files that the list of this change names: those that are new, and those that are extended."""
    heading, stands_for, _ = EXAMPLES[change]
    new, extended = [], []
    for path in re.findall(r"`([\w./-]+(?:\{h,c\})?)`", steps(heading)):
        if not ("/" in path or path.endswith((".md", ".toml", ".yml"))) or path in REFERRED_TO:
            continue
        names = [path.replace("{h,c}", ending) for ending in ("h", "c")] if "{h,c}" in path else [path]
        for name in names:
            is_new = "NAME" in name or "MODULE" in name
            for word, meaning in stands_for.items():
                name = name.replace(word, meaning)
            (new if is_new else extended).append(name)
    return new, list(dict.fromkeys(extended))


@pytest.mark.parametrize("change", EXAMPLES)
def test_files_that_a_change_touches_exist_name_the_example_and_are_counted_by_the_table(change: str) -> None:
    new, extended = touched(change)
    assert new + extended
    assert [path for path in new + extended if not (ROOT / path).is_file()] == []
    example = re.compile(EXAMPLES[change][2], re.IGNORECASE)
    assert [path for path in extended if not example.search((ROOT / path).read_text("utf-8"))] == []
    new, extended = touched(change)
    assert re.search(rf"^\| {change} \| .* \| {len(new)} \| {len(extended)} \|$", LISTS, re.MULTILINE), (
        f"{change}: {len(new)} new files, {len(extended)} to extend: {new} {extended}"
    )


def test_files_of_some_changes_exist_and_the_newest_version_is_the_example() -> None:
    named = re.findall(r"^Only if .*?(?=\n\n)", LISTS, re.MULTILINE | re.DOTALL)
    paths = [path for text in named for path in re.findall(r"`([\w./]+/[\w.]+)`", text)]
    assert len(paths) >= 4
    assert [path for path in [*paths, *REFERRED_TO] if not (ROOT / path).is_file()] == []
    assert max(tested.TESTED) == (3, 15), "a newer version is known: make it the example of CONTRIBUTING.md"


def test_every_kind_of_pool_runs_the_interface_tests() -> None:
    """But for "auto", which is one of the others, and "dask", whose tests make a cluster first."""
    missing = set(pools.kinds()) - set(KINDS) - {"auto", "dask"}
    assert missing == (set() if sys.version_info >= (3, 13) else {"interpreters"})
