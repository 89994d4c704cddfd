"""A Phaser: every registered party arrives before a phase ends, whoever comes, goes, is late or cancelled."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from blocked import Blocked
from endings import each_ending
from waiting import Thread, run, until

from fairlead import errors
from fairlead.sync.extra import Phaser

pytestmark = pytest.mark.ends_and_free


def waits(phaser: Phaser, number: int = 1) -> Any:
    return lambda: phaser.statistics().waiting == number


def test_phases_end_when_all_have_arrived_and_on_advance_runs_in_between() -> None:
    log: list[Any] = []
    phaser = Phaser(3, on_advance=lambda phase, parties: log.append((phase, parties)))
    assert phaser.statistics() == (0, 3, 0, 0, False)

    def party() -> None:
        for phase in range(3):
            assert phaser.phase == phase
            log.append(phase)
            assert phaser.arrive_and_wait() == phase + 1

    async def task() -> None:
        for phase in range(3):
            log.append(phase)
            assert await phaser.arrive_and_wait_async() == phase + 1

    threads = [Thread(party), Thread(party)]
    run(task())
    for thread in threads:
        thread.result()
    assert log == [entry for phase in range(3) for entry in (phase, phase, phase, (phase, 3))]
    assert repr(phaser).startswith("<fairlead.sync.extra.Phaser in phase 3, 0 of 3 arrived, at ")


def test_parties_register_arrive_without_waiting_and_go_until_none_is_left() -> None:
    phaser = Phaser()
    assert (phaser.parties, phaser.terminated) == (0, False)
    assert phaser.register() == phaser.bulk_register(2) == phaser.bulk_register(0) == 0
    assert [phaser.arrive(), phaser.arrive(), phaser.arrive_and_deregister()] == [0, 0, 0]
    assert phaser.statistics() == (1, 2, 0, 0, False)
    assert [phaser.arrive_and_deregister(), phaser.arrive_and_deregister()] == [1, 1]
    assert phaser.terminated
    assert phaser.register() is phaser.arrive() is phaser.arrive_and_wait() is phaser.wait_phase(1) is None
    assert phaser.statistics() == (1, 0, 0, 0, True)


@each_ending
def test_party_whose_wait_ends_has_arrived(ending: Callable[[Blocked], None]) -> None:
    phaser = Phaser(2)
    ending(
        Blocked(
            phaser,
            phaser.arrive_and_wait,
            phaser.arrive_and_wait_async,
            lambda: phaser.statistics().waiting,
            phaser.arrive,
        )
    )
    assert phaser.statistics() == (0, 2, 1, 0, False)
    assert phaser.arrive_and_wait() == 1


def test_what_on_advance_returns_or_raises_ends_it() -> None:
    phaser = Phaser(1, on_advance=lambda phase, _: phase == 1)
    assert [phaser.arrive(), phaser.arrive()] == [0, 1]
    assert phaser.terminated

    def fails(_phase: int, _parties: int) -> None:
        raise KeyError("on purpose")

    for asynchronous in False, True:
        phaser = Phaser(2, on_advance=fails)
        thread = Thread(phaser.arrive_and_wait)
        until(waits(phaser))
        with pytest.raises(KeyError, match="on purpose"):
            run(arrives(phaser)) if asynchronous else phaser.arrive()
        assert thread.result() is None
        assert phaser.terminated


async def arrives(phaser: Phaser) -> Any:
    return await phaser.arrive_and_wait_async()


def test_party_that_arrives_while_a_phase_is_advanced_belongs_to_the_next() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def on_advance(phase: int, _: int) -> None:
        if phase == 0:
            assert phaser.register() == 1
            inside.set()
            assert go_on.wait(40)

    phaser = Phaser(1, on_advance=on_advance)
    thread = Thread(phaser.arrive)
    assert inside.wait(40)
    assert phaser.register() == 1
    assert phaser.statistics() == (0, 3, 3, 0, False)
    assert phaser.arrive() == 1
    early = Thread(phaser.arrive_and_wait)
    until(waits(phaser))
    assert phaser.arrive_and_deregister() == 1
    with pytest.raises(errors.UsageError, match="more have arrived than are registered"):
        phaser.arrive()
    go_on.set()
    assert thread.result() == 0
    assert early.result() == 2
    assert phaser.statistics() == (2, 2, 0, 0, False)


def test_terminate_wakes_threads_and_tasks() -> None:
    phaser = Phaser(3)
    waiters = [Thread(phaser.arrive_and_wait), Thread(run, arrives(phaser))]
    until(waits(phaser, 2))
    phaser.terminate()
    phaser.terminate()
    assert [waiter.result() for waiter in waiters] == [None, None]
    assert phaser.terminated
    assert run(arrives(phaser)) is None


def test_many_come_and_go_and_no_phase_begins_without_one_that_is_registered() -> None:
    registered: dict[int, list[int]] = {}
    phaser = Phaser(1, on_advance=lambda phase, parties: registered.setdefault(phase, [parties]) and None)
    arrived: list[int] = []

    def party(seed: int) -> None:
        choose = random.Random(seed)
        for _ in range(15):
            phase = phaser.register()
            assert phase is not None
            for _ in range(choose.randrange(4)):
                arrived.append(phase)
                then = phaser.arrive_and_wait() if choose.random() < 0.7 else wait_by_itself(phase)
                assert then is not None
                assert then == phase + 1
                phase = then
            arrived.append(phase)
            assert phaser.arrive_and_deregister() == phase

    def wait_by_itself(phase: int) -> int | None:
        assert phaser.arrive() == phase
        return run(as_task(phase))

    async def as_task(phase: int) -> int | None:
        return await phaser.wait_phase_async(phase)

    threads = [Thread(party, seed) for seed in range(4)]
    while any(thread.is_alive() for thread in threads):
        arrived.append(phaser.phase)
        phaser.arrive_and_wait()
    for thread in threads:
        thread.result()
    arrived.append(phaser.phase)
    phaser.arrive_and_deregister()
    assert phaser.terminated
    for phase, [after] in registered.items():
        assert arrived.count(phase) >= max(after, 1)
    assert sorted(registered) == list(range(phaser.phase + 1))


def test_cycle_through_on_advance_is_collected() -> None:
    def make() -> weakref.ref[Phaser]:
        phaser = Phaser(2, on_advance=lambda *_: kept.append(1))
        kept: list[Any] = [phaser]
        phaser.arrive()
        return weakref.ref(phaser)

    gone = make()
    gc.collect()
    assert gone() is None
