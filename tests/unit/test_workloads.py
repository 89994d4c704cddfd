"""The lab's work for pools: right one by one, wrong where tasks at once change what they share."""

from __future__ import annotations

import pytest

from fairlead.lab import workloads
from fairlead.pools import SequentialPool

SMALL = {"fib": 10, "fib2": 10, "nbody": 20, "nbody-alone": 20, "raytrace": 6}


def test_workloads_have_the_answers_that_are_known() -> None:
    known = {work.name: work for work in workloads.catalogue()}
    assert known["fib"].wrong([workloads.fib(28)]) == 0
    assert known["data-pass"].wrong([workloads.data_pass(known["data-pass"].item), 3]) == 1
    assert known["data-return"].wrong([workloads.data_return(workloads.WORDS)]) == 0
    assert len(known["data-pass"].item) == 524_288
    assert [name for name, work in known.items() if work.shares] == ["nbody"]


@pytest.mark.parametrize("name", SMALL)
def test_workload_gives_the_same_for_the_same_item(name: str) -> None:
    (work,) = (work for work in workloads.catalogue() if work.name == name)
    with SequentialPool() as pool:
        first, second = pool.map(work.function, [SMALL[name]] * 2)
    assert first == second


def test_workload_of_bodies_keeps_their_energy() -> None:
    before = workloads.energy(workloads.bodies())
    assert workloads.nbody_alone(500) == pytest.approx(before, rel=1e-3)
    assert workloads.nbody(500) == workloads.nbody_alone(500)


def test_workload_that_shares_comes_out_wrong_when_another_task_is_in_its_midst() -> None:
    alone = workloads.nbody_alone(10)
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
