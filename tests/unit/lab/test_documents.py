"""Each document stands for series that are there, at its sizes, and every published figure is in one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from interpreters import PYTHON

from fairlead.errors import UsageError
from fairlead.lab.catalogue import checks, documents, registry
from fairlead.lab.catalogue.documents import documents as known
from fairlead.lab.run.plan import Plan, RunOptions, make_plan
from fairlead.record.summary import Reference

pytestmark = pytest.mark.ends

NAMES = ("square", "battle", "party", "cases", "convoy")


def plan(name: str, mode: str = "full", **options: object) -> Plan:
    chosen = RunOptions(ids=(f"document:{name}",), mode=mode, **options)  # type: ignore[arg-type]
    return make_plan(chosen, [PYTHON], {"affinity": [0, 1]}, None)


def test_there_are_five_and_what_is_known_of_whose_they_are_is_said() -> None:
    assert tuple(known()) == NAMES
    assert [one.licence for one in known().values()] == ["CC-BY-4.0", "", "BSD-3-Clause", "", ""]
    assert [name for name, one in known().items() if not (one.author and one.address)] == ["cases"]
    assert all(one.title for one in known().values())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", checks.MODES)
def test_every_series_that_a_document_runs_is_in_one_of_its_tables(name: str, mode: str) -> None:
    tables = known()[name].tables
    shown = set()
    for series in plan(name, mode).series:
        found = [
            table.title
            for table in tables
            if table.experiment == series.experiment
            and any(its.items() <= series.params.items() for its in table.settings)
        ]
        assert found or series.params["cores"] == "all", series
        shown |= set(found)
    assert shown == {table.title for table in tables}


def test_a_document_is_run_at_its_own_sizes_but_for_a_quick_look() -> None:
    by_label = {
        (one.experiment, one.params["cores"], one.params["policy"]): one for one in plan("square").series
    }
    assert by_label["square.process-mutex", "one", "rr"].sizes == tuple(range(40, 361, 40))
    quick = registry.catalogue()["square.process-mutex"].variants[2].sizes["quick"]
    (looked_at,) = (
        one for one in plan("square", "quick").series if (one.policy, one.params["cores"]) == ("rr", "one")
    )
    assert looked_at.sizes == quick
    counted = [one for one in plan("convoy").series if one.experiment == "gil.countdown"]
    assert {one.params["steps"] for one in counted} == {100_000_000}
    assert [one.params["interval_ms"] for one in counted] == [5, 100, 10, 1, 0.1, 0.01, 0.001]
    quick_counts = [one for one in plan("convoy", "quick").series if one.experiment == "gil.countdown"]
    assert [(one.params["steps"], one.params["interval_ms"]) for one in quick_counts] == [
        (5_000_000, 5), (5_000_000, 0.01),
    ]  # fmt: skip


def test_every_published_figure_is_in_a_table_of_a_document() -> None:
    def is_in(reference: Reference, experiment: str) -> bool:
        return any(
            table.experiment == experiment
            and any(
                all(its.get(key, value) == value for key, value in reference.variant.items())
                for its in table.settings
            )
            for document in known().values()
            for table in document.tables
        )

    for experiment in registry.catalogue().values():
        for reference in experiment.subject.references:
            assert is_in(reference, experiment.id), (experiment.id, reference.label, reference.variant)


def test_every_claim_of_a_table_is_declared() -> None:
    experiments = registry.catalogue()
    for document in known().values():
        for table in document.tables:
            topics = {claim.topic for claim in experiments[table.experiment].claims}
            assert set(table.claims) <= topics, table.title


def test_documents_of_what_was_measured() -> None:
    assert [one.id for one in documents.repeated(["gil.sha256", "square.mutex"])] == ["square", "convoy"]
    assert documents.repeated(["gil.open-loop"]) == ()


def test_a_document_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="unknown document 'squre': there are square, battle, party"):
        registry.select(["document:squre"])


PAGE = (Path(__file__).parents[3] / "docs" / "tutorial" / "the-article.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+) \| (.*) \| (.*) \| (.*) \|$", PAGE, re.MULTILINE)


def test_the_page_names_each_document_as_the_file_does() -> None:
    (table,) = re.findall(r"^\| document \| author.*?(?=\n\n)", PAGE, re.MULTILINE | re.DOTALL)
    rows = table.splitlines()[2:]
    for row, document in zip(rows, known().values(), strict=True):
        assert row.endswith(f"| `fairlead lab run document:{document.id}` |")
        assert document.title in row
        assert (document.author or "not known to us") in row
        assert document.address in row
        assert document.licence in row
        assert f"\n$ fairlead lab run document:{document.id} --quick" in PAGE


def test_every_row_of_the_table_of_fidelity_is_y_or_a_sentence() -> None:
    assert [int(number) for number, _, _, _ in ROWS] == list(range(1, 73))
    for number, _, _, verdict in ROWS:
        assert (
            verdict == "y" or verdict.startswith(("y: ", "y, ")) or re.fullmatch(r"[A-Z].{20,}\.", verdict)
        ), number


def test_experiments_variants_and_claims_that_the_page_names_are_there() -> None:
    experiments = registry.catalogue()
    groups = {one.subject.group for one in experiments.values()}
    name = re.compile(r"`((?:square|cured|gil|models|party)\.[a-z-]+)\*?`")
    words = {word for row in ROWS for cell in row for word in name.findall(cell)}
    assert {word for word in words if word not in experiments and word.rstrip("-") not in groups} == set()
    labels = {variant.label for one in experiments.values() for variant in one.variants}
    named = {name for _, _, cell, _ in ROWS if "variant" in cell for name in re.findall(r"\*([^*]+)\*", cell)}
    columns = {metric.title for one in experiments.values() for metric in one.subject.metrics}
    topics = {claim.topic for one in experiments.values() for claim in one.claims}
    assert named - labels - columns - topics == set()
