"""What channels keep for further messages, and when it goes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import Thread, until

from fairlead.pools import ProcessPool
from fairlead.pools.process import channel as channels
from fairlead.pools.process.channel import INLINE, KEEP, Channel
from fairlead.pools.serialization.messages import pickled

np = pytest.importorskip("numpy", exc_type=ImportError)

LARGE = 4 * INLINE


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Channel, Channel]]:
    monkeypatch.setattr(channels, "IDLE_S", 0.05)
    ours, theirs = map(Channel, socket.socketpair())
    yield ours, theirs
    ours.close()
    theirs.close()


def kept(*both: Channel) -> list[int]:
    """Blocks that there are and mappings that are held, at each end."""
    return [len(one._blocks) + len(one._lent.maps) for one in both]


def test_blocks_and_mappings_go_while_no_message_comes(ends: tuple[Channel, Channel]) -> None:
    ours, theirs = ends
    for _ in range(3):
        ours.send(1, pickled(b"x" * LARGE))
        assert len(theirs.receive().load()) == LARGE
        theirs.send(1, pickled(None))
        assert ours.receive().load() is None
    assert kept(ours, theirs) == [1, 1]  # the same block each time
    waiting = [Thread(one.receive) for one in ends]
    until(lambda: kept(ours, theirs) == [0, 0])
    ours.send(1, pickled(b"x" * LARGE))
    theirs.send(1, pickled(b"x" * LARGE))
    for thread in waiting:
        thread.result()


def test_block_whose_objects_go_while_no_message_comes_is_given_back(ends: tuple[Channel, Channel]) -> None:
    ours, theirs = ends
    ours.send(1, pickled(np.ones(LARGE)))
    array = theirs.receive().load()
    waiting = [Thread(one.receive) for one in ends]
    until(lambda: kept(ours, theirs) == [1, 0])
    assert array.sum() == LARGE
    del array
    until(lambda: kept(ours, theirs) == [0, 0])
    ours.send(1, pickled(None))
    theirs.send(1, pickled(None))
    for thread in waiting:
        thread.result()


def test_waiting_for_a_time_is_not_ended_by_what_is_only_given_back(ends: tuple[Channel, Channel]) -> None:
    ours, theirs = ends
    ours.send(1, pickled(np.ones(LARGE)))
    theirs.receive().load()
    assert not theirs.poll(0.2)
    assert not ours.poll(0.2)
    assert kept(ours, theirs) == [0, 0]
    theirs.send(2, pickled("next"))
    assert ours.poll(None)
    assert ours.receive().load() == "next"


def test_messages_sent_while_memory_goes_come_whole(ends: tuple[Channel, Channel], monkeypatch: Any) -> None:
    ours, theirs = ends
    monkeypatch.setattr(channels, "IDLE_S", 0.001)

    def answer() -> None:
        for _ in range(300):
            theirs.send(1, pickled(theirs.receive().load() * 2))

    thread = Thread(answer)
    for number in range(300):
        ours.send(1, pickled(np.full(LARGE // 8, number)))
        assert (ours.receive().load() == 2 * number).all()
    thread.result()


def test_idle_pool_gives_its_memory_back_and_a_busy_one_keeps_its_blocks() -> None:
    with ProcessPool(2) as pool:
        for _ in range(3):
            futures = [pool.submit(np.negative, np.ones(LARGE)) for _ in range(8)]
            assert all(future.result()[0] == -1 for future in futures)
            del futures
        ends = [slot.worker._channel for slot in pool._engine._slots]  # type: ignore[attr-defined]
        assert 0 < sum(len(one._blocks) for one in ends) <= 2 * KEEP
        until(lambda: not any(kept(*ends)))
        for pid in [slot.worker._process.pid for slot in pool._engine._slots]:  # type: ignore[attr-defined]
            maps = Path(f"/proc/{pid}/maps")
            until(lambda maps=maps: "memfd:fairlead " not in maps.read_text())
