"""The lab's work for pools: right one by one, wrong where tasks at once change what they share."""

from __future__ import annotations

import importlib

import pytest

from fairlead.lab.catalogue import registry
from fairlead.lab.experiments import probe_workloads as workloads
from fairlead.pools import SequentialPool

pytestmark = pytest.mark.ends


def test_workloads_have_known_answers_and_as_many_items_as_asked_for() -> None:
    known = {work.name: work for work in workloads.catalogue()}
    assert workloads.fib(28) == workloads.fib2(28) == known["fib"].answer(28) == 317_811
    assert known["data-pass"].wrong([workloads.data_pass(known["data-pass"].item), 3]) == 1
    assert known["data-return"].wrong([workloads.data_return(workloads.WORDS)]) == 0
    assert len(known["data-pass"].item) == 524_288
    assert [name for name, work in known.items() if work.shares] == ["nbody"]
    fib = workloads.catalogue()[0]
    assert len(fib.items()) == 64
    assert len(fib.items(0.25)) == 16
    assert len(fib.items(0.0001)) == 1


@pytest.mark.parametrize("work", workloads.catalogue(), ids=lambda work: work.name)
def test_workload_returns_the_right_result_every_time(work: workloads.Workload) -> None:
    if work.name.startswith("pyperformance-"):
        pytest.importorskip("pyperformance")
    with SequentialPool() as pool:
        first, second = pool.map(work.function, [work.small] * 2)
    assert first == second == work.answer(work.small)


def test_workload_of_bodies_keeps_their_energy() -> None:
    before = workloads.energy(workloads.bodies())
    assert workloads.nbody_unshared(500) == pytest.approx(before, rel=1e-3)
    assert workloads.nbody(500) == workloads.nbody_unshared(500)


def test_workload_that_shares_comes_out_wrong_when_another_task_is_in_its_midst() -> None:
    alone = workloads.nbody_unshared(10)
    workloads._shared[0].x += 1.0
    assert workloads.nbody(10) == alone  # begins with fresh places
    moved = workloads.bodies()
    workloads._advance(moved, 5)
    moved[1].x += 1e-3  # what another has done meanwhile
    workloads._advance(moved, 5)
    assert workloads.energy(moved) != alone


def test_job_counts_wrong_results_and_drops_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(registry.DIRECTORY)
    methods = importlib.import_module("probe_methods")
    answers = iter([1, 2, 1, 3])
    job = methods.Job(lambda _: next(answers), [0] * 4, 1, 1)
    methods.sequential(job)
    assert (job.taken, job.wrong) == (4, 2)
    # of a list only its length and its ends are looked at
    lists = methods.Job(None, [], [0.5] * 3, 1)
    for result in ([0.5] * 3, [0.5] * 2, [0.5, 0.5, 0.0]):
        lists.take(result)
    assert (lists.taken, lists.wrong) == (3, 2)


def test_system_calls_of_a_strace_table_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(registry.DIRECTORY)
    battle = importlib.import_module("gil_battle")
    table = """
% time     seconds  usecs/call     calls    errors syscall
 60.00    0.000060           1        40         3 futex
 40.00    0.000040           1         7           read
------ ----------- ----------- --------- --------- ----------------
100.00    0.000100           2        47         3 total
"""
    assert battle.total(table) == 47


def test_a_battle_for_the_old_gil_is_read_off_the_calls_of_futex(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(registry.DIRECTORY)
    battle = importlib.import_module("gil_battle")
    wait = "FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME, 0, NULL, FUTEX_BITSET_MATCH_ANY"
    found = battle.battle(
        f"""
10 1.000000 futex(0xaa, {wait} <unfinished ...>
11 1.000001 futex(0xff, {wait} <unfinished ...>
12 1.000010 futex(0xff, FUTEX_WAKE_PRIVATE, 1) = 1
11 1.000020 <... futex resumed>) = 0
11 1.000030 futex(0xff, {wait}) = -1 EAGAIN (Resource temporarily unavailable)
11 1.000040 futex(0xff, {wait} <unfinished ...>
12 1.000050 futex(0xff, FUTEX_WAKE_PRIVATE, 1 <unfinished ...>
11 1.000060 <... futex resumed>) = 0
12 1.000061 <... futex resumed>) = 1
12 1.000070 futex(0xff, {wait} <unfinished ...>
11 1.000080 futex(0xff, FUTEX_WAKE_PRIVATE, 1) = 1
12 1.000090 <... futex resumed>) = 0
12 1.000100 +++ exited with 0 +++
"""
    )
    assert found["metrics"] == {"acquired": 2, "failed": 2, "failed_in_a_row": 2}
    assert found["counts"] == {"want": 2, "busy": 2, "take": 2, "drop": 3, "switch": 1}
    shown = [(round(at), kind, thread) for at, kind, thread, _, _ in found["events"]]
    assert shown == [
        (0, "want", 0), (9, "drop", 1), (19, "busy", 0), (29, "busy", 0), (49, "drop", 1), (59, "take", 0),
        (69, "want", 1), (79, "drop", 0), (89, "take", 1),
    ]  # fmt: skip
    assert [round(value) for _, kind, _, _, value in found["events"] if kind == "take"] == [59, 20]
