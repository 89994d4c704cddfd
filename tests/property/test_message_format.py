"""Messages between interpreters: what goes in comes out, and what is no message is an error."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead import _native
from fairlead.errors import CannotSend

ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.text(),
    st.binary(),
    st.binary().map(bytearray),
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.lists(inner).map(tuple) | st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(VALUES)
def test_value_comes_out_as_it_went_in(value: Any) -> None:
    assert same(_native.from_message(_native.message(value)), value)


@given(VALUES, st.data())
def test_message_that_is_cut_anywhere_is_an_error(value: Any, data: st.DataObject) -> None:
    message = _native.message(value)
    end = data.draw(st.integers(0, len(message) - 1))
    with pytest.raises(CannotSend, match="damaged"):
        _native.from_message(message[:end])


ATOMIC = st.recursive(ATOMS, lambda inner: st.lists(inner).map(tuple), max_leaves=20)


@given(ATOMIC, st.data())
def test_message_with_a_changed_byte_is_a_value_or_an_error(value: Any, data: st.DataObject) -> None:
    message = bytearray(_native.message(value))
    message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(Exception):  # a pickle in it may raise what it likes
        _native.from_message(bytes(message))


@given(st.binary().filter(lambda message: b"p" not in message and b"P" not in message))
def test_any_bytes_are_a_value_or_an_error_that_says_so(message: bytes) -> None:
    with contextlib.suppress(CannotSend, MemoryError):
        _native.from_message(message)
