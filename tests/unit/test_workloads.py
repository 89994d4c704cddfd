"""The lab's work for pools: right one by one, wrong where tasks at once change what they share."""

from __future__ import annotations

import pytest

from fairlead.lab.experiments import probe_workloads as workloads
from fairlead.pools import SequentialPool


def test_workloads_have_the_answers_that_are_known() -> None:
    known = {work.name: work for work in workloads.catalogue()}
    assert workloads.fib(28) == workloads.fib2(28) == known["fib"].answer(28) == 317_811
    assert known["data-pass"].wrong([workloads.data_pass(known["data-pass"].item), 3]) == 1
    assert known["data-return"].wrong([workloads.data_return(workloads.WORDS)]) == 0
    assert len(known["data-pass"].item) == 524_288
    assert [name for name, work in known.items() if work.shares] == ["nbody"]


@pytest.mark.parametrize("work", workloads.catalogue(), ids=lambda work: work.name)
def test_workload_gives_what_is_right_every_time(work: workloads.Workload) -> None:
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


def test_workload_has_as_many_items_as_asked_for() -> None:
    fib = workloads.catalogue()[0]
    assert len(fib.items()) == 64
    assert len(fib.items(0.25)) == 16
    assert len(fib.items(0.0001)) == 1
