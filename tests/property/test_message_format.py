"""Messages between interpreters: what goes in comes out, and what is no message is an error."""

from __future__ import annotations

from typing import Any

import pytest
from examples import share_of_examples
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead import _native
from fairlead.errors import SerializationError

pytestmark = pytest.mark.once

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


PICKLES = frozenset(b"pP")
"""Marks of what pickle reads: what it raises at damage is pickle's own."""


def outcome(message: bytes) -> bool:
    """Whether a message is a value, which then goes through again as it is; an error says "damaged"."""
    pickled = bool(PICKLES & set(message))
    refusal: BaseException | None = None
    try:
        value = _native.from_message(message)
    except MemoryError:
        return False
    except Exception as error:  # noqa: BLE001 - which ones may come is checked below
        refusal = error
    if refusal is not None:
        assert pickled or (isinstance(refusal, SerializationError) and "damaged" in str(refusal)), refusal
    elif not pickled:
        again = _native.message(value)
        assert _native.message(_native.from_message(again)) == again
    return refusal is None


@share_of_examples(0.3)
@given(VALUES)
@example((2**63 - 1, 2**63, -(2**63), -(2**63) - 1))
def test_value_comes_out_as_it_went_in(value: Any) -> None:
    assert same(_native.from_message(_native.message(value)), value)


@share_of_examples(0.5)
@given(VALUES, st.data())
def test_message_that_is_cut_anywhere_is_an_error(value: Any, data: st.DataObject) -> None:
    message = _native.message(value)
    end = data.draw(st.integers(0, len(message) - 1))
    with pytest.raises(SerializationError, match="damaged"):
        _native.from_message(message[:end])


ATOMIC = st.recursive(ATOMS, lambda inner: st.lists(inner).map(tuple), max_leaves=20)


@share_of_examples(0.5)
@given(ATOMIC, st.data())
def test_message_with_a_changed_byte_is_a_value_or_an_error(value: Any, data: st.DataObject) -> None:
    whole = _native.message(value)
    message = bytearray(whole)
    message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    outcome(bytes(message))
    assert same(_native.from_message(whole), value), "what was damaged has damaged nothing else"


@given(st.binary().filter(lambda message: b"p" not in message and b"P" not in message))
def test_any_bytes_are_a_value_or_an_error_that_says_so(message: bytes) -> None:
    outcome(message)


def test_noise_is_mostly_refused_and_sometimes_a_value() -> None:
    """That the two tests above see both ends of a message, and not errors alone."""
    none, number = _native.message(None), _native.message(7)
    assert outcome(none)
    assert outcome(number)
    assert not outcome(none + b"?")
    assert not outcome(b"")
    changed = [outcome(bytes([byte]) + number[1:]) for byte in range(256)]
    assert 0 < sum(changed) < 128
