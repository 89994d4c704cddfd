"""An advice on file and in reports: nothing is lost, and nothing in a name is obeyed."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from advices import advice, candidate

from fairlead.errors import OutputError, RecordError
from fairlead.record.advice import AdvicePlan, Candidate, Kind, dumps, is_advice, load
from fairlead.report.advice import html as advice_html
from fairlead.report.advice import json as advice_json
from fairlead.report.advice import text as advice_text

pytestmark = pytest.mark.ends


def test_advice_survives_its_file_where_programs_look_for_it(tmp_path: Path) -> None:
    made = advice()
    file = tmp_path / "runs" / "a.json"
    made.save(file)
    assert load(file) == made
    assert is_advice(file)
    assert advice_json.render(made) == file.read_text()
    data = json.loads(dumps(advice()))
    assert data["schema"] == 5
    assert (data["choice"]["kind"], data["choice"]["workers"]) == ("interpreters", 2)
    assert data["choice"]["low"] < data["choice"]["speedup"] < data["choice"]["high"]
    assert [one["kind"] for one in data["candidates"]][:2] == ["sequential", "threads"]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda _: "{", "not valid JSON"),
        (lambda _: "[]", "not an advice"),
        (lambda data: json.dumps({**data, "schema": 99}), "another version"),
        (lambda data: json.dumps({k: v for k, v in data.items() if k != "work"}), "damaged"),
        (lambda data: json.dumps({**data, "choice": {**data["choice"], "kind": "magic"}}), "damaged"),
        (lambda data: json.dumps({**data, "candidates": 3}), "damaged"),
        (lambda data: json.dumps({**data, "cores": "two"}), "damaged"),
    ],
)
def test_what_is_no_advice_is_refused(tmp_path: Path, damage: object, said: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(damage(json.loads(dumps(advice()))))  # type: ignore[operator]
    with pytest.raises(RecordError, match=said):
        load(file)


def test_file_that_is_missing_or_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="No such file"):
        load(tmp_path / "none.json")
    assert not is_advice(tmp_path / "none.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="choose another place"):
        advice().save(tmp_path / "file" / "a.json")


def test_text_begins_with_the_answer_and_ends_with_what_else_there_is() -> None:
    lines = advice_text.render(advice()).splitlines()
    assert lines[0] == "InterpreterPool, 2 workers: 1.9x (1.8 to 1.9)"
    text = "\n".join(lines)
    assert "shop:price: 100 calls, 100 items; CPython 3.14.0, 2 cores" in text
    assert "InterpreterPool *" in text
    assert "AsyncPool: the function is no coroutine function" in text
    assert "      results = []" in text
    assert max(map(len, lines)) <= advice_text.WIDTH


def test_plan_says_what_would_be_done() -> None:
    plan = AdvicePlan(
        target="shop:price", items=3, requests=10, budget_s=30.0, max_calls=50,
        ways=(("sequential", 1, "CPython"), ("threads", 2, "CPython"), ("threads", 4, "CPython")),
        refused={"async": "the function is no coroutine function"},
    )  # fmt: skip
    text = advice_text.render_plan(plan)
    assert "Nothing has been called" in text
    assert "ThreadPool, 2 and 4 workers" in text
    assert "at most 50 in all" in text
    assert "not async: the function is no coroutine function" in text
    narrow = advice_text.render_plan(plan, width=60)
    assert narrow.split() == text.split()
    assert max(map(len, narrow.splitlines())) <= 60


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def page(html: str) -> Page:
    parser = Page()
    parser.feed(html)
    return parser


def test_page_has_the_answer_no_script_and_a_picture_where_there_are_curves() -> None:
    html = advice_html.render(advice())
    seen = page(html)
    assert seen.tags.count("h1") == 1
    assert "InterpreterPool, 2 workers: 1.9x (1.8 to 1.9)" in seen.text
    assert "circle" in seen.tags
    assert "polyline" in seen.tags
    assert "script" not in seen.tags
    assert "http" not in html.replace("http-equiv", "")
    seen = page(advice_html.render(advice(candidate("sequential", 1, 1.0), curves=())))
    assert "No pool: make the calls one after another" in seen.text
    assert "svg" not in seen.tags


def test_names_cannot_be_more_than_text() -> None:
    nasty = "<script>alert(1)</script>\x1b[31m\u202e"
    made = replace(advice(), target=nasty, code=nasty, notes=(nasty,))
    assert "script" not in page(advice_html.render(made)).tags
    assert "\x1b" not in advice_text.render(made)
    assert "\u202e" not in advice_html.render(made)


def test_on_a_busy_machine_the_answer_says_so_and_the_table_has_what_was_measured() -> None:
    made = advice(candidate("sequential", 1, 1.0, foreign=0.5), candidate("processes", 2, 0.9, foreign=0.2))
    text = advice_text.render(made)
    assert text.splitlines()[1].startswith("Other programs took up to 50 % of the cores meanwhile")
    assert "x1.11" in text, "as measured beside them"
    assert "up to 50 % of the cores" in page(advice_html.render(made)).text
    quiet = advice(candidate("sequential", 1, 1.0), candidate("processes", 2, 0.9))
    assert "Other programs" not in advice_text.render(quiet)


@pytest.mark.parametrize(("count", "said"), [(1, "in one round"), (2, "in 2 rounds")])
def test_with_fewer_than_three_rounds_there_is_no_loss_and_the_answer_says_so(count: int, said: str) -> None:
    def few(kind: Kind, workers: int, total_s: float) -> Candidate:
        rounds = tuple((number, total_s) for number in range(count))
        return candidate(kind, workers, total_s, rounds=rounds, low=None, high=None)

    made = advice(few("sequential", 1, 1.0), few("processes", 2, 0.5))
    assert made.choice.loss is None
    text = advice_text.render(made)
    assert f"Measured {said}: what it may lose is not known." in text
    assert "Expected loss" not in text
    assert "Expected loss" in advice_text.render(advice())
