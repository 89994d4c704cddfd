"""Findings: never an error, each found where it is, and the same for a longer run of the same program."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from gilprograms import example
from gilsim import MS, Simulation
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.gil.analysis.analyse import analyse
from fairlead.gil.analysis.findings import find
from fairlead.record.gil_summary import HISTOGRAM_BUCKETS, Blame, Finding, GilSummary, GilThread
from fairlead.record.recording import Recording

pytestmark = pytest.mark.once

counts = st.integers(-5, 10**9)
seconds = st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 100)
histograms = st.just(()) | st.lists(counts, min_size=HISTOGRAM_BUCKETS, max_size=HISTOGRAM_BUCKETS).map(tuple)
threads = st.builds(
    GilThread,
    serial=st.integers(0, 5),
    name=st.text(max_size=4),
    native_id=counts,
    gil=st.integers(0, 2),
    acquisitions=counts,
    contended=counts,
    held_seconds=seconds,
    held_off_cpu_seconds=st.none() | seconds,
    held_asleep_seconds=st.none() | seconds,
    waited_seconds=seconds,
    max_wait_seconds=seconds,
    max_held_seconds=seconds,
    overrun_seconds=st.none() | seconds,
    overrun_off_cpu_seconds=st.none() | seconds,
    max_overrun_seconds=st.none() | seconds,
    forced_drops=counts,
    voluntary_drops=counts,
    wait_histogram=histograms,
)
cells = st.builds(
    Blame, gil=st.integers(0, 2), waiter=st.integers(0, 5), holder=st.integers(0, 5), seconds=seconds
)


@settings(max_examples=150, deadline=None)
@given(st.lists(threads, max_size=12), seconds, seconds | st.just(0.005), st.lists(cells, max_size=8))
def test_find_any_counters_never_raises(
    threads: list[GilThread], wall: float, interval: float, blame: list[Blame]
) -> None:
    for finding in find(threads, wall_seconds=wall, switch_interval=interval, blame=blame):
        assert finding.title
        assert "\n" not in finding.title
        assert finding.summary
        assert finding.advice.endswith(".")
        assert finding.evidence


@cache
def observed(kind: str, seed: int, interval_ns: int = 5 * MS) -> GilSummary:
    """What is said of an example, which is simulated once for all tests."""
    ms = 250 if kind == "switch-storm" else 1000
    simulation = Simulation(example(kind), until_ns=ms * MS, interval_ns=interval_ns, seed=seed)
    with TemporaryDirectory() as directory:
        return analyse(Recording(simulation.writer().save(Path(directory) / "a.flrec")))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    "kind", ["convoy", "long-hold", "saturation", "lock-square", "switch-storm", "not-the-gil"]
)
def test_find_example_of_each_kind_is_what_it_is(kind: str, seed: int) -> None:
    found = [finding.kind for finding in observed(kind, seed).findings]
    assert found == [kind], f"seed {seed}"


@pytest.mark.parametrize("kind", ["convoy", "long-hold", "saturation", "switch-storm", "not-the-gil"])
def test_find_from_counters_alone_says_the_same(kind: str) -> None:
    summary = observed(kind, 1)
    found = find(summary.threads, wall_seconds=summary.wall_seconds, switch_interval=0.005)
    assert [finding.kind for finding in found] == [kind]


@pytest.mark.parametrize("factor", [3, 60, 3600])
@pytest.mark.parametrize("kind", ["convoy", "saturation", "lock-square", "switch-storm", "not-the-gil"])
def test_find_same_behaviour_for_longer_gives_the_same_kinds(kind: str, factor: int) -> None:
    summary = observed(kind, 1)
    sums = ("acquisitions", "contended", "held_seconds", "waited_seconds", "forced_drops", "voluntary_drops")
    longer = [
        dataclasses.replace(
            thread,
            **{name: getattr(thread, name) * factor for name in sums},
            wait_histogram=tuple(count * factor for count in thread.wait_histogram),
        )
        for thread in summary.threads
    ]
    found = find(longer, wall_seconds=summary.wall_seconds * factor, switch_interval=0.005)
    assert [finding.kind for finding in found] == [kind]


@pytest.mark.parametrize("interval_ns", [MS, 5 * MS, 20 * MS])
def test_find_convoy_with_other_switch_interval_is_found(interval_ns: int) -> None:
    found = observed("convoy", 1, interval_ns).findings
    assert [finding.kind for finding in found] == ["convoy"]
    assert found[0].evidence["mean_wait_ms"] == pytest.approx(interval_ns / MS, rel=0.2)


def test_find_convoy_names_victim_culprit_and_cost() -> None:
    summary = observed("convoy", 1)
    (finding,) = summary.findings
    io = next(thread for thread in summary.threads if thread.name == "io")
    assert finding.threads == ("cpu", "io")
    assert finding.cost_seconds == io.waited_seconds
    assert finding.evidence["share_of_it_behind_computing_threads"] == pytest.approx(1, abs=0.05)
    assert "io needs the GIL for 20 us at a time" in finding.summary


def test_find_long_hold_names_function_and_line() -> None:
    (finding,) = observed("long-hold", 1).findings
    assert finding.threads == ("c-code",)
    assert (finding.evidence["function"], finding.evidence["file"], finding.evidence["line"]) == (
        "work",
        "c-code.py",
        10,
    )
    assert "work (c-code.py:10)" in finding.summary


def thread(serial: int, name: str, held: float = 0.0, **figures: float) -> GilThread:
    return GilThread(serial=serial, name=name, native_id=serial, held_seconds=held, **figures)  # type: ignore[arg-type]


def blamed(*cells: tuple[int, int, float]) -> list[Blame]:
    return [Blame(gil=0, waiter=waiter, holder=holder, seconds=s) for waiter, holder, s in cells]


def finds(*threads: GilThread, wall: float = 1, blame: Sequence[Blame] = ()) -> tuple[Finding, ...]:
    return find(threads, wall_seconds=wall, switch_interval=0.005, blame=blame)


ASKED = {"acquisitions": 5, "max_held_seconds": 0.2, "overrun_seconds": 0.15, "max_overrun_seconds": 0.15}
"""A thread that went on for so long after it was asked to let go."""


@pytest.mark.parametrize(
    ("figures", "kind"),
    [
        ({"held_off_cpu_seconds": 0.14}, "not-the-gil"),  # the kernel caused it
        # what a call that nobody asked to end was off the CPU says nothing of one that was asked
        ({"held_off_cpu_seconds": 0.4, "overrun_off_cpu_seconds": 0.05}, "long-hold"),
        ({"held_off_cpu_seconds": 0.14, "held_asleep_seconds": 0.12}, "long-hold"),
    ],
)
def test_find_long_hold_is_said_of_what_c_code_did(figures: dict[str, float], kind: str) -> None:
    (finding,) = finds(thread(1, "a", 0.9, **ASKED, **figures))
    assert finding.kind == kind
    if asleep := figures.get("held_asleep_seconds"):
        assert finding.evidence["asleep_in_holds_seconds"] == asleep
        assert "sleeps" in finding.summary


def test_find_long_hold_is_said_while_it_lasts() -> None:
    # half a second out of the middle of a C call of two seconds: nobody took the GIL, or let it go
    holder = thread(1, "parser", 0.5, held_off_cpu_seconds=0.1, overrun_seconds=0.5, max_overrun_seconds=2.0)
    (finding,) = finds(holder, thread(2, "io", waited_seconds=0.5, max_wait_seconds=2.0), wall=0.5)
    assert (finding.kind, finding.title) == ("long-hold", "parser keeps the GIL for 2 s")


@pytest.mark.parametrize(
    ("overrun_off_cpu", "kinds"), [(0.5, ["long-hold"]), (0.99, ["convoy"])], ids=["C code", "no core"]
)
def test_find_convoy_is_behind_holders_that_drop_when_asked(overrun_off_cpu: float, kinds: list[str]) -> None:
    """Half of the holds are not asked to end, so that more was held before requests than after them. That
    holders had no core is said, too."""
    holder = thread(
        *(1, "a", 2.72), acquisitions=49, max_held_seconds=0.13, overrun_seconds=1.0,
        overrun_off_cpu_seconds=overrun_off_cpu, max_overrun_seconds=0.12, held_off_cpu_seconds=1.52,
        forced_drops=20,
    )  # fmt: skip
    brief = thread(
        *(2, "b", 0.2), acquisitions=900, contended=33, waited_seconds=1.24, max_wait_seconds=0.16,
        max_held_seconds=0.001, overrun_seconds=0.0,
    )  # fmt: skip
    assert sorted(finding.kind for finding in finds(holder, brief, wall=5)) == [*kinds, "no-core"]


def test_find_thread_that_sleeps_with_the_gil_is_neither_computing_nor_a_convoy() -> None:
    asleep = thread(
        *(1, "nap", 0.6), acquisitions=10, max_held_seconds=0.06, overrun_seconds=0.5,
        max_overrun_seconds=0.05, held_off_cpu_seconds=0.6, held_asleep_seconds=0.59,
    )  # fmt: skip
    busy = thread(
        *(2, "busy", 0.38), acquisitions=20, contended=20, waited_seconds=0.6, max_wait_seconds=0.06,
        max_held_seconds=0.02, overrun_seconds=0.0,
    )  # fmt: skip
    brief = thread(
        *(3, "brief", 0.001), acquisitions=20, contended=3, waited_seconds=0.16, max_wait_seconds=0.06,
        max_held_seconds=0.0001, overrun_seconds=0.0,
    )  # fmt: skip
    found = finds(asleep, busy, brief, blame=blamed((3, 1, 0.15), (3, 2, 0.01)))
    assert [(finding.kind, finding.threads) for finding in found] == [("long-hold", ("nap",))]
    assert {finding.kind for finding in finds(asleep, busy, brief)} == {"long-hold", "convoy"}


def test_find_one_starved_thread_is_named() -> None:
    peers = [
        thread(
            *(serial, name, 0.5), acquisitions=100, contended=100, waited_seconds=0.5,
            max_wait_seconds=longest, max_held_seconds=0.006, overrun_seconds=0.0, max_overrun_seconds=0.0,
        )
        for serial, name, longest in ((1, "a", 0.012), (2, "b", 0.3), (3, "c", 0.011))
    ]  # fmt: skip
    (starved,) = [finding for finding in finds(*peers, wall=2) if finding.kind == "starvation"]
    assert (starved.threads[0], starved.title) == ("b", "b once waited 300 ms for its turn")
    assert starved.evidence["longest_wait_ms"] == pytest.approx(300)


@pytest.mark.parametrize(("off_cpu", "asleep"), [(0.2, 0.0), (1.7, 0.0), (1.7, 1.5)])
def test_holder_without_a_core_is_no_saturation(off_cpu: float, asleep: float) -> None:
    """It was preempted or stopped; a call into C that sleeps is another matter."""
    counts = {"acquisitions": 20, "contended": 20, "max_held_seconds": 0.3}
    holder = thread(
        *(1, "holder", 1.9), **counts, waited_seconds=0.1, max_wait_seconds=0.006,
        held_off_cpu_seconds=off_cpu, held_asleep_seconds=asleep,
    )  # fmt: skip
    other = thread(
        *(2, "other", 0.05), **counts, waited_seconds=1.8, max_wait_seconds=0.3,
        held_off_cpu_seconds=0.0, held_asleep_seconds=0.0,
    )  # fmt: skip
    found = finds(holder, other, wall=2)
    if off_cpu - asleep < 1:
        assert "no-core" not in {finding.kind for finding in found}
    else:
        assert (found[0].kind, found[0].threads) == ("no-core", ("holder",))
        assert found[0].title == "holder had no core for 1.7 s of the 1.95 s that the GIL was held"
        assert found[0].cost_seconds == pytest.approx(1.9 * 1.7 / 1.95)


@pytest.mark.parametrize("free", [0.0, 0.1, 0.47])
def test_waiting_for_a_core_is_not_starvation(free: float) -> None:
    """What it waited with the GIL free may all have been in its longest wait."""
    counts = {"acquisitions": 100, "contended": 100, "waited_seconds": 0.5, "max_held_seconds": 0.006}
    threads = [thread(1, "unlucky", 0.1, **counts, max_wait_seconds=0.4)]
    threads.append(thread(2, "peer", 0.1, **counts, max_wait_seconds=0.012))
    found = finds(*threads, wall=2, blame=blamed((1, 2, 0.5 - free), (1, 0, free)))
    kinds = {finding.kind: finding for finding in found}
    if free < 0.4:
        assert kinds["starvation"].evidence["longest_wait_ms"] == pytest.approx(400)
        assert "no-core" not in kinds
    else:
        assert "starvation" not in kinds
        assert kinds["no-core"].threads == ("unlucky",)
        assert kinds["no-core"].evidence["waited_for_a_core_seconds"] == pytest.approx(0.47)
        assert "waited for a core for 470 ms of the 500 ms" in kinds["no-core"].summary


@pytest.mark.parametrize("kind", ["convoy", "lock-square"])
@pytest.mark.parametrize("policy", ["stock", "interactive"])
def test_advice_of_a_scheduled_program_is_not_to_schedule_it(kind: str, policy: str) -> None:
    summary = observed(kind, 1)
    found = find(
        summary.threads,
        wall_seconds=summary.wall_seconds,
        switch_interval=0.005,
        blame=summary.blame,
        policy=policy,
    )
    advice = next(finding.advice for finding in found if finding.kind == kind)
    assert ("fairlead run" in advice) == (policy == "stock")


def test_find_nothing_observed_says_nothing() -> None:
    assert finds() == ()


def test_a_convoy_behind_a_pool_names_those_with_short_tasks_too() -> None:
    """One thread computes for long at a time, the other only now and then: both are waited for."""
    threads = [
        thread(serial, name, held, acquisitions=turns, contended=turns // 2, waited_seconds=waited)
        for serial, name, turns, held, waited in (
            (1, "pool-1", 80, 0.24, 0.4),
            (2, "pool-2", 80, 0.16, 0.4),
            (3, "main", 200, 0.01, 0.6),
        )
    ]
    found = finds(*threads, blame=blamed((3, 1, 0.2), (3, 2, 0.3), (3, 0, 0.1)))
    convoy = next(finding for finding in found if finding.kind == "convoy")
    assert convoy.threads == ("pool-2", "pool-1", "main")
    assert convoy.evidence["share_of_it_behind_computing_threads"] == pytest.approx(0.5 / 0.6)


@pytest.mark.parametrize("behind_each_other", [0.1, 0.9])
def test_a_square_is_threads_that_wait_behind_each_other(behind_each_other: float) -> None:
    """A server, whose poller has many turns and its workers few, beside calls into C that keep the GIL."""
    threads = [
        thread(
            *(serial, name, held), acquisitions=turns, contended=50, waited_seconds=waited,
            max_wait_seconds=0.13, max_held_seconds=overrun / 20, overrun_seconds=overrun,
            max_overrun_seconds=overrun / 20,
        )
        for serial, name, turns, held, waited, overrun in (
            (1, "snapshots", 56, 2.4, 0.1, 2.2),
            (2, "poller", 5300, 0.34, 1.9, 0.0),
            *((serial, f"worker-{serial}", 150, 0.025, 0.35, 0.0) for serial in range(3, 11)),
        )
    ]  # fmt: skip
    cells = [
        (waiter.serial, holder, share * waiter.waited_seconds)
        for waiter in threads[1:]
        for holder, share in ((1, 1 - behind_each_other), (3, behind_each_other))
    ]
    found = {finding.kind for finding in finds(*threads, wall=4.2, blame=blamed(*cells))}
    assert "long-hold" in found
    assert ("lock-square" in found) == (behind_each_other > 0.5)


def test_a_gil_that_one_thread_keeps_busy_is_described_by_that_thread() -> None:
    compute = thread(1, "compute", 0.96, acquisitions=20, forced_drops=20)
    (found,) = finds(compute, thread(2, "main", 0.001, acquisitions=5, contended=5, waited_seconds=0.15))
    assert (found.kind, found.threads) == ("saturation", ("compute",))
    assert (
        found.title == "the GIL is held 96 % of the time, and threads waited 150 ms for it: compute computes"
    )
