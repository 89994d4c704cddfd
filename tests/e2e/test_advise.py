"""fairlead advise from the first look to code that runs: on programs of which the answer is known."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

import pytest
from advices import advice, candidate
from commands import exit_status, python

import fairlead
from fairlead.advice import codegen
from fairlead.advice.target import named
from fairlead.errors import AdviceError
from fairlead.record.advice import Advice, Kind, load

pytestmark = pytest.mark.ends

SHOP = """
import asyncio, os, threading, time

CALLS = os.environ.get("SHOP_CALLS")
RATES = [3, 4, 5]

def note():
    if CALLS:
        with open(CALLS, "a") as file:
            file.write(".")

def price(n):
    note()
    return n * 2

async def quote(n):
    await asyncio.sleep(0.01)
    return n * 3

total = 0

def sell(n):
    global total
    total += n
    return total

def wait(n):
    time.sleep(0.02)
    return n
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "stock.py").write_text("ITEMS = [5, 6]\ndef made():\n    return [5, 6]\n")
    (tmp_path / "lines.jsonl").write_text("\n".join(map(str, range(9))))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def calls(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Has a byte for each call of shop:price."""
    monkeypatch.setenv("SHOP_CALLS", str(shop / "calls"))
    return shop / "calls"


def advised(*words: str) -> Advice:
    assert exit_status("advise", *words, "-o", "run.json") == 0
    return load(Path("run.json"))


CODES: dict[str, tuple[Kind, tuple[str, str | None, Path | None, int | None], Any]] = {
    "loop": ("async", ("shop:quote", "range(9)", None, None), [n * 3 for n in range(9)]),
    "one after another": ("sequential", ("shop:quote", "range(9)", None, None), [n * 3 for n in range(9)]),
    "awaited in threads": ("threads", ("shop:quote", "range(9)", None, None), [n * 3 for n in range(9)]),
    "in turn": ("sequential", ("shop:sell", "range(9)", None, None), [n * (n + 1) // 2 for n in range(9)]),
    "lines": ("threads", ("shop:wait", None, Path("lines.jsonl"), None), list(range(9))),
    "over again": ("processes", ("shop:price", "RATES", None, 8), [6, 8, 10, 6, 8, 10, 6, 8]),
    "named": ("sequential", ("shop:price", "stock:ITEMS", None, None), [10, 12]),
    "made": ("sequential", ("shop:price", "stock:made()", None, None), [10, 12]),
}


def test_code_of_each_choice_runs_as_it_stands(shop: Path) -> None:
    counts = {"over again": 3, "named": 2, "made": 2}
    for name, (kind, target, expected) in CODES.items():
        with named(*target) as given:
            made = codegen.code(
                given, kind, 2, coroutines=given.name == "quote", requests=len(expected),
                items=counts.get(name, len(expected)),
            )  # fmt: skip
        (shop / f"{name}.py").write_text(made)
    program = "import json, runpy, sys\nif __name__ == '__main__':\n    for name in sys.argv[1:]:\n"
    program += "        print(json.dumps(runpy.run_path(name + '.py', run_name='__main__')['results']))\n"
    (shop / "program.py").write_text(program)
    done = python("program.py", *CODES)
    assert done.returncode == 0, done.stderr
    found = dict(zip(CODES, map(json.loads, done.stdout.splitlines()), strict=True))
    assert found == {name: expected for name, (_, _, expected) in CODES.items()}
    assert "from stock import ITEMS\n" in (shop / "named.py").read_text()
    assert "    items = made()\n" in (shop / "made.py").read_text()


def test_advice_of_a_file_is_shown_in_each_form(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    advice().save(shop / "run.json")
    assert exit_status("report", "run.json", "--format", "html", "-o", "page.html") == 0
    assert "InterpreterPool" in (shop / "page.html").read_text()
    capsys.readouterr()
    assert exit_status("report", "run.json") == 0
    assert capsys.readouterr().out.startswith("InterpreterPool, ")
    assert exit_status("report", "run.json", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["schema"] == 5
    assert exit_status("report", "run.json", "--format", "perfetto") == 2


@pytest.mark.timing
@pytest.mark.parametrize(("function", "kind"), [("shop:quote", "async"), ("shop:wait", "threads")])
@pytest.mark.usefixtures("shop")
def test_calls_that_wait_are_advised_what_lets_them_wait_at_once(function: str, kind: str) -> None:
    made = advised(function, "--items", "range(60)", "--budget", "2s", "--kinds", kind)
    assert made.choice.kind == kind
    assert made.choice.workers > 2
    assert made.work.coroutines == (kind == "async")
    assert made.work.waiting > 0.5


@pytest.mark.usefixtures("shop")
def test_function_that_changes_what_calls_share_stays_sequential() -> None:
    made = advised("shop:sell", "--items", "range(30)", "--budget", "1s")
    assert made.choice.kind == "sequential"
    assert made.work.accumulates == ("total",)
    refused = {one.kind: one.reason or "" for one in made.candidates if one.status == "refused"}
    assert "calls change what they share (total)" in refused["threads"]
    assert "calls change what they share (total)" in refused["processes"]


def test_dry_run_calls_nothing(shop: Path, calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status("advise", "shop:price", "--items", "[r * 2 for r in RATES]", "--dry-run") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Plan for shop:price: 3 calls, 3 items, budget 30.0 s. Nothing has been called.")
    assert "ThreadPool, 2 and 3 workers" in shown
    assert not calls.exists()
    assert not (shop / "advise-runs").exists()


def test_calls_stay_below_their_bound_and_are_counted(
    calls: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("shop:price", "--items", "RATES", "--requests", "8", "--kinds", "threads", "--max-calls")
    made = advised(*words, "60", "--budget", "1s")
    assert made.calls == len(calls.read_text()) <= 60
    assert (made.items, made.requests) == (3, 8)
    assert exit_status("advise", *words, "6", "--budget", "2s") == 1
    assert "and --max-calls allows 6: allow more, or name fewer --kinds" in capsys.readouterr().err


def who(n: int) -> int:
    """Answers by the thread that it runs in."""
    import threading
    import time

    time.sleep(0.005)
    return n + (threading.current_thread() is threading.main_thread())


def pid(_: int) -> int:
    import os

    return os.getpid()


@pytest.mark.parametrize("function", [who, pytest.param(pid, marks=pytest.mark.long)])
def test_other_results_at_once_are_found_and_excluded_unless_they_vary_by_themselves(
    function: Callable[[int], int],
) -> None:
    made = fairlead.advise(function, range(20), budget=1, kinds=["threads"])
    assert made.work.varies == (function is pid)
    threads = [one for one in made.candidates if one.kind == "threads"]
    assert {one.status for one in threads} == {"measured" if function is pid else "wrong"}
    if function is who:
        assert made.choice.kind == "sequential"
        assert "results are not those of calls in turn" in (threads[0].reason or "")


@pytest.mark.long
def test_function_of_a_program_is_measured_in_processes_too(shop: Path) -> None:
    (shop / "program.py").write_text(
        "import fairlead\n\n"
        "class Price:\n    def __init__(self, n):\n        self.n = n\n\n"
        "def double(price):\n    return Price(price.n * 2)\n\n"
        "if __name__ == '__main__':\n"
        "    advice = fairlead.advise(double, [Price(1), Price(2)], budget=1, kinds=['processes'])\n"
        "    print(*sorted({(one.kind, one.status) for one in advice.candidates}))\n"
    )
    done = python("program.py")
    assert (done.stdout, done.stderr) == ("('processes', 'measured') ('sequential', 'measured')\n", "")


def test_advice_in_code_reports_its_progress_and_knows_what_needs_no_measuring() -> None:
    made = fairlead.advise(time.sleep, [0.05], budget=1)
    assert made.choice.kind == "sequential"
    assert "there is one call, and nothing to make beside it" in made.choice.reasons
    seen: list[str] = []
    made = fairlead.advise(
        asyncio.sleep, [0.02] * 40, budget=1, kinds=["async"], report=lambda step: seen.append(step.doing)
    )
    assert {one.kind for one in made.candidates if one.status == "measured"} == {"sequential", "async"}
    assert seen[0] == "looking at the first calls"
    assert any("round 1: async" in doing for doing in seen)


@pytest.fixture
def free_threaded() -> None:
    from fairlead.lab.catalogue.interpreters import free_threaded
    from fairlead.pools.choose.rules import has_gil

    if not has_gil():
        pytest.skip("this interpreter has no GIL to be compared with")
    if free_threaded() is None:
        pytest.skip("no interpreter without a GIL here")


@pytest.mark.long
@pytest.mark.usefixtures("free_threaded")
def test_interpreter_without_a_gil_is_measured_though_it_has_no_fairlead(shop: Path) -> None:
    (shop / "sums.py").write_text("def squares(n):\n    return sum(i * i for i in range(n))\n")
    made = advised("sums:squares", "--items", "[20000] * 20", "--budget", "2s", "--kinds", "free-threaded")
    measured = [one for one in made.candidates if one.kind == "free-threaded"]
    assert [one.status for one in measured] == ["measured"], measured
    assert "free-threaded" in measured[0].interpreter


MODEL = """
import functools, os, time

@functools.cache
def model():
    time.sleep(0.4)
    return 3

def predict(n):
    return model() * n

async def load(n):
    model()
    return n
"""


@pytest.mark.parametrize(("function", "kinds"), [("predict", "threads,processes"), ("load", "async")])
def test_what_the_first_call_of_a_process_takes_is_counted_once(
    shop: Path, function: str, kinds: str
) -> None:
    """As where it loads a model; a thousand such calls would take minutes.

    It sleeps for 0.4 s, so that in no round first calls and others take less. Parts are means of the rounds'.
    """
    (shop / "model.py").write_text(MODEL)
    made = advised(f"model:{function}", "--items", "range(1000)", "--budget", "6s", "--kinds", kinds)
    measured = [one for one in made.candidates if one.total_s is not None]
    assert len(measured) > 1
    for one in measured:
        assert one.once_s is not None
        assert one.total_s is not None
        assert one.start_s is not None
        asleep = fmean(0.4 / took for _, took in one.rounds)
        assert one.total_s - one.start_s >= one.total_s * asleep * (1 - 1e-9)
        assert one.once_s > 0
        assert one.total_s < 100
        assert one.speedup == pytest.approx((made.candidates[0].total_s or 0.0) / one.total_s)


@pytest.fixture
def truth(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark that measures whether advice is right."""
    benchmarks = Path(__file__).parents[2] / "benchmarks"
    monkeypatch.syspath_prepend(str(benchmarks / "subjects"))
    monkeypatch.syspath_prepend(str(benchmarks))
    return importlib.import_module("advise_truth")


@pytest.mark.timing
@pytest.mark.parametrize("name", ["fetched", "predicted", "short_sum"])
def test_program_whose_truth_is_measured_gets_it(truth: ModuleType, name: str) -> None:
    """A short form of ``benchmarks/advise_truth.py``, which asks about all twenty."""
    done = python(truth.__file__ or "", "--budget", "6", "--rounds", "1", name)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("changes", [False, True])
def test_advice_is_judged_by_what_each_way_takes_and_comes_to(
    truth: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], changes: bool
) -> None:
    """Threads take half the time of calls in turn, and processes a hundredth, with other results; the times
    that were predicted are those of ``advices``."""
    seconds = {("sequential", 1): 1.0, ("interpreters", 2): 0.5, ("processes", 2): 0.01}

    def measure(_: object, found: Any, _places: object, **_others: object) -> None:
        for place, taken in seconds.items():
            found.seconds.setdefault(place, []).append(taken)
            found.marks.setdefault(place, set()).add("same" if place[0] != "processes" else "other")

    candidates = [candidate("sequential", 1, 1.0), candidate("interpreters", 2, 0.54)]
    if changes:
        candidates[1] = candidate("processes", 2, 0.54)
    monkeypatch.setattr(truth, "measure", measure)
    monkeypatch.setattr(truth, "ask", lambda *_: advice(*candidates))
    assert truth.judge(truth.PROGRAMS[0], 2.0, 1, False) == (not changes, changes, 2 - changes, 2)
    assert ("CHANGES RESULTS" in capsys.readouterr().out) == changes


def test_program_without_advice_is_a_line_of_the_benchmark_and_not_right(
    truth: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise AdviceError("too little time")

    monkeypatch.setattr(truth, "measure", lambda *_, **__: None)
    monkeypatch.setattr(truth, "ask", refuse)
    assert truth.judge(truth.PROGRAMS[0], 2.0, 1, False) == (False, False, 0, 0)
    assert capsys.readouterr().out.split() == ["primes", "no", "advice:", "too", "little", "time"]


SELL = ("shop:sell", "--items", "range(30)", "--budget", "2s")


@pytest.mark.parametrize("what", [SELL, ("--server", "false", "--load", "false")], ids=["function", "server"])
@pytest.mark.parametrize("place", [".", "shop.py/run.json", "/proc/absent/run.json"])
@pytest.mark.usefixtures("shop")
def test_place_that_cannot_be_written_is_said_before_anything_is_called(
    what: tuple[str, ...], place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_status("advise", *what, "-o", place) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"fairlead: {place}: cannot be written (")


def test_without_a_name_too_the_place_is_tried_before_anything_is_called(
    shop: Path, calls: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop / "advise-runs").touch()  # as in a directory that is read-only, which root may write to
    assert exit_status("advise", "shop:price", "--items", "RATES", "--budget", "2s") == 1
    out, err = capsys.readouterr()
    assert (out, calls.exists()) == ("", False)
    said = r"fairlead: advise-runs/\w+\.json: cannot be written \(File exists\); name another file with -o\n"
    assert re.fullmatch(said, err)


def test_place_that_is_tried_is_left_as_it_was_by_what_fails(shop: Path) -> None:
    absent = ("advise", "shop:absent", "--items", "range(3)")
    (shop / "run.json").write_text("precious")
    before = {path.name for path in shop.iterdir()}
    for place in ([], ["-o", "a/b/c.json"], ["-o", "run.json"], ["-o", "new.json"]):
        assert exit_status(*absent, *place) != 0
    assert {path.name for path in shop.iterdir()} - {"__pycache__"} == before
    assert (shop / "run.json").read_text() == "precious"
