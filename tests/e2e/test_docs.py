"""What the documents tell a reader to type works as it stands there.

In every Markdown file, the lines of a ``console`` block that begin with ``$ fairlead`` are run in order,
in an empty directory shared by all blocks of one file; a ``python`` block is saved as a file there and run
as a program of its own, as a reader does it, or after the comment ``<!-- file: NAME -->`` only written to
that file. A block after the comment
``<!-- not run: REASON -->`` is left out. Other programs' commands (make, pip) are CI's own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import get_args

import pytest
from commands import python

from fairlead.gil.observe.counters import NAMES as COUNTERS
from fairlead.lab.catalogue import registry
from fairlead.lab.catalogue.declared import Declared
from fairlead.record import advice, gil_summary, server_advice
from fairlead.record.sample import Sample
from fairlead.record.summary import Metric

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"(?P<skip><!-- not run: [^>]+ -->\s*)?(?:<!-- file: (?P<file>[\w.]+) -->\s*)?"
    r"^```(?P<kind>console|python)\n(?P<body>.*?)^```",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Step:
    kind: str
    text: str
    line: int
    file: str | None = None


def documents() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def steps(document: Path) -> Iterator[Step]:
    text = document.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        if block["skip"]:
            continue
        line = text.count("\n", 0, block.start("body")) + 1
        if block["kind"] == "python":
            yield Step("python", block["body"], line, block["file"])
            continue
        for offset, typed in enumerate(block["body"].splitlines()):
            if typed.startswith("$ fairlead"):
                command, _, _ = typed.removeprefix("$ ").partition("  #")
                yield Step("command", command, line + offset)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_everything_a_document_says_to_type_works(document: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for step in steps(document):
        if step.file is not None:
            (tmp_path / step.file).write_text(step.text, encoding="utf-8")
            continue
        if step.kind == "python":
            (tmp_path / f"listing_{step.line}.py").write_text(step.text, encoding="utf-8")
            arguments = [sys.executable, f"listing_{step.line}.py"]
        else:
            arguments = shlex.split(step.text)
        done = subprocess.run(
            arguments, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{document.name}:{step.line}: {step.text}\n{done.stdout}\n{done.stderr}"


def names(*records: type) -> set[str]:
    return {field.name for record in records for field in fields(record)}


NAMED = {
    "results-format.md": {"schema"} | names(Sample),
    "gil-records.md": {
        *names(gil_summary.GilThread, gil_summary.Blame, gil_summary.StackLoss, gil_summary.Finding),
        *names(gil_summary.GilTotals, gil_summary.GilSummary, gil_summary.Trust),
        *get_args(gil_summary.FindingKind),
        *(f"fairlead_gil_{name}_total" for name in COUNTERS.values()),
    },
    "advice.md": {
        *names(advice.Advice, advice.Work, advice.Candidate, advice.Curve, advice.Pick),
        *names(server_advice.ServerCandidate),
    },
}


@pytest.mark.parametrize("page", NAMED)
def test_the_reference_of_records_names_every_field_and_counter(page: str) -> None:
    text = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    assert {name for name in NAMED[page] if f"`{name}`" not in text} == set()


KEYS = {
    "Keys": set(registry.KEYS),
    "Parameters": names(registry.Parameter),
    "Variants": names(registry.Variant),
    "Claims": names(Declared),
    "Calibrated": names(registry.Calibration),
    "Metrics": names(Metric),
    "Cases": set(registry.OF_A_CASE),
}


def test_the_reference_of_the_declaration_lists_every_key() -> None:
    text = (ROOT / "docs" / "reference" / "declaration.md").read_text(encoding="utf-8")
    for heading, keys in KEYS.items():
        (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == keys, heading


def test_the_page_on_own_functions_shows_the_example() -> None:
    text = (ROOT / "docs" / "how-to" / "measure-your-own.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert shown == (ROOT / "examples" / "my_scaling.py").read_text(encoding="utf-8")


def test_the_example_experiment_of_contributing_is_read_and_runs(tmp_path: Path) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    path = tmp_path / "square_condition.py"
    path.write_text(program, encoding="utf-8")
    shutil.copy(registry.DIRECTORY / "probe.py", tmp_path)
    assert registry.load(path).id == "square.condition"
    result = json.loads(python(path, json.dumps({"n": 5})).stdout)
    assert result["details"]["awake"] == 5
    assert result["wall_s"] > 0
