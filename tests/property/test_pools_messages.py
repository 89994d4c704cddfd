"""Messages between a pool and its worker processes: what is sent comes, whatever else comes is refused."""

from __future__ import annotations

import array
import contextlib
import os
import pickle
import socket
import struct
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from examples import share_of_examples
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead import _native
from fairlead.pools.process.channel import HEADER, INLINE, MARK, Channel, Corrupt
from fairlead.pools.serialization.messages import OUT_OF_BAND, pickled

pytestmark = pytest.mark.once

SIZES = st.sampled_from(
    [0, 1, 63, 64, 65, OUT_OF_BAND - 1, OUT_OF_BAND, INLINE - 30, INLINE, INLINE + 1, 300_000]
)
LARGE = st.builds(lambda size, byte: bytes([byte]) * size, SIZES, st.integers(0, 255))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary() | LARGE
    | LARGE.map(bytearray) | LARGE.map(lambda data: np.frombuffer(data, np.uint8).copy()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=6,
)  # fmt: skip


@contextmanager
def ends() -> Iterator[tuple[Channel, Channel]]:
    ours, theirs = socket.socketpair()
    first, second = Channel(ours), Channel(theirs)
    try:
        yield first, second
    finally:
        first.close()
        second.close()


def alike(sent: Any, come: Any) -> bool:
    if isinstance(sent, np.ndarray):
        return isinstance(come, np.ndarray) and bool((sent == come).all())
    if isinstance(sent, dict):
        return sent.keys() == come.keys() and all(alike(sent[key], come[key]) for key in sent)
    if isinstance(sent, list | tuple):
        return type(sent) is type(come) and len(sent) == len(come) and all(map(alike, sent, come))
    return type(sent) is type(come) and bool(sent == come)


@share_of_examples(0.5)
@given(values=st.lists(VALUES, min_size=1, max_size=5))
def test_messages_arrive_as_they_were_sent_and_free_their_memory(values: list[Any]) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with ends() as (ours, theirs):

        def answer() -> None:
            for number in range(len(values)):
                message = theirs.receive()
                assert message.kind == number
                theirs.send(number, pickled(message.load()))

        thread = threading.Thread(target=answer)
        thread.start()
        for number, value in enumerate(values):
            ours.send(number, pickled(value))
            assert alike(value, ours.receive().load())
        thread.join()
        assert ours.bytes_out == theirs.bytes_in > 0
    assert len(os.listdir("/proc/self/fd")) <= before + len(values)  # noqa: PTH208 - mappings of older Pythons


@share_of_examples(0.5)
@given(values=st.lists(VALUES, min_size=2, max_size=8))
def test_messages_that_arrive_together_are_separated(values: list[Any]) -> None:
    """As a log record and the result behind it."""
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with ends() as (ours, theirs):

        def send() -> None:
            for number, value in enumerate(values):
                ours.send(number, pickled(value))
            sent.set()

        sent = threading.Event()
        thread = threading.Thread(target=send)
        thread.start()
        sent.wait(0.01)  # they are there at once, if they fit
        for number, value in enumerate(values):
            assert theirs.poll(None)
            message = theirs.receive()
            assert message.kind == number
            assert alike(value, message.load())
        assert not theirs.poll(0)
        thread.join()
    assert len(os.listdir("/proc/self/fd")) <= before + len(values)  # noqa: PTH208 - mappings of older Pythons


def test_end_that_is_closed_lets_go_of_what_has_come_and_was_not_read() -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with ends() as (ours, theirs):
        ours.send(1, pickled("small"))
        ours.send(2, pickled(b"x" * (INLINE + 1)))
        assert theirs.receive().load() == "small"
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208


def taken(data: bytes) -> Any:
    """What a channel makes of these bytes, and then the end."""
    ours, theirs = socket.socketpair()
    channel = Channel(theirs)
    with ours:
        ours.sendall(data)
    try:
        return channel.receive()
    finally:
        channel.close()


PICKLE_SAYS = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError, ImportError,
    NameError, OverflowError, MemoryError, RecursionError, Corrupt,
)  # fmt: skip
"""What pickle raises at bytes that are none of its own."""


def message(value: Any) -> bytes:
    """As it goes through the socket."""
    ours, theirs = socket.socketpair()
    with theirs:
        channel = Channel(ours)
        channel.send(1, pickled(value))
        channel.close()
        return theirs.recv(1 << 20)


@given(value=st.lists(st.integers() | st.text(max_size=20), max_size=5), data=st.data())
def test_message_cut_short_anywhere_is_an_end_and_no_message(value: Any, data: st.DataObject) -> None:
    whole = message(value)
    assert taken(whole).load() == value
    with pytest.raises(EOFError):
        taken(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(value=st.lists(st.integers(), max_size=5), data=st.data())
def test_message_damaged_anywhere_ends_in_an_error_or_a_value(value: Any, data: st.DataObject) -> None:
    sent = message(value)
    whole = bytearray(sent)
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    loaded = None
    with contextlib.suppress(OSError, *PICKLE_SAYS):
        loaded = taken(bytes(whole)).load()
    assert whole != sent or loaded == value
    assert len(os.listdir("/proc/self/fd")) <= descriptors, "damage leaves nothing open"  # noqa: PTH208
    assert taken(sent).load() == value, "and the next message comes"


@given(noise=st.binary(min_size=HEADER.size, max_size=200).filter(lambda noise: noise[0] != MARK))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(Corrupt, match="begins with"):
        taken(noise)


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (HEADER.pack(MARK, 1, 1, 0, 0, 0) + struct.pack("<I", 7), "block 7 is given back"),
        (HEADER.pack(MARK, 1, 0, 0, 3, 10), "block 3 is not there"),
        (HEADER.pack(MARK, 1, 0, 0, 0, 1 << 60), "bytes is announced"),
        (HEADER.pack(MARK, 1, 0, 2, 0, 0) + array.array("Q", [1 << 63] * 2).tobytes(), "bytes is announced"),
    ],
    ids=["given-back", "no-block", "too-long", "sum-too-long"],
)
def test_message_that_cannot_be_is_refused(head: bytes, says: str) -> None:
    with pytest.raises(Corrupt, match=says):
        taken(head)


def test_length_that_is_announced_and_does_not_come_costs_no_memory() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(EOFError):
            taken(HEADER.pack(MARK, 1, 0, 0, 0, 1 << 32))
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_block_smaller_than_it_is_said_to_be_is_refused_and_closed() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(theirs)
    fd = os.memfd_create("small")
    os.ftruncate(fd, 10)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with ours:
        socket.send_fds(ours, [HEADER.pack(MARK, 1, 0, 0, 1, 1000)], [fd])
        with pytest.raises(Corrupt, match="too small"):
            channel.receive()
        assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208
    channel.close()
    os.close(fd)


@given(st.binary(max_size=40), st.integers(-2, 45), st.sampled_from([1, 20_000]))
@example(b"four", 36, 1)
@example(b"four", 37, 1)
def test_bytes_are_copied_where_they_were_to_go_or_not_at_all(source: bytes, at: int, times: int) -> None:
    target, source = bytearray(b"." * (40 * times)), source * times
    if 0 <= at <= len(target) - len(source):
        _native.copy(target, at, source)
        assert target == b"." * at + source + b"." * (len(target) - at - len(source))
    else:
        with pytest.raises(ValueError, match="do not fit into"):
            _native.copy(target, at, source)
        assert target == b"." * len(target)


def test_copying_into_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(BufferError):
        _native.copy(b"fixed", 0, b"a")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        _native.copy(bytearray(4), 0, "text")  # type: ignore[arg-type]
