"""Chunks with bad calls of all kinds: each call has one outcome, and none is made twice unless asked."""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from examples import share_of_examples
from hypothesis import example, given
from hypothesis import strategies as st
from poolchunks import BadThere, Noted, taken

from fairlead.errors import SerializationError, WorkerDiedError
from fairlead.pools import ProcessPool

pytestmark = [pytest.mark.ends_and_free, pytest.mark.timeout(120)]

KINDS = ("plain", "plain", "plain", "plain", "unsendable", "unreadable", "back", "dies")


class Several(Noted):
    """Ends its worker, or returns what cannot be read, for some of the items."""

    def __init__(self, log: Path, kinds: list[str]) -> None:
        super().__init__(log)
        self.kinds = kinds

    def __call__(self, n: Any) -> Any:
        if isinstance(n, int):
            self.dies = n if self.kinds[n] == "dies" else -1
            self.bad = n if self.kinds[n] == "back" else -1
        return super().__call__(n)


@share_of_examples(0.05)
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=8),
    chunksize=st.integers(1, 8),
    retries=st.integers(0, 1),
)
@example(["plain", "dies", "plain", "dies", "plain"], 5, 1)
@example(["back", "dies", "unreadable", "plain"], 4, 0)
def test_each_call_of_a_chunk_has_one_outcome(kinds: list[str], chunksize: int, retries: int) -> None:
    items = [
        threading.Lock() if kind == "unsendable" else BadThere(n) if kind == "unreadable" else n
        for n, kind in enumerate(kinds)
    ]
    place = Path(tempfile.mkdtemp(prefix="fairlead-"))
    try:
        (place / "log").touch()
        call = Several(place / "log", kinds)
        with ProcessPool(1) as pool:
            found = taken(pool.with_options(retries=retries).map(call, items, chunksize=chunksize))
        made = call.made()
    finally:
        shutil.rmtree(place)
    assert len(found) == len(kinds)
    for n, (kind, one) in enumerate(zip(kinds, found, strict=True)):
        behind = kinds[n + 1 : (n // chunksize + 1) * chunksize]
        lost = isinstance(one, WorkerDiedError)
        if kind == "dies":
            assert lost
            assert made[n] == 1 + retries
        elif kind == "unsendable":
            assert isinstance(one, SerializationError)
            assert n not in made
        elif kind == "unreadable":  # to read it is a part of its call
            assert isinstance(one, SerializationError) or (lost and "dies" in behind and not retries)
            assert n not in made
        else:
            assert lost or one == n or (kind == "back" and isinstance(one, SerializationError))
            assert not lost or ("dies" in behind and not retries)
            assert made[n] == 1 or (made[n] <= 1 + retries and "dies" in behind)
