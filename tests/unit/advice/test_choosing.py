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
        # a hundred calls that hold the GIL for 98 % of their time cannot gain, whatever a clock has said
        ([("threads", 2, 0.6)], {}, ("sequential", 1)),
        ([("threads", 2, 0.6)], {"gil": 0.05, "free": 0.95}, ("threads", 2)),
        ([("threads", 2, 0.6)], {"gil_from": "none", "gil": 0.0, "free": 1.0}, ("threads", 2)),
    ],
    ids=[
        "the fastest", "of equally fast kinds the cheaper", "of equally fast counts the smaller",
        "noise makes none as fast", "a small gain is worth no pool", "wrong results never",
        "the GIL bounds threads", "without it they gain", "nor where nothing is known of it",
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
    """The machine got slower after the first round; then threads were no longer a candidate."""
    slowed = ((1, 0.4), (2, 0.8), (3, 0.8), (4, 0.8))
    sequential = candidate("sequential", 1, 0.8, rounds=slowed, speedup=1.0)
    threads = candidate("threads", 2, 0.5, rounds=((1, 0.5),), speedup=0.8)
    processes = candidate(
        "processes", 2, 0.6, rounds=tuple((n, s * 0.75) for n, s in slowed), speedup=1 / 0.75
    )
    pick = choose([sequential, threads, processes], work(gil=0.1, free=0.9), 100, 2)
    assert (pick.kind, pick.workers) == ("processes", 2)


def test_no_pool_is_chosen_that_takes_more_memory_than_allowed_also_on_a_busy_machine() -> None:
    small, large = candidate("processes", 2, 0.6), candidate("processes", 8, 0.3, memory_kib=300 * 1024)
    ways = [candidate("sequential", 1, 1.0), small, large]
    assert choose(ways, work(), 100, 8).workers == 8
    pick = choose(ways, work(), 100, 8, memory_mib=200)
    assert pick.workers == 2
    assert pick.reasons[-1] == "processes with 8 workers give 3.3x, and take 300 MiB of the 200 MiB allowed"
    assert "allowed" not in choose(ways, work(), 100, 8, memory_mib=300).reasons[-1]
    busy = {"foreign": 0.9}
    ways = [
        candidate("sequential", 1, 1.0, alone_s=1.0, **busy),
        candidate("processes", 2, 3.0, alone_s=0.5, memory_kib=300 * 1024, **busy),
    ]
    pick = choose(ways, work(), 100, 2, memory_mib=200)
    assert pick.kind == "sequential"
    assert pick.reasons[-1] == "processes with 2 workers give 2.0x, and take 300 MiB of the 200 MiB allowed"


def test_another_interpreter_is_a_note_and_no_choice() -> None:
    other = candidate("free-threaded", 2, 0.4, interpreter="CPython 3.14.0 free-threaded")
    made = advice(candidate("sequential", 1, 1.0), other)
    assert made.choice.kind == "sequential"
    assert any(
        "CPython 3.14.0 free-threaded would do better: 2 threads there give 2.5x" in n for n in made.notes
    )


def test_on_a_busy_machine_the_choice_goes_by_processor_time() -> None:
    busy = {"foreign": 0.6}
    ways = [
        candidate("sequential", 1, 1.0, alone_s=1.0, **busy),
        candidate("threads", 2, 0.9, alone_s=1.0, **busy),
        candidate("processes", 2, 1.3, alone_s=0.55, **busy),
    ]
    pick = choose(ways, work(), 100, 2)
    assert (pick.kind, pick.low, pick.high) == ("processes", None, None)
    assert round(pick.speedup or 0, 2) == 1.82
    assert pick.estimated
    assert "about 1.8x on a machine left alone" in headline(advice(*ways))


@pytest.mark.parametrize(("measured", "told"), [(1.0, True), (0.6, False)])
def test_estimate_for_threads_that_were_no_faster_says_what_it_cannot_know(
    measured: float, told: bool
) -> None:
    ways = [
        candidate("sequential", 1, 1.0, alone_s=1.0, foreign=0.6),
        candidate("threads", 2, measured, alone_s=0.5, foreign=0.6),
    ]
    pick = choose(ways, work(gil=0.0, free=1.0, waiting=0.0), 100, 2)
    assert pick.kind == "threads"
    reason = "beside what else runs here threads were measured at 1.0x: if calls take one lock"
    assert any(one.startswith(reason) for one in pick.reasons) == told


def test_on_a_busy_machine_the_start_and_what_wins_it_back_are_worked_out_as_the_gain_is() -> None:
    busy = {"foreign": 0.9}
    ways = [
        candidate("sequential", 1, 1.0, alone_s=1.0, alone_start_s=0.0, alone_call_s=0.01, **busy),
        candidate(
            "processes", 2, 3.0, start_s=2.0, call_s=0.0097, alone_s=0.7, alone_start_s=0.2,
            alone_call_s=0.005, **busy,
        ),
    ]  # fmt: skip
    pick = choose(ways, work(), 100, 2)
    assert (pick.kind, round(pick.speedup or 0, 2), round(pick.break_even or 0)) == ("processes", 1.43, 40)
    assert any("200 ms to start (won back by some 40 calls)" in reason for reason in pick.reasons)


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
        "it takes 9 MB more and 20 ms to start (won back by some 4 calls)",
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


def test_start_is_won_back_by_so_many_calls_which_few_calls_do_not_have() -> None:
    ways = [candidate("sequential", 1, 1.0), candidate("threads", 2, 0.5, start_s=0.05)]
    pick = choose(ways, work(gil=0.1, free=0.9), 100, 2)
    assert pick.break_even == pytest.approx(10)
    assert any("won back by some 10 calls" in reason for reason in pick.reasons)
    assert any("fewer than some 10 calls" in when for when in again(pick, work(), ways, 2))
    assert choose(ways[:1], work(), 100, 2).break_even is None
    ways = [candidate("sequential", 1, 1.0), candidate("processes", 2, 1.2, start_s=0.7, call_s=0.005)]
    pick = choose(ways, work(), 100, 2)
    assert pick.kind == "sequential"
    assert "when there are some 210 calls or more: ProcessPool with 2 workers" in " ".join(
        again(pick, work(), ways, 2)
    )


def test_latency_of_few_calls_has_no_p99_and_that_of_a_busy_machine_is_said_to_be() -> None:
    few = [candidate("sequential", 1, 1.0, p99_s=None)]
    assert "a call has a p50 of 10 ms (too few were timed for a p99)" in choose(few, work(), 9, 2).reasons
    busy = [candidate("sequential", 1, 1.0, alone_s=0.8, foreign=0.5)]
    said = "a call has a p50 of 10 ms and a p99 of 12 ms, beside what else runs here"
    assert said in choose(busy, work(), 100, 2).reasons
