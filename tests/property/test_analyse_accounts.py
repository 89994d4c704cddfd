"""Whatever the samples, the summary accounts for each of them."""

from __future__ import annotations

import re

import pytest
from examples import share_of_examples
from hypothesis import given
from hypothesis import strategies as st

from fairlead.lab.analysis.summarise import summarise
from fairlead.record.sample import STATUSES, Sample

pytestmark = pytest.mark.once


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    status = draw(st.sampled_from(STATUSES))
    return Sample(
        experiment=draw(st.sampled_from(["square.mutex", "later.thing"])),
        params={"n": draw(st.integers(min_value=1, max_value=4)), "work": draw(st.sampled_from("ab"))},
        interpreter={"executable": draw(st.sampled_from("xy")), "version": "3.13.0"},
        environment={"hostname": draw(st.sampled_from("pq"))},
        status=status,
        reason=draw(st.none() | st.sampled_from(["why", "5 of 9 samples at n=1 failed"])),
        wall_s=draw(st.floats(min_value=1e-12, max_value=1e12)) if status == "ok" else None,
        foreign_share=draw(st.none() | st.floats(min_value=0, max_value=1)),
    )


def told(line: str) -> int:
    """How many samples a line of failures speaks of."""
    if failed := re.match(
        r"(\d+) of \d+ samples at n=\d (timed out|crashed|printed no result|failed): ", line
    ):
        return int(failed[1])
    skipped = re.match(r"(n=\d(?:, n=\d)*) not run(?: \((\d+) times\))?: ", line)
    assert skipped, line
    return int(skipped[2] or len(skipped[1].split(", ")))


@share_of_examples(0.5)
@given(st.lists(samples(), max_size=40))
def test_summarise_accounts_for_every_sample(given_samples: list[Sample]) -> None:
    summary = summarise(given_samples)
    assert summary.samples == sum(sample.status != "skipped" for sample in given_samples)
    measured = sum(len(cell.values) for series in summary.series for cell in series.cells)
    assert measured == sum(sample.status == "ok" for sample in given_samples)
    failed = sum(map(told, (line for series in summary.series for line in series.failures)))
    groups: dict[tuple[object, ...], list[Sample]] = {}
    for one in given_samples:
        who = (one.experiment, one.params["work"], one.interpreter["executable"], one.environment["hostname"])
        groups.setdefault(who, []).append(one)
    never_run = [group for group in groups.values() if all(one.status == "skipped" for one in group)]
    assert len(summary.series) == len(groups)
    assert sum(series.skipped is not None for series in summary.series) == len(never_run)
    # skipped for want of time, and measured when the run was continued
    made_up_for = [
        one
        for group in groups.values()
        for one in group
        if one.status == "skipped"
        and any(other.status != "skipped" and other.params == one.params for other in group)
    ]
    assert failed + sum(map(len, never_run)) + measured + len(made_up_for) == len(given_samples)
    assert all(one.skipped or one.cells for one in summary.series)
    assert all(len(cell.values) == len(cell.rounds) for one in summary.series for cell in one.cells)
