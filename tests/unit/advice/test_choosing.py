"""The choice among candidates: its rules, one by one, and what it says of them."""

from __future__ import annotations

from typing import Any

import pytest
from advices import advice, candidate, work

from fairlead.advice.choosing import again, choose, notes
from fairlead.record.advice import headline

pytestmark = pytest.mark.ends


def chosen(*others: object, **facts: object) -> tuple[str, int]:
    pick = choose([candidate("sequential", 1, 1.0), *others], work(**facts), 100, 2)  # type: ignore[list-item]
    return pick.kind, pick.workers


WAITS = {"gil": 0.01, "free": 0.0, "waiting": 0.99}
FREE = {"gil": 0.1, "free": 0.9}
WIDE = tuple(enumerate((0.30, 0.70, 1.6), 1))


@pytest.mark.parametrize(
    ("ways", "facts", "best"),
    [
        ([("threads", 2, 1.0), ("processes", 2, 0.6), ("interpreters", 2, 0.5)], {}, ("interpreters", 2)),
        ([("processes", 8, 0.125), ("threads", 8, 0.129)], WAITS, ("threads", 8)),
        ([("processes", 2, 0.52), ("processes", 4, 0.50), ("processes", 8, 0.51)], {}, ("processes", 2)),
        ([("threads", 2, 0.70, {"rounds": WIDE}), ("processes", 2, 0.5)], FREE, ("processes", 2)),
        ([("processes", 2, 0.92)], {}, ("sequential", 1)),
        ([("threads", 2, 0.1, {"status": "wrong"}), ("processes", 2, 0.5)], FREE, ("processes", 2)),
    ],
    ids=[
        "the fastest", "of equally fast kinds the cheaper", "of equally fast counts the smaller",
        "noise makes none as fast", "a small gain is worth no pool", "wrong results never",
    ],
)  # fmt: skip
def test_choice_is_the_fastest_right_way_that_is_worth_what_it_costs(
    ways: list[Any], facts: dict[str, Any], best: tuple[str, int]
) -> None:
    made = [candidate(*way[:3], **(way[3] if len(way) > 3 else {})) for way in ways]
    assert chosen(*made, **facts) == best


def test_rounds_that_both_ran_in_are_compared_whatever_they_differ_by() -> None:
    """10 % slower in every round, however much the rounds differ from each other: that is settled."""
    swing = (1.0, 1.3, 0.8, 1.1, 0.9)
    slower = candidate("threads", 2, 0.55, rounds=tuple((n, 0.55 * s) for n, s in enumerate(swing)))
    faster = candidate("processes", 2, 0.50, rounds=tuple((n, 0.50 * s) for n, s in enumerate(swing)))
    assert chosen(slower, faster, gil=0.1, free=0.9) == ("processes", 2)
    pick = choose([candidate("sequential", 1, 1.0), slower, faster], work(gil=0.1, free=0.9), 100, 2)
    assert pick.loss < 0.01


def test_no_pool_is_chosen_that_takes_more_memory_than_allowed() -> None:
    small, large = candidate("processes", 2, 0.6), candidate("processes", 8, 0.3, memory_kib=300 * 1024)
    ways = [candidate("sequential", 1, 1.0), small, large]
    assert choose(ways, work(), 100, 8).workers == 8
    pick = choose(ways, work(), 100, 8, memory_mib=200)
    assert pick.workers == 2
    assert pick.reasons[-1] == "processes with 8 workers give 3.3x, and take 300 MiB of the 200 MiB allowed"
    assert "allowed" not in choose(ways, work(), 100, 8, memory_mib=300).reasons[-1]


def test_another_interpreter_is_a_note_and_no_choice() -> None:
    other = candidate("free-threaded", 2, 0.4, interpreter="CPython 3.14.0 free-threaded")
    made = advice(candidate("sequential", 1, 1.0), other)
    assert made.choice.kind == "sequential"
    assert any(
        "CPython 3.14.0 free-threaded would do better: 2 threads there give 2.5x" in n for n in made.notes
    )


def test_lock_of_which_each_process_would_have_its_own_is_among_the_reasons() -> None:
    ways = candidate("sequential", 1, 1.0), candidate("processes", 2, 0.5)
    for guarded in (True, False):
        pick = choose(ways, work(guarded=guarded), 100, 2)
        assert any("each worker would have its own" in one for one in pick.reasons) == guarded


def test_reasons_say_what_speaks_for_it_and_against_the_others() -> None:
    made = advice()
    assert headline(made) == "InterpreterPool, 2 workers: 1.9x (1.8 to 1.9)"
    assert made.choice.reasons == (
        "calls take 10 ms, nearly all of it computing with the GIL held",
        "a call has a p50 of 10 ms and a p99 of 20 ms, without a pool 10 ms and 12 ms",
        "it takes 9 MB more and 20 ms to start, and is worth it from some 6 calls on",
        "threads give 1.0x, because calls hold the GIL 98 % of the time",
        "processes give 1.6x",
    )
    assert str(made).startswith(headline(made))


def test_shared_state_results_that_vary_and_large_ones_are_named() -> None:
    ways = candidate("threads", 2, 0.5), candidate("processes", 2, 0.9)
    pick = choose([candidate("sequential", 1, 1.0), *ways], work(gil=0.1, free=0.9, result_bytes=3e6), 100, 2)
    assert pick.kind == "threads"
    assert "processes give 1.1x, because each result is 3.0 MB" in pick.reasons
    facts = work(accumulates=("total",))
    ways = [
        candidate("sequential", 1, 1.0),
        candidate("threads", 0, None, status="refused", reason="calls change what they share (total)"),
    ]
    pick = choose(ways, facts, 100, 2)
    assert "every call changes what they share (total)" in pick.reasons[2]
    assert "Have them return what they find" in " ".join(notes(pick, facts, ways, 10))
    pick = choose([candidate("sequential", 1, 1.0)], work(varies=True), 100, 2)
    assert "no results could be compared" in " ".join(
        notes(pick, work(varies=True), [candidate("sequential", 1, 1.0)], 10)
    )


def test_answer_says_from_how_many_calls_on_a_pool_is_worth_it() -> None:
    """10 ms a call in turn; the pool takes 5 ms a call and 100 ms once: 1.15 x as fast from 27 calls on."""
    alone = candidate("sequential", 1, 1.0)
    pool = candidate("threads", 2, 0.6, start_s=0.04, once_s=0.06)
    free = {"gil": 0.1, "free": 0.9}
    pick = choose([alone, pool], work(**free), 100, 2)
    assert pick.kind == "threads"
    assert pick.break_even == pytest.approx(1.15 * 0.1 / (0.01 - 1.15 * 0.005))
    said = "it takes 40 ms to start and 60 ms for first calls, and is worth it from some 27 calls on"
    assert said in pick.reasons
    assert any("fewer than some 27 calls" in when for when in again(pick, work(**free), 2))


def test_no_pool_says_from_how_many_calls_on_there_is_one_or_that_there_is_none() -> None:
    alone = candidate("sequential", 1, 0.4, call_s=0.01, speedup=1.0)
    slow = candidate("processes", 4, 0.8, start_s=0.6, call_s=0.005, speedup=0.5)
    slower = candidate("interpreters", 2, 1.2, start_s=1.0, call_s=0.005, speedup=1 / 3)
    pick = choose([alone, slow, slower], work(), 40, 2)
    assert pick.kind == "sequential"
    assert pick.break_even == pytest.approx(1.15 * 0.6 / (0.01 - 1.15 * 0.005))
    assert (
        "a pool is worth it from some 160 calls on (ProcessPool, 4 workers), and there are 40" in pick.reasons
    )
    assert "more than some 160 calls" in " ".join(again(pick, work(), 2))
    pick = choose([candidate("sequential", 1, 1.0), candidate("processes", 2, 1.1)], work(), 100, 2)
    assert pick.break_even is None
    assert "no pool is worth it, however many calls there are" in pick.reasons
    assert choose([candidate("sequential", 1, 1.0)], work(), 100, 2).break_even is None


@pytest.mark.parametrize("gain", [1.10, 1.14, 1.16, 1.20])
@pytest.mark.parametrize("better", [1.0, 1.03])
def test_choice_and_the_calls_from_which_on_a_pool_is_worth_it_agree(gain: float, better: float) -> None:
    """Also of two pools of which one alone gains what a pool has to."""
    ways = [
        candidate("sequential", 1, 1.0),
        candidate("threads", 2, 1 / gain, start_s=0.05),
        candidate("processes", 2, 1 / gain / better, start_s=0.05),
    ]
    pick = choose(ways, work(gil=0.1, free=0.9), 100, 2)
    assert pick.break_even is not None
    assert (pick.kind != "sequential") == (gain * better >= 1.15) == (pick.break_even <= 100)


def test_calls_that_cost_less_in_a_pool_are_named_where_the_cores_do_not_explain_the_gain() -> None:
    """As those whose memory is touched for the first time in each call without a pool."""
    ways = [candidate("sequential", 1, 1.0, cpu_call_s=0.03), candidate("threads", 2, 0.25, cpu_call_s=0.012)]
    said = "a call takes 12 ms of processor time in the pool, and 30 ms without one: the cores are"
    pick = choose(ways, work(gil=0.1, free=0.9), 100, 2)
    assert any(one.startswith(said) for one in pick.reasons)


def test_latency_of_few_calls_has_no_p99() -> None:
    few = [candidate("sequential", 1, 1.0, p99_s=None)]
    assert "a call has a p50 of 10 ms (too few were timed for a p99)" in choose(few, work(), 9, 2).reasons


def test_loss_of_one_or_two_rounds_is_not_known() -> None:
    for count in (1, 2, 3):
        rounds = tuple((number, 1.0) for number in range(count))
        other = tuple((number, 0.5) for number in range(count))
        ways = [
            candidate("sequential", 1, 1.0, rounds=rounds),
            candidate("processes", 2, 0.5, rounds=other),
            candidate("threads", 2, 0.99, rounds=other[:1]),
        ]
        assert (choose(ways, work(), 100, 2).loss is None) == (count < 3)
