"""Results files: what is written, what is read back, and what damage costs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from fairlead.errors import OutputError, RecordError
from fairlead.record.results import FILE_NAME, ResultsWriter, cell_key, read_results
from fairlead.record.sample import SCHEMA, Sample

pytestmark = pytest.mark.ends

INTERPRETER = {
    "name": "3.13",
    "executable": "/opt/python3.13",
    "version": "3.13.0",
    "gil": True,
    "jit": False,
}
MISSING = object()
ENVIRONMENT = {"machine": "x86_64", "kernel": "6.1", "cores": 2, "load": 0.5}


def sample(n: int = 100, **changes: Any) -> Sample:
    given: dict[str, Any] = {
        "experiment": "square.mutex",
        "params": {"n": n, "work": "sleep0"},
        "interpreter": INTERPRETER,
        "environment": ENVIRONMENT,
        "status": "ok",
        "wall_s": 0.25,
        **changes,
    }
    return Sample(**given)


def line(**changes: Any) -> bytes:
    return json.dumps({**sample().to_json(), **changes}).encode() + b"\n"


def write(path: Path, *samples: Sample) -> Path:
    with ResultsWriter(path) as writer:
        for one in samples:
            writer.write(one)
    return path


def test_read_results_returns_what_was_written_as_plain_json(tmp_path: Path) -> None:
    samples = (
        sample(50, details={"passes": [1, 2.5, None]}),
        sample(100, status="timeout", wall_s=None, reason="x"),
    )
    path = write(tmp_path / FILE_NAME, *samples)
    assert read_results(path).samples == samples
    assert read_results(tmp_path).samples == samples
    assert read_results(tmp_path).problems == ()
    text = write(tmp_path / "r.jsonl", sample(experiment="größe")).read_bytes()
    assert text.startswith(b'{"schema":2,')
    assert text.isascii()
    assert json.loads(text)["experiment"] == "größe"


def test_writer_continues_an_existing_file_and_completes_a_last_line_that_lacks_its_end(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "r.jsonl", sample(50))
    with ResultsWriter(path) as writer:
        assert writer.count == 1
        writer.write(sample(100))
        assert writer.count == 2
    assert [one.params["n"] for one in read_results(path).samples] == [50, 100]
    path = write(tmp_path / "torn.jsonl", sample(50), sample(100))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert len(read_results(path).samples) == 2
    with ResultsWriter(path) as writer:
        assert writer.count == 2
    assert path.read_bytes() == whole


def test_writer_refuses_other_files_and_a_second_writer(tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_bytes(b"years of work")
    with pytest.raises(OutputError, match=r"thesis\.txt: not a results file"):
        ResultsWriter(path)
    assert path.read_bytes() == b"years of work"
    path = tmp_path / "r.jsonl"
    with ResultsWriter(path), pytest.raises(OutputError, match="another run is writing to it"):
        ResultsWriter(path)
    ResultsWriter(path).close()
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OutputError, match="not a regular file"):
        ResultsWriter(tmp_path / "fifo")
    writer = ResultsWriter(tmp_path / "r.jsonl")
    writer.close()
    writer.close()


@pytest.mark.parametrize("name", ["missing/r.jsonl", "."])
def test_writer_names_the_place_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError, match=r"cannot be written .*; choose another place"):
        ResultsWriter(tmp_path / name)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"details": {"x": float("nan")}}, "details holds a number that is not finite"),
        ({"details": {"x": {1}}}, "details cannot be written as JSON"),
        ({"wall_s": float("inf")}, "wall_s is not a finite number"),
        ({"foreign_share": 1.5}, "foreign_share is not a share"),
    ],
)
def test_writer_refuses_a_sample_that_could_not_be_read_back(
    tmp_path: Path, changes: dict[str, Any], fault: str
) -> None:
    with ResultsWriter(tmp_path / "r.jsonl") as writer, pytest.raises(RecordError, match=fault):
        writer.write(sample(**changes))
    assert (tmp_path / "r.jsonl").read_bytes() == b""


def test_read_results_with_damaged_lines_names_each_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(
        line() + b"\0\0\0\n" + line() + b"{}\n" + b"\xff\xfe\n" + b"[1]\n\n" + line() + line()[:40]
    )
    results = read_results(path)
    assert len(results.samples) == 3
    assert results.problems == (
        f"{path}:2: not valid JSON; left out",
        f"{path}:4: schema is not a version number; left out",
        f"{path}:5: not valid JSON; left out",
        f"{path}:6: not a JSON object; left out",
        f"{path}:9: cut short; left out",
    )


def test_read_results_with_newer_lines_names_line_and_version(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(line() + line(schema=SCHEMA + 6, wall_s={"whatever": "came later"}))
    results = read_results(path)
    assert results.samples == (sample(),)
    (problem,) = results.problems
    assert problem.startswith(
        f"{path}:2: schema {SCHEMA + 6} is newer than this fairlead reads (up to {SCHEMA})"
    )
    path = tmp_path / "r.jsonl"
    path.write_bytes(line(schema=3))
    with pytest.raises(RecordError, match=r"r\.jsonl:1: schema 3 is newer than this fairlead reads"):
        read_results(path)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"schema": True}, "schema is not a version number"),
        ({"schema": 0}, "schema is not a version number"),
        ({"experiment": ""}, "experiment is not a name"),
        ({"params": []}, "params is not an object"),
        ({"params": {}}, "params holds no n"),
        ({"params": {"n": True}}, "params holds an n that is not a whole number from 1"),
        ({"params": {"n": 0}}, "params holds an n"),
        ({"params": {"n": 1.5}}, "params holds an n"),
        ({"status": "fine"}, "status is not one of ok, timeout"),
        ({"status": ["ok"]}, "status is not one of"),
        ({"wall_s": None}, 'wall_s of a sample whose status is "ok" is missing'),
        ({"wall_s": 0}, "too short to be a time"),
        ({"wall_s": 1e300}, "wall_s is not a finite number"),
        ({"ctx_voluntary": 2**63}, "ctx_voluntary is not a whole number"),
        ({"wall_s": "0.1"}, "wall_s is not a finite number"),
        ({"wall_s": True}, "wall_s is not a finite number"),
        ({"wall_s": -0.1}, "wall_s is not a finite number from 0"),
        ({"wall_s": 10**400}, "wall_s is not a finite number"),
        ({"max_rss_kb": 1.5}, "max_rss_kb is not a whole number"),
        ({"ctx_voluntary": -1}, "ctx_voluntary is not a whole number from 0"),
        ({"round": None}, "round is not a whole number"),
        ({"foreign_share": 1.01}, "foreign_share is not a share from 0 to 1"),
        ({"reason": 5}, "reason is not text"),
        ({"started": "yesterday"}, "started is not a time in ISO 8601"),
        ({"interpreter": "python"}, "interpreter is not an object"),
        *(
            ({name: MISSING}, f"{name} is missing")
            for name in ("experiment", "params", "interpreter", "environment", "status")
        ),
    ],
)
def test_from_json_with_a_wrong_or_missing_field_names_it(changes: dict[str, Any], fault: str) -> None:
    data = {**sample().to_json(), **changes}
    with pytest.raises(RecordError, match=fault):
        Sample.from_json({key: value for key, value in data.items() if value is not MISSING})


def test_from_json_ignores_later_keys_and_takes_a_skipped_sample_without_n() -> None:
    assert Sample.from_json({**sample().to_json(), "joules": 3.5}) == sample()
    skipped = sample(params={}, status="skipped", wall_s=None, reason="no fork on this system")
    assert Sample.from_json(skipped.to_json()) == skipped


@pytest.mark.parametrize("number", [b"NaN", b"-Infinity", b"1e999", b"9" * 5000])
def test_read_results_refuses_numbers_that_are_not_finite(tmp_path: Path, number: bytes) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(line().replace(b"0.25", number) + line())
    results = read_results(path)
    assert len(results.samples) == 1
    assert len(results.problems) == 1


def test_read_results_survives_odd_lines_and_counts_many(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"[" * 200_000 + b"\n" + line())
    assert read_results(path).problems == (f"{path}:1: not valid JSON; left out",)
    odd = sample(details={"schema": 1, "text": '{"schema":1', "inner": {"schema": 1}})
    path = write(tmp_path / "marks.jsonl", odd, odd)
    assert read_results(path).samples == (odd, odd)
    path = tmp_path / "r.jsonl"
    path.write_bytes(line() + b"rubbish\n" * 50)
    problems = read_results(path).problems
    assert len(problems) == 21
    assert problems[-1] == f"{path}: 30 more damaged lines; left out"


def test_read_results_takes_files_put_together_whatever_their_ends(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    # a whole file, one without its last end of line, one cut short, one from an editor that adds a mark
    path.write_bytes(
        line() + line(round=1)[:-1] + line(round=2)[:90] + line(round=3) + b"\r\n" + line(round=4)
    )
    results = read_results(path)
    assert [one.round for one in results.samples] == [0, 1, 3, 4]
    assert results.problems == (f"{path}:2: cut short; left out",)


def test_read_results_with_nothing_to_read_says_what_to_do_unless_that_is_all_right(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "run").mkdir()
    for name, fault in [
        ("none.jsonl", "no such file or directory; name a run's directory or results file"),
        ("empty.jsonl", "no samples"),
        ("binary", r"binary:1: not valid JSON; there is no sample in this file"),
        ("run", "no samples.jsonl in this directory"),
        ("empty.jsonl/below", "cannot be read"),
    ]:
        with pytest.raises(RecordError, match=fault):
            read_results(tmp_path / name)
    with pytest.raises(RecordError, match="a device"):
        read_results("/dev/zero")
    path = tmp_path / "r.jsonl"
    path.touch()
    assert read_results(path, empty_ok=True).samples == ()
    path.write_bytes(b'{"schema":1,"exp')
    assert read_results(path, empty_ok=True).problems == (f"{path}:1: cut short; left out",)


def test_cell_key_differs_with_what_makes_a_cell_alone() -> None:
    def key(name: str = "square.mutex", **changes: dict[str, Any]) -> object:
        known = {"params": {"n": 1, "work": "spin"}, "interpreter": INTERPRETER, "environment": ENVIRONMENT}
        return cell_key(name, *({**known[part], **changes.get(part, {})} for part in known))

    same = {"name": "3.13#2", "path": "/usr/bin/python3"}
    assert key() == key(interpreter=same, environment={"load": 9.0})
    others = [
        key("square.semaphore"), key(params={"n": 2}), key(params={"policy": "rr"}),
        key(interpreter={"version": "3.13.1"}), key(interpreter={"executable": "/opt/other"}),
        key(interpreter={"gil": False}), key(interpreter={"build": {"compiler": "GCC 13"}}),
        key(environment={"affinity": [0]}), key(environment={"kernel": "6.2"}),
        key(environment={"beside": 2}),
    ]  # fmt: skip
    assert len({key(), *others}) == 1 + len(others)


def test_a_line_of_version_1_is_read_as_the_time_until_all_were_joined(tmp_path: Path) -> None:
    old = line(
        schema=1, wall_s=0.25, user_s=0.1, sys_s=0.1, cpu_percent=80.0, details={"tail_s": 0.5, "passed": 9}
    )
    path = tmp_path / "r.jsonl"
    path.write_bytes(old + line(schema=1) + line())
    squared, plain, new = read_results(path).samples
    assert squared.wall_s == 0.75
    assert squared.details == {"passed": 9, "metrics": {"region_s": 0.25}}
    assert (squared.user_s, squared.sys_s, squared.cpu_percent) == (None, None, None)
    assert plain == new == sample()


def test_a_line_without_a_run_is_of_the_plan_beside_it_or_of_its_file(tmp_path: Path) -> None:
    old = {name: value for name, value in sample().to_json().items() if name != "run"}
    path = tmp_path / FILE_NAME
    path.write_bytes(json.dumps(old).encode() + b"\n" + line(run="named"))
    assert [one.run for one in read_results(path).samples] == [str(path), "named"]
    (tmp_path / "plan.json").write_text('{"run": "planned"}')
    assert [one.run for one in read_results(tmp_path).samples] == ["planned", "named"]
