"""What the documents tell a reader to type works as it stands there.

In every Markdown file, the lines of a ``console`` block that begin with ``$ fairlead`` are run in order,
in an empty directory shared by all blocks of one file; a ``python`` block is saved as a file there and run
as a program of its own, as a reader does it, or after the comment ``<!-- file: NAME -->`` only written to
that file. A block after the comment
``<!-- not run: REASON -->`` is left out. Other programs' commands (make, pip) are CI's own.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import get_args

import pytest
from _pytest.mark import ParameterSet

from fairlead.gil.observe.counters import NAMES as COUNTERS
from fairlead.record import advice, gil_summary, server_advice
from fairlead.record.sample import Sample

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


RUNS = re.compile(r"^\$ fairlead (lab )?run |--budget ", re.MULTILINE)


def documents() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def by_length() -> list[ParameterSet]:
    """Documents whose commands measure something are long."""
    return [
        pytest.param(
            path,
            id=str(path.relative_to(ROOT)),
            marks=[pytest.mark.long] if RUNS.search(path.read_text(encoding="utf-8")) else [],
        )
        for path in documents()
    ]


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
@pytest.mark.parametrize("document", by_length())
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
            arguments,
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{document.name}:{step.line}: {step.text}\n{done.stdout}\n{done.stderr}"


def test_the_reference_of_results_names_every_field() -> None:
    text = (ROOT / "docs/reference/results-format.md").read_text(encoding="utf-8")
    for field in ["schema", *(field.name for field in fields(Sample))]:
        assert f"`{field}`" in text


def test_the_reference_of_records_names_every_field_and_counter() -> None:
    text = (ROOT / "docs/reference/gil-records.md").read_text(encoding="utf-8")
    records = (
        gil_summary.GilThread, gil_summary.Blame, gil_summary.StackLoss, gil_summary.Finding,
        gil_summary.GilTotals, gil_summary.GilSummary, gil_summary.Trust,
    )  # fmt: skip
    for field in [field.name for record in records for field in fields(record)]:
        assert f"`{field}`" in text, field
    for kind in get_args(gil_summary.FindingKind):
        assert f"`{kind}`" in text
    for name in COUNTERS.values():
        assert f"`fairlead_gil_{name}_total`" in text


def test_the_reference_of_advice_names_every_field() -> None:
    text = (ROOT / "docs/reference/advice.md").read_text(encoding="utf-8")
    records = (
        advice.Advice, advice.Work, advice.Candidate, advice.Curve, advice.Pick,
        server_advice.ServerCandidate,
    )  # fmt: skip
    for field in [field.name for record in records for field in fields(record)]:
        assert f"`{field}`" in text, field
