"""Barrier: all parties get through, or nobody does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
import trio
from blocked import Blocked
from endings import each_ending
from waiting import Thread, run, until, until_async

from fairlead import errors
from fairlead.sync import Barrier, Event

pytestmark = pytest.mark.ends_and_free


async def task(barrier: Barrier) -> int:
    return await barrier.wait_async()


def arrive(barrier: Barrier, how: str) -> Thread:
    """A party of its own thread, which has come and waits."""
    waiting = barrier.n_waiting
    thread = {
        "thread": lambda: Thread(barrier.wait),
        "asyncio": lambda: Thread(run, task(barrier)),
        "trio": lambda: Thread(trio.run, task, barrier),
    }[how]()
    until(lambda: barrier.n_waiting == waiting + 1)
    return thread


KINDS = ("thread", "asyncio", "trio")


@pytest.mark.parametrize("last", KINDS)
def test_all_kinds_get_through_together_again_and_again(last: str) -> None:
    barrier = Barrier(4)
    for _ in range(3):
        parties = [arrive(barrier, how) for how in KINDS]
        assert barrier.statistics() == (4, 3, False)
        end = {
            "thread": barrier.wait,
            "asyncio": lambda: run(task(barrier)),
            "trio": lambda: trio.run(task, barrier),
        }[last]
        assert Thread(end).result() == 3
        assert [one.result() for one in parties] == [0, 1, 2]
        assert barrier.statistics() == (4, 0, False)


def test_a_barrier_for_one_lets_through_at_once() -> None:
    acted: list[int] = []
    barrier = Barrier(1, lambda: acted.append(1))
    assert barrier.wait() == barrier.wait(0) == run(task(barrier)) == 0
    assert len(acted) == 3


@pytest.mark.parametrize("how", KINDS)
def test_action_is_called_once_by_the_last_while_the_others_wait(how: str) -> None:
    waiting: list[int] = []
    barrier = Barrier(3, lambda: waiting.append(barrier.n_waiting))
    parties = [arrive(barrier, how) for _ in range(2)]
    assert barrier.wait() == 2
    assert [one.result() for one in parties] == [0, 1]
    assert waiting == [2]


def test_action_that_raises_breaks_the_barrier() -> None:
    def action() -> None:
        raise KeyError("action")

    barrier = Barrier(2, action)
    party = arrive(barrier, "asyncio")
    with pytest.raises(KeyError, match="action"):
        barrier.wait()
    with pytest.raises(errors.BrokenBarrierError):
        party.result()
    assert barrier.broken
    party = Thread(barrier.wait)
    with pytest.raises(threading.BrokenBarrierError, match="reset"):
        party.result()


def test_thread_that_comes_while_the_action_runs_waits_for_the_next_phase() -> None:
    begun, go_on, acts = Event(), Event(), []

    def action() -> None:
        acts.append(threading.get_ident())
        begun.set()
        assert go_on.wait(30)

    barrier = Barrier(2, action)
    first = [Thread(barrier.wait) for _ in range(2)]
    assert begun.wait(30)
    later = [arrive(barrier, "thread"), arrive(barrier, "asyncio"), arrive(barrier, "trio")]
    assert len(acts) == 1
    go_on.set()
    assert sorted(one.result() for one in first) == [0, 1]
    assert [one.result() for one in later[:2]] == [0, 1]
    assert barrier.statistics() == (2, 1, False)
    assert len(acts) == 2
    barrier.wait()
    assert later[2].result() == 0


@pytest.mark.parametrize("meanwhile", ["abort", "reset"])
def test_action_on_a_barrier_that_breaks_meanwhile_lets_no_thread_through(meanwhile: str) -> None:
    barrier = Barrier(2, lambda: getattr(barrier, meanwhile)())
    party = arrive(barrier, "thread")
    with pytest.raises(errors.BrokenBarrierError):
        barrier.wait()
    with pytest.raises(errors.BrokenBarrierError):
        party.result()
    assert barrier.broken is (meanwhile == "abort")


def broken_for_all(barrier: Barrier, parties: list[Thread]) -> None:
    for one in parties:
        with pytest.raises(errors.BrokenBarrierError):
            one.result()
    assert barrier.statistics() == (4, 0, True)
    with pytest.raises(errors.BrokenBarrierError):
        run(task(barrier))


def test_timeout_breaks_it_for_all_until_it_is_reset() -> None:
    barrier = Barrier(4, timeout=0.001)
    parties = [arrive(barrier, how) for how in ("asyncio", "trio")]
    with pytest.raises(errors.BrokenBarrierError):
        barrier.wait()
    broken_for_all(barrier, parties)
    barrier.reset()
    assert barrier.statistics() == (4, 0, False)
    parties = [arrive(barrier, how) for how in ("asyncio", "trio", "asyncio")]
    assert barrier.wait(30) == 3
    assert [one.result() for one in parties] == [0, 1, 2]


@each_ending
def test_party_that_leaves_breaks_it_for_all(ending: Callable[[Blocked], None]) -> None:
    barrier = Barrier(4)
    parties = [arrive(barrier, how) for how in ("thread", "trio")]
    ending(Blocked(barrier, barrier.wait, barrier.wait_async, lambda: barrier.n_waiting, barrier.wait))
    broken_for_all(barrier, parties)


def test_timeout_while_the_action_runs_breaks_the_barrier_for_all() -> None:
    begun, go_on = Event(), Event()

    def action() -> None:
        begun.set()
        assert go_on.wait(30)

    barrier = Barrier(2, action)
    short = Thread(barrier.wait, 0.02)
    until(lambda: barrier.n_waiting == 1 or barrier.broken)
    last = Thread(barrier.wait, 30)
    with pytest.raises(errors.BrokenBarrierError):
        short.result()
    go_on.set()
    with pytest.raises(errors.BrokenBarrierError):
        last.result()
    assert barrier.broken


def test_last_one_cancelled_before_it_could_act_breaks_it() -> None:
    """It came while another acted, was chosen as the last of the next time, and did not resume."""
    begun, go_on = Event(), Event()

    def action() -> None:
        begun.set()
        assert go_on.wait(30)

    async def main() -> None:
        barrier = Barrier(2, action)
        first = [Thread(barrier.wait) for _ in range(2)]
        await begun.wait_async()
        third = Thread(barrier.wait)
        await until_async(lambda: barrier.n_waiting == 2)
        fourth = asyncio.ensure_future(task(barrier))
        await until_async(lambda: barrier.n_waiting == 3)
        go_on.set()
        for one in first:
            one.result()  # without a turn of the loop
        fourth.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fourth
        with pytest.raises(errors.BrokenBarrierError):
            third.result()
        assert barrier.statistics() == (2, 0, True)

    run(main())


@pytest.mark.parametrize("how", KINDS)
def test_abort_and_reset_end_every_wait(how: str) -> None:
    barrier = Barrier(3)
    for end in (barrier.reset, barrier.abort):
        parties = [arrive(barrier, how) for _ in range(2)]
        end()
        for one in parties:
            with pytest.raises(errors.BrokenBarrierError):
                one.result()
    assert barrier.statistics() == (3, 0, True)
    barrier.reset()
    barrier.reset()
    assert not barrier.broken


def test_async_with_waits_and_returns_the_place() -> None:
    barrier = Barrier(2)

    async def party() -> int:
        async with barrier as place:
            return place

    async def main() -> list[int]:
        return sorted(await asyncio.gather(party(), party()))

    assert run(main()) == [0, 1]


def test_wait_without_a_time_has_the_barriers_own() -> None:
    barrier = Barrier(2, timeout=1e-3)
    for arguments in ((), (None,)):
        with pytest.raises(errors.BrokenBarrierError):
            barrier.wait(*arguments)
        barrier.reset()
