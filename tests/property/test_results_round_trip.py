"""Any sample survives its line, and any cut of any file costs at most the line that was cut."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from examples import share_of_examples
from hypothesis import given
from hypothesis import strategies as st

from fairlead.errors import RecordError
from fairlead.record.results import ResultsWriter, read_results
from fairlead.record.sample import STATUSES, Sample, parse

pytestmark = pytest.mark.once

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
content = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)
objects = st.dictionaries(st.text(), content, max_size=3)
amounts = st.none() | st.floats(min_value=0, max_value=1e12)
times = st.floats(min_value=1e-12, max_value=1e12)
whole = st.integers(min_value=0, max_value=2**63 - 1)
counts = st.none() | whole


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    status = draw(st.sampled_from(STATUSES))
    fields: dict[str, Any] = {
        "experiment": draw(st.text(min_size=1)), "params": {**draw(objects), "n": draw(whole) or 1},
        "interpreter": draw(objects), "environment": draw(objects), "status": status,
        "reason": draw(st.none() | st.text()), "round": draw(whole), "attempt": draw(whole),
        "started": draw(st.none() | st.datetimes().map(lambda when: when.isoformat())),
        "wall_s": draw(times if status == "ok" else amounts), "user_s": draw(amounts), "sys_s": draw(amounts),
        "cpu_percent": draw(amounts), "max_rss_kb": draw(counts), "sum_rss_kb": draw(counts),
        "ctx_voluntary": draw(counts), "ctx_involuntary": draw(counts), "details": draw(objects),
        "foreign_share": draw(st.none() | st.floats(min_value=0, max_value=1)),
    }  # fmt: skip
    return Sample(**fields)


@share_of_examples(0.3)
@given(samples())
def test_sample_through_json_is_itself(sample: Sample) -> None:
    assert Sample.from_json(parse(json.dumps(sample.to_json()))) == sample


@share_of_examples(0.5)
@given(content)
def test_from_json_of_anything_is_a_sample_or_one_clear_line(data: object) -> None:
    fault = ""
    try:
        assert isinstance(Sample.from_json(data), Sample)
    except RecordError as error:
        fault = str(error)
    assert "\n" not in fault


@share_of_examples(0.3)
@given(st.lists(samples(), min_size=1, max_size=3), st.data())
def test_file_cut_anywhere_keeps_every_line_before_the_cut(
    written: list[Sample], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "samples.jsonl")
        with ResultsWriter(path) as writer:
            for sample in written:
                writer.write(sample)
        whole = path.read_bytes()
        end = data.draw(st.integers(min_value=0, max_value=len(whole)))
        path.write_bytes(whole[:end])
        read = read_results(path, empty_ok=True)
        finished = whole[:end].count(b"\n")
        assert list(read.samples[:finished]) == written[:finished]
        with ResultsWriter(path) as writer:
            kept = writer.count
            assert kept == len(read.samples)
            writer.write(written[0])
        mended = read_results(path)
        assert list(mended.samples) == [*written[:kept], written[0]]
        assert mended.problems == ()
