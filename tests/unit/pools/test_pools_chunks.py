"""What goes wrong with one call of a chunk costs that call, in every form of map and every kind of pool."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import poolchunks
import pytest
from poolchunks import BadBack, BadThere, Noted, Outcomes, never_in_parts, taken
from poolkinds import KINDS, Make
from pooltasks import ReadAfter, negative_raises, square

from fairlead.errors import SerializationError, WorkerDiedError
from fairlead.pools import Pool, ProcessPool
from fairlead.pools.executor.stream import Stream
from fairlead.pools.multiprocessing import Pool as LikeMultiprocessing
from fairlead.pools.process import progress
from fairlead.pools.process.progress import ChunkProgress, SharedWord
from fairlead.pools.serialization.chunks import call_chunk

pytestmark = pytest.mark.ends_and_free

ITEMS = 40
BAD = 17

FORMS: dict[str, Callable[[Pool, Any, list[Any]], Any]] = {
    "map": lambda pool, call, items: pool.map(call, items),
    "map, chunks": lambda pool, call, items: pool.map(call, items, chunksize=20),
    "map, buffer": lambda pool, call, items: pool.map(call, items, chunksize=20, buffersize=30),
    "stream": lambda pool, call, items: pool.stream(call, items),
    "stream, chunks": lambda pool, call, items: pool.stream(call, items, chunksize=20),
    "unordered": lambda pool, call, items: pool.stream(call, items, chunksize=20, ordered=False),
    "imap": lambda pool, call, items: LikeMultiprocessing(over=pool).imap(call, items, 20),
    "imap_unordered": lambda pool, call, items: LikeMultiprocessing(over=pool).imap_unordered(
        call, items, 20
    ),
}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Callable[[Pool, Any, list[Any]], Any]:
    return FORMS[request.param]


def check(found: Outcomes, log: Noted, error: type[BaseException], said: str, *, begun: bool) -> None:
    """One call has failed so, and all others have been made once and have their results."""
    (failed,) = [one for one in found if isinstance(one, BaseException)]
    assert isinstance(failed, error), found
    assert re.search(said, str(failed)), failed
    assert "call_chunk" not in str(failed)
    assert sorted(one for one in found if isinstance(one, int)) == [n for n in range(ITEMS) if n != BAD]
    assert log.made() == {n: 1 for n in range(ITEMS) if begun or n != BAD}


def test_item_that_cannot_be_sent_costs_its_call_only(sending: Make, form: Any, tmp_path: Path) -> None:
    items = [threading.Lock() if n == BAD else n for n in range(ITEMS)]
    call = Noted(tmp_path / "log")
    said = r"item <unlocked .*> for noted\(\) cannot be sent to a worker"
    check(taken(form(sending(), call, items)), call, SerializationError, said, begun=False)


def test_item_that_cannot_be_read_costs_its_call_only(sending: Make, form: Any, tmp_path: Path) -> None:
    items = [BadThere(n) if n == BAD else n for n in range(ITEMS)]
    call = Noted(tmp_path / "log")
    said = r"the worker cannot read the call of noted\(\): .*not there"
    check(taken(form(sending(), call, items)), call, SerializationError, said, begun=False)


def test_result_that_cannot_be_read_costs_its_call_only(sending: Make, form: Any, tmp_path: Path) -> None:
    call = Noted(tmp_path / "log", bad=BAD)
    said = "cannot be read here: .*not here"
    check(taken(form(sending(), call, list(range(ITEMS)))), call, SerializationError, said, begun=True)


def nested(n: int) -> Any:
    """A list that no pickler can follow, for one of the items."""
    made: Any = n
    for _ in range(200_000 if n == 2 else 0):
        made = [made]
    return made


def test_result_that_is_nested_too_deeply_costs_its_call_only(sending: Make) -> None:
    found = taken(sending().map(nested, range(5), chunksize=5))
    assert isinstance(found[2], SerializationError)
    assert "the result of nested(), a list, cannot be sent back" in str(found[2])
    assert found[:2] + found[3:] == [0, 1, 3, 4]


def test_all_of_them_in_one_chunk_and_in_pools_that_share_objects(make: Make, tmp_path: Path) -> None:
    lock = threading.Lock()
    items = [lock if n == 3 else BadThere(n) if n in {5, 6} else n for n in range(20)]
    call = Noted(tmp_path / "log", bad=9)
    pool = make()
    found = taken(pool.map(call, items, chunksize=20))
    if pool._engine.sends:
        assert [n for n, one in enumerate(found) if isinstance(one, SerializationError)] == [3, 5, 6, 9]
    else:
        assert found[3] is lock
        assert isinstance(found[9], BadBack)
    assert [one for one in found if isinstance(one, int)] == [n for n in range(20) if n not in {3, 5, 6, 9}]
    assert set(call.made().values()) == {1}


def test_function_that_cannot_be_sent_is_every_calls_failure(sending: Make) -> None:
    lock = threading.Lock()
    for error in taken(sending().map(lambda _: lock, range(5), chunksize=5)):
        assert isinstance(error, SerializationError)
        assert re.search(r"the function .*lambda.* cannot be sent", str(error))


def test_results_of_classes_of_this_program_and_large_ones_come_in_chunks(make: Make) -> None:
    numpy = pytest.importorskip("numpy", exc_type=ImportError)
    pool = make()
    if pool.statistics().kind == "interpreters":
        pytest.skip("numpy is not to be had there")
    arrays = list(pool.map(lambda n: numpy.full(5000 * n, n), range(6), chunksize=3))
    assert [int(array.sum()) for array in arrays] == [5000 * n * n for n in range(6)]


# workers that die


def test_call_that_ends_its_worker_loses_what_was_done_and_nothing_that_was_not(
    form: Any, tmp_path: Path
) -> None:
    call = Noted(tmp_path / "log", dies=BAD)
    with ProcessPool(2) as pool:
        found = taken(form(pool, call, list(range(ITEMS))))
        errors = [one for one in found if isinstance(one, BaseException)]
        assert all(isinstance(error, WorkerDiedError) for error in errors)
        assert len(errors) <= BAD + 1
        results = [one for one in found if isinstance(one, int)]
        assert set(results) >= set(range(BAD + 1, ITEMS))
        assert len(results) + len(errors) == ITEMS
        assert call.made() == dict.fromkeys(range(ITEMS), 1)
        assert pool.statistics().lost == 1


def test_error_says_how_many_calls_were_taken_along_and_why(tmp_path: Path) -> None:
    with ProcessPool(1, initializer=never_in_parts) as pool:
        found = taken(pool.map(Noted(tmp_path / "log", dies=2), range(5), chunksize=5))
        assert found[3:] == [3, 4]
        for n in (0, 1):
            assert "chunk of 5 calls; 2 of them had been done, this one too, and their" in str(found[n])
        assert "status 9, calling noted() for a chunk of 5 calls, in this call; 2 others had" in str(found[2])
        first = taken(pool.map(Noted(tmp_path / "log", dies=0), range(5), chunksize=5))
        assert str(first[0]).endswith("only this call is lost")
        assert first[1:] == [1, 2, 3, 4]


def test_several_calls_that_end_their_workers_and_the_last_of_a_chunk(tmp_path: Path) -> None:
    with ProcessPool(1) as pool:
        for dying in ({0, 1, 2, 3, 4}, {4}):
            call = Noted(tmp_path / "log")
            found = taken(pool.map(Dies(dying), range(5), chunksize=5))
            assert len(found) == 5
            assert {n for n, one in enumerate(found) if isinstance(one, WorkerDiedError)} >= dying
            del call
        many = taken(pool.map(Dies(set(range(12))), range(14), chunksize=14))  # more than MOST_UNREAD
        assert many[12:] == [12, 13]
        assert all(isinstance(one, WorkerDiedError) for one in many[:12])


class Dies:
    def __init__(self, dying: set[int]) -> None:
        self.dying = dying

    def __call__(self, n: int) -> int:
        if n in self.dying:
            poolchunks.os._exit(9)
        return n


@pytest.mark.parametrize("dies", ["once", "always"])
def test_with_retries_only_the_call_that_ends_its_worker_can_be_lost(dies: str, tmp_path: Path) -> None:
    always = dies == "always"
    call = Noted(tmp_path / "log", **{"dies" if always else "dies_once": BAD})
    with ProcessPool(2, initializer=never_in_parts) as pool:
        found = taken(pool.with_options(retries=1).map(call, range(ITEMS), chunksize=20))
    assert [n for n, one in enumerate(found) if isinstance(one, WorkerDiedError)] == ([BAD] if always else [])
    assert [one for one in found if isinstance(one, int)] == [
        n for n in range(ITEMS) if n != BAD or not always
    ]
    # those that were done before are done again, and the one that ended the worker comes last
    assert call.made() == {n: 2 if n <= BAD else 1 for n in range(ITEMS)}


def test_item_that_ends_its_worker_when_it_is_read_costs_its_call_only() -> None:
    items = [BadThere(n, ends=True) if n == 0 else n for n in range(10)]
    with ProcessPool(1) as pool:
        found = taken(pool.map(abs, items, chunksize=10))
    assert isinstance(found[0], WorkerDiedError)
    assert found[1:] == list(range(1, 10))


def test_rest_of_a_chunk_is_done_also_when_the_pool_is_closed(tmp_path: Path) -> None:
    call = Noted(tmp_path / "log", dies=2)
    with ProcessPool(1) as pool:
        stream = pool.map(call, range(ITEMS), chunksize=ITEMS)
        pool.shutdown(wait=False)
    assert taken(stream)[3:] == list(range(3, ITEMS))


def test_multiprocessings_map_raises_what_the_call_came_to(tmp_path: Path) -> None:
    with ProcessPool(1) as pool:
        like = LikeMultiprocessing(over=pool)
        with pytest.raises(WorkerDiedError, match="calling noted"):
            like.map(Noted(tmp_path / "log", dies=2), range(5), 5)
        with pytest.raises(WorkerDiedError, match="only this call is lost"):
            like.starmap(Dies({0}), [(n,) for n in range(5)], 5)


@pytest.mark.skipif("interpreters" not in KINDS, reason="has no interpreters with a pool")
def test_interpreter_that_is_lost_takes_its_chunk_along_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "read").touch()
    items = [ReadAfter(str(tmp_path / "read"), str(tmp_path / "ended")) if n == 2 else n for n in range(5)]
    with KINDS["interpreters"](max_workers=1) as pool:
        found = taken(pool.map(str, items, chunksize=5))
        assert all(isinstance(one, WorkerDiedError) for one in found)
        assert "calling str() for a chunk of 5 calls; it is not known which" in str(found[4])
        assert len(taken(pool.map(str, items, chunksize=5))) == 5
        assert pool.submit(square, 3).result() == 9


# progress


def test_progress_hands_over_what_has_waited_and_what_is_before_a_suspect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0]
    monkeypatch.setattr(progress.time, "monotonic_ns", lambda: now[0])
    word = SharedWord()
    sent: list[list[int]] = []

    def call(number: int) -> int:
        assert word.numbers[0] == number
        now[0] += progress.PART_NS // 100
        return number

    own = ChunkProgress(word, list(range(1, 1001)), 2, lambda outcomes: sent.append(list(outcomes)))
    last, _ = call_chunk(call, own.items, False, goes_on=own.goes_on)
    assert word.numbers[0] == 1001
    assert [*itertools.chain(*sent), *last] == list(range(1, 1001))
    assert (len(sent[-1]), len(last)) == (1, 1)  # the two suspects
    assert all(len(part) <= 250 for part in sent)
    assert len(sent) >= 5


def test_stream_lets_go_of_items_whose_calls_are_over(several: Make) -> None:
    stream: Stream[int] = several().map(abs, range(10), chunksize=5)
    assert stream.results() == list(range(10))


def test_results_is_a_list_of_what_is_left_and_raises_where_a_call_did(several: Make) -> None:
    stream: Stream[int] = several().map(negative_raises, [0, 1, 2, 3, 4, -5, 6, 7, 8, 9], chunksize=4)
    assert next(stream) == 0
    with pytest.raises(ValueError, match="-5"):
        stream.results()
    assert stream.results() == [6, 7, 8, 9]
    assert stream.results() == []
