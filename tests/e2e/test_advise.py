"""fairlead advise from the first look to code that runs: on programs of which the answer is known."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import fairlead
from fairlead.errors import AdviceError
from fairlead.record.advice import Advice, load

pytestmark = pytest.mark.ends

PROGRAM = "from fairlead.cli import main; main()"
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
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


def command(shop: Path, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *args],
        cwd=shop, capture_output=True, text=True, check=False, env={**os.environ, **more},
    )  # fmt: skip


def advised(shop: Path, *args: str, **more: str) -> Advice:
    done = command(shop, "advise", *args, "-o", "run.json", **more)
    assert done.returncode == 0, done.stderr
    return load(shop / "run.json")


def results(shop: Path, code: str) -> Any:
    """What the advised program leaves in ``results``."""
    (shop / "pasted.py").write_text(code + "    import json\n    print(json.dumps(results))\n")
    done = subprocess.run(
        [sys.executable, "pasted.py"], cwd=shop, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_coroutines_that_wait_are_advised_a_loop_and_the_code_runs(shop: Path) -> None:
    made = advised(shop, "shop:quote", "--items", "range(60)", "--budget", "2s", "--kinds", "async")
    assert made.choice.kind == "async"
    assert made.choice.workers > 2
    assert made.work.coroutines
    assert made.work.waiting > 0.5
    assert results(shop, made.code) == [n * 3 for n in range(60)]
    assert command(shop, "report", "run.json", "--format", "html", "-o", "page.html").returncode == 0
    page = (shop / "page.html").read_text()
    assert "AsyncPool" in page
    shown = command(shop, "report", "run.json")
    assert shown.stdout.startswith("AsyncPool, ")
    assert json.loads(command(shop, "report", "run.json", "--format", "json").stdout)["schema"] == 4
    assert command(shop, "report", "run.json", "--format", "perfetto").returncode == 2


@pytest.mark.long
def test_calls_that_wait_are_advised_threads_and_the_code_runs(shop: Path) -> None:
    (shop / "lines.jsonl").write_text("\n".join(map(str, range(40))))
    made = advised(shop, "shop:wait", "--inputs", "lines.jsonl", "--budget", "2s", "--kinds", "threads")
    assert made.choice.kind == "threads"
    assert made.choice.workers > 2
    assert results(shop, made.code) == list(range(40))


def test_function_that_changes_what_calls_share_stays_sequential(shop: Path) -> None:
    made = advised(shop, "shop:sell", "--items", "range(30)", "--budget", "2s")
    assert made.choice.kind == "sequential"
    assert made.work.accumulates == ("total",)
    refused = {one.kind: one.reason or "" for one in made.candidates if one.status == "refused"}
    assert "calls change what they share (total)" in refused["threads"]
    assert "calls change what they share (total)" in refused["processes"]
    assert results(shop, made.code) == [n * (n + 1) // 2 for n in range(30)]


def test_dry_run_calls_nothing(shop: Path) -> None:
    calls = shop / "calls"
    done = command(
        shop, "advise", "shop:price", "--items", "[r * 2 for r in RATES]", "--dry-run", SHOP_CALLS=str(calls)
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "Plan for shop:price: 3 calls, 3 items, budget 30.0 s. Nothing has been called."
    )
    assert "ThreadPool, 2 and 3 workers" in done.stdout
    assert not calls.exists()
    assert not (shop / "advise-runs").exists()


def test_calls_stay_below_their_bound_and_are_counted(shop: Path) -> None:
    calls = shop / "calls"
    made = advised(
        shop, "shop:price", "--items", "RATES", "--requests", "8", "--budget", "2s", "--kinds", "threads",
        "--max-calls", "60", SHOP_CALLS=str(calls),
    )  # fmt: skip
    assert made.choice.kind == "sequential"
    assert made.calls == len(calls.read_text()) <= 60
    assert (made.items, made.requests) == (3, 8)
    assert results(shop, made.code) == [6, 8, 10, 6, 8, 10, 6, 8]


def test_bound_that_is_too_low_is_refused_with_what_to_do(shop: Path) -> None:
    done = command(shop, "advise", "shop:price", "--items", "range(9)", "--budget", "2s", "--max-calls", "6")
    assert done.returncode == 1
    assert "and --max-calls allows 6: allow more, or name fewer --kinds" in done.stderr


def test_other_results_at_once_are_found_and_never_chosen() -> None:
    """A function that answers by the thread that it runs in."""

    def who(n: int) -> int:
        import threading
        import time

        time.sleep(0.005)
        return n + (threading.current_thread() is threading.main_thread())

    made = fairlead.advise(who, range(20), budget=2, kinds=["threads"])
    assert made.choice.kind == "sequential"
    wrong = [one for one in made.candidates if one.kind == "threads"]
    assert {one.status for one in wrong} == {"wrong"}
    assert "results are not those of calls in turn" in (wrong[0].reason or "")


@pytest.mark.long
def test_results_that_vary_by_themselves_exclude_no_candidate() -> None:
    def pid(_: int) -> int:
        import os
        import time

        time.sleep(0.02)
        return os.getpid()

    made = fairlead.advise(pid, range(20), budget=2, kinds=["threads"])
    assert made.work.varies
    assert made.choice.kind == "threads"


@pytest.mark.long
def test_function_of_a_program_is_measured_in_processes_too(shop: Path) -> None:
    (shop / "program.py").write_text(
        "import fairlead\n\n"
        "class Price:\n    def __init__(self, n):\n        self.n = n\n\n"
        "def double(price):\n    return Price(price.n * 2)\n\n"
        "if __name__ == '__main__':\n"
        "    advice = fairlead.advise(double, [Price(1), Price(2)], budget=1, kinds=['processes'])\n"
        "    print(advice.choice.kind, {one.status for one in advice.candidates})\n"
    )
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=shop, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("sequential {'measured'}\n", "")


def test_one_call_is_best_made_alone() -> None:
    made = fairlead.advise(time.sleep, [0.05], budget=2)
    assert made.choice.kind == "sequential"
    assert "there is one call, and nothing to make beside it" in made.choice.reasons


@pytest.mark.parametrize(("items", "line"), [("stock:ITEMS", "ITEMS"), ("stock:made()", "made()")])
def test_items_are_named_as_the_function_is_and_the_code_runs(shop: Path, items: str, line: str) -> None:
    (shop / "stock.py").write_text("ITEMS = [5, 6]\ndef made():\n    return [5, 6]\n")
    made = advised(shop, "shop:price", "--items", items, "--budget", "1s", "--kinds", "sequential")
    assert made.items == 2
    assert f"from stock import {line.removesuffix('()')}\n" in made.code
    assert f"    items = {line}\n" in made.code
    assert results(shop, made.code) == [10, 12]


def test_progress_is_reported_and_coroutine_functions_are_taken_in_code() -> None:
    seen: list[str] = []
    made = fairlead.advise(
        asyncio.sleep, [0.02] * 40, budget=2, kinds=["async"], report=lambda step: seen.append(step.doing)
    )
    assert made.choice.kind == "async"
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
    made = advised(
        shop, "sums:squares", "--items", "[20000] * 20", "--budget", "2s", "--kinds", "free-threaded"
    )
    measured = [one for one in made.candidates if one.kind == "free-threaded"]
    assert [one.status for one in measured] == ["measured"], measured
    assert "free-threaded" in measured[0].interpreter


@pytest.mark.long
@pytest.mark.parametrize("name", ["counted", "huge", "tallied_with_lock"])
def test_programs_with_known_answers_get_theirs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the benchmark that are quick, and whose answer hardly depends on who else runs: a short form
    of ``benchmarks/advise_truth.py``, which asks about all twenty."""
    benchmarks = Path(__file__).parents[2] / "benchmarks"
    monkeypatch.syspath_prepend(str(benchmarks / "subjects"))
    monkeypatch.syspath_prepend(str(benchmarks))
    truth = importlib.import_module("advise_truth")
    program = next(one for one in truth.PROGRAMS if one.name == name)
    made = truth.ask(program, 2.0)
    assert made.choice.kind not in program.harmful
    assert made.choice.kind in program.right, str(made)


def test_program_without_advice_is_a_line_of_the_benchmark_and_not_right(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise AdviceError("too little time")

    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    truth = importlib.import_module("advise_truth")
    monkeypatch.setattr(truth, "ask", refuse)
    asked = argparse.Namespace(budget=2.0, others=False, reasons=False)
    assert truth.judge(truth.PROGRAMS[:2], asked) == 1
    first, second, count = capsys.readouterr().out.splitlines()
    assert (first.split(), second.split()) == (
        ["primes", *["no", "advice:", "too", "little", "time"]],
        ["mandelbrot", *["no", "advice:", "too", "little", "time"]],
    )
    assert count == "0 of 2 right, 0 that change results"


@pytest.mark.parametrize("place", [".", "shop.py/run.json", "/proc/absent/run.json"])
def test_place_that_cannot_be_written_is_said_before_anything_is_called(shop: Path, place: str) -> None:
    of_server = ["--server", "false", "--load", "false"]
    for what in (["shop:sell", "--items", "range(30)", "--budget", "2s"], of_server):
        done = command(shop, "advise", *what, "-o", place)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"fairlead: {place}: cannot be written (")
        assert done.stderr.count("\n") == 1


def test_without_a_name_too_the_place_is_tried_before_anything_is_called(shop: Path) -> None:
    (shop / "advise-runs").touch()  # as in a directory that is read-only, which root may write to
    calls = shop / "calls"
    done = command(shop, "advise", "shop:price", "--items", "RATES", "--budget", "2s", SHOP_CALLS=str(calls))
    assert (done.returncode, done.stdout, calls.exists()) == (1, "", False)
    assert re.fullmatch(
        r"fairlead: advise-runs/\w+\.json: cannot be written \(File exists\); name another file with -o\n",
        done.stderr,
    )


def test_place_that_is_tried_leaves_no_directory(shop: Path) -> None:
    assert command(shop, "advise", "shop:absent", "--items", "range(3)").returncode != 0
    assert command(shop, "advise", "shop:absent", "--items", "range(3)", "-o", "a/b/c.json").returncode != 0
    assert not {"advise-runs", "a"} & {path.name for path in shop.iterdir()}


def test_place_that_can_be_written_is_left_as_it_was_by_what_fails(shop: Path) -> None:
    (shop / "run.json").write_text("precious")
    assert command(shop, "advise", "shop:absent", "--items", "range(3)", "-o", "run.json").returncode != 0
    assert (shop / "run.json").read_text() == "precious"
    assert command(shop, "advise", "shop:absent", "--items", "range(3)", "-o", "new.json").returncode != 0
    assert not (shop / "new.json").exists()
