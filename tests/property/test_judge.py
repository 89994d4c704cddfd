"""The judge: never an error, each cause found where it is, and the same for a longer run of the program."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from gilprograms import example
from gilsim import MS, Simulation
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.gil.analysis.analyse import analyse
from fairlead.judge.evidence import Evidence
from fairlead.judge.verdict import judge
from fairlead.record import places
from fairlead.record.gil_summary import (
    HISTOGRAM_BUCKETS,
    Blame,
    Collection,
    Finding,
    GilSummary,
    GilThread,
    LoopDelays,
    Overrun,
    StackLoss,
)
from fairlead.record.recording import Recording

pytestmark = pytest.mark.once

counts = st.integers(-5, 10**9)
seconds = st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 100)
histograms = st.just(()) | st.lists(counts, min_size=HISTOGRAM_BUCKETS, max_size=HISTOGRAM_BUCKETS).map(tuple)
serials = st.integers(0, 5)
gils = st.integers(0, 2)
frames = st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3), counts), max_size=2).map(tuple)
threads = st.builds(
    GilThread,
    serial=serials,
    name=st.text(max_size=4),
    native_id=counts,
    gil=gils,
    acquisitions=counts,
    contended=counts,
    held_seconds=seconds,
    held_off_cpu_seconds=st.none() | seconds,
    held_asleep_seconds=st.none() | seconds,
    waited_seconds=seconds,
    max_wait_seconds=seconds,
    max_held_seconds=seconds,
    overrun_seconds=st.none() | seconds,
    max_overrun_seconds=st.none() | seconds,
    forced_drops=counts,
    voluntary_drops=counts,
    wait_histogram=histograms,
)
cells = st.builds(
    Blame,
    gil=gils,
    waiter=serials,
    holder=serials,
    seconds=seconds,
    asked_seconds=seconds,
    late_seconds=seconds,
    collecting_seconds=seconds,
    coreless_seconds=seconds,
)
losses = st.builds(
    StackLoss, gil=gils, waiter=serials, holder=serials, holder_frames=frames, waiter_frames=frames,
    seconds=seconds, waits=counts, max_seconds=seconds,
)  # fmt: skip
overruns = st.builds(
    Overrun, gil=gils, holder=serials, frames=frames, holds=counts, seconds=seconds, asleep_seconds=seconds,
    max_seconds=seconds,
)  # fmt: skip
collections = st.builds(
    Collection, thread=serials, generation=serials, frames=frames, runs=counts, seconds=seconds,
    max_seconds=seconds,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.builds(
        Evidence,
        threads=st.lists(threads, max_size=12).map(tuple),
        wall_seconds=seconds,
        switch_interval=seconds | st.just(0.005),
        blame=st.lists(cells, max_size=8).map(tuple),
        stacks=st.lists(losses, max_size=4).map(tuple),
        overruns=st.lists(overruns, max_size=4).map(tuple),
        collections=st.lists(collections, max_size=4).map(tuple),
    )
)
def test_judge_any_evidence_never_raises(evidence: Evidence) -> None:
    for finding in judge(evidence):
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


def again(summary: GilSummary, **changes: Any) -> tuple[Finding, ...]:
    """The verdict on a summary's numbers."""
    known: dict[str, Any] = {
        "threads": summary.threads,
        "wall_seconds": summary.wall_seconds,
        "switch_interval": 0.005,
        "blame": summary.blame,
        "stacks": summary.stacks,
        "overruns": summary.overruns,
    }
    return judge(Evidence(**known | changes))


KINDS = ["convoy", "long-hold", "saturation", "lock-square", "switch-storm", "not-the-gil"]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_example_of_each_kind_is_what_it_is(kind: str, seed: int) -> None:
    found = [finding.kind for finding in observed(kind, seed).findings]
    assert found == [kind], f"seed {seed}"


@pytest.mark.parametrize("factor", [3, 60, 3600])
@pytest.mark.parametrize("kind", KINDS)
def test_same_behaviour_for_longer_gives_the_same_kinds(kind: str, factor: int) -> None:
    summary = observed(kind, 1)

    def longer(record: Any) -> Any:
        kept = ("max_seconds", "max_wait_seconds", "max_held_seconds", "max_overrun_seconds")
        grown = {
            field.name: value * factor
            for field in dataclasses.fields(record)
            if (field.name.endswith("seconds") or field.name in ("acquisitions", "contended", "holds"))
            and field.name not in kept
            and (value := getattr(record, field.name)) is not None
        }
        return dataclasses.replace(record, **grown)

    found = again(
        summary,
        threads=tuple(map(longer, summary.threads)),
        blame=tuple(map(longer, summary.blame)),
        overruns=tuple(map(longer, summary.overruns)),
        wall_seconds=summary.wall_seconds * factor,
    )
    assert [finding.kind for finding in found] == [kind]


@pytest.mark.parametrize("interval_ns", [MS, 5 * MS, 15 * MS])
def test_convoy_with_other_switch_interval_is_found(interval_ns: int) -> None:
    found = observed("convoy", 1, interval_ns).findings
    assert [finding.kind for finding in found] == ["convoy"]
    assert found[0].evidence["mean_wait_ms"] == pytest.approx(interval_ns / MS, rel=0.2)


def test_long_switch_interval_is_named_as_what_threads_wait_for() -> None:
    summary = observed("convoy", 1)
    (finding,) = again(summary, switch_interval=0.02)
    assert finding.kind == "switch-interval"
    assert "sys.setswitchinterval" in finding.advice


def test_convoy_names_victim_culprit_and_cost() -> None:
    summary = observed("convoy", 1)
    (finding,) = summary.findings
    io = next(thread for thread in summary.threads if thread.name == "io")
    assert finding.threads == ("cpu", "io")
    assert finding.cost_seconds == pytest.approx(io.waited_seconds, rel=0.05)
    assert "io needs the GIL for 20 us at a time" in finding.summary


def test_long_hold_names_function_and_line() -> None:
    (finding,) = observed("long-hold", 1).findings
    assert finding.threads == ("c-code",)
    evidence = finding.evidence
    assert (evidence["function"], evidence["file"], evidence["line"]) == ("work", "c-code.py", 10)
    assert "work (c-code.py:10)" in finding.title


LIBRARY = ("JSONEncoder.iterencode", "/usr/lib/python3.13/json/encoder.py", 258)
PACKAGE = ("dispatch", "/srv/venv/lib/python3.13/site-packages/flask/app.py", 9)
OWN = ("export", "/srv/shop/views.py", 31)
OTHER = ("Worker.run", "/srv/shop/jobs.py", 7)
ROOT = ("Thread.run", "/usr/lib/python3.13/threading.py", 1012)


def thread(serial: int, name: str, held: float = 0.0, **figures: Any) -> GilThread:
    return GilThread(serial=serial, name=name, native_id=serial, held_seconds=held, **figures)


def overrun(holder: int, seconds_: float, *frames_: Any, **figures: Any) -> Overrun:
    known: dict[str, Any] = {"gil": 0, "holds": 3, "asleep_seconds": 0.0, "max_seconds": 0.15}
    return Overrun(holder=holder, frames=frames_, seconds=seconds_, **known | figures)


def finds(*threads_: GilThread, wall: float = 1, **evidence: Any) -> tuple[Finding, ...]:
    return judge(Evidence(threads=threads_, wall_seconds=wall, switch_interval=0.005, **evidence))


def test_long_hold_names_the_users_own_line_and_what_it_called() -> None:
    (finding,) = finds(thread(1, "a", 0.9), overruns=(overrun(1, 0.4, LIBRARY, OWN, PACKAGE, ROOT),))
    assert "in JSONEncoder.iterencode, called from export (views.py:31)" in finding.title
    assert (finding.evidence["file"], finding.evidence["line"]) == OWN[1:]


def test_long_hold_of_which_no_stack_was_taken_is_found_in_the_blame() -> None:
    blame = Blame(gil=0, waiter=2, holder=1, seconds=0.5, asked_seconds=0.02, late_seconds=0.48)
    holder = thread(1, "a", 0.9, forced_drops=4, max_overrun_seconds=0.2)
    (finding,) = finds(holder, thread(2, "b", 0.01, waited_seconds=0.5, contended=4), blame=(blame,))
    assert (finding.kind, finding.title) == ("long-hold", "a keeps the GIL for up to 200 ms, 4 times")


def test_one_call_has_one_finding_whichever_threads_make_it() -> None:
    workers = [thread(serial, f"worker-{serial}", 0.2) for serial in range(1, 6)]
    calls = tuple(overrun(worker.serial, 0.1, OWN, ROOT) for worker in workers)
    (finding,) = finds(*workers, overruns=calls)
    assert finding.cost_seconds == pytest.approx(0.5)
    assert len(finding.threads) == 5


@pytest.mark.parametrize("asleep", [0.0, 0.4])
def test_long_hold_says_whether_the_call_sleeps(asleep: float) -> None:
    (finding,) = finds(thread(1, "a", 0.9), overruns=(overrun(1, 0.5, OWN, asleep_seconds=asleep),))
    assert ("sleeps" in finding.summary) == (asleep > 0)


def test_collections_are_no_calls() -> None:
    """The same hold, at the same line: what was waited while garbage was collected is the collector's."""
    blame = Blame(
        gil=0, waiter=2, holder=1, seconds=0.7, asked_seconds=0.02, late_seconds=0.68, collecting_seconds=0.6
    )
    runs = Collection(thread=1, generation=2, frames=(OWN, ROOT), runs=4, seconds=0.6, max_seconds=0.2)
    holder, waiter = thread(1, "a", 0.9), thread(2, "b", 0.01, waited_seconds=0.7, contended=4)
    first, *_ = finds(holder, waiter, blame=(blame,), collections=(runs,))
    assert first.kind == "collection"
    assert "in a in export (views.py:31)" in first.title
    assert first.cost_seconds == pytest.approx(0.6)


def test_late_callbacks_of_a_loop_are_named_without_what_the_collector_took() -> None:
    loop = LoopDelays(
        name="MainThread", beats=50, late=20, own_seconds=0.6, gil_seconds=0.1, core_seconds=0.0,
        overdue_seconds=0.0,
    )  # fmt: skip
    known: dict[str, Any] = {"loops": (loop,), "callbacks": (("render (views.py:88)", 0.5),)}
    (callback,) = finds(thread(1, "MainThread", 0.9), **known)
    assert callback.kind == "callback"
    assert "render (views.py:88)" in callback.title
    runs = Collection(thread=1, generation=2, frames=(), runs=4, seconds=0.55, max_seconds=0.2)
    first, *_ = finds(thread(1, "MainThread", 0.9), collections=(runs,), **known)
    assert first.kind == "collection"


def crowd(*turns: int) -> list[GilThread]:
    return [
        thread(serial, f"worker-{serial}", 0.0002 * n, acquisitions=n, contended=n // 2, waited_seconds=0.4)
        for serial, n in enumerate(turns, start=1)
    ]


def behind(threads_: Sequence[GilThread], holders: Sequence[int]) -> tuple[Blame, ...]:
    return tuple(
        Blame(gil=0, waiter=waiter.serial, holder=holder, seconds=waiter.waited_seconds / len(holders))
        for waiter in threads_
        for holder in holders
    )


@pytest.mark.parametrize("holders", [range(1, 13), [1], [20]], ids=["each other", "one of them", "another"])
def test_a_square_is_threads_that_wait_behind_each_other(holders: Sequence[int]) -> None:
    threads_ = crowd(*(10 * n for n in range(2, 26, 2)))
    kinds = {f.kind for f in finds(*threads_, thread(20, "x", 0.4), wall=2, blame=behind(threads_, holders))}
    assert ("lock-square" in kinds) == (len(holders) > 1)


def test_one_starved_thread_is_named() -> None:
    peers = [
        thread(
            *(serial, name, 0.5), acquisitions=100, contended=100, waited_seconds=0.5,
            max_wait_seconds=longest, max_held_seconds=0.006, overrun_seconds=0.0, max_overrun_seconds=0.0,
        )
        for serial, name, longest in ((1, "a", 0.012), (2, "b", 0.3), (3, "c", 0.011))
    ]  # fmt: skip
    (starved,) = [finding for finding in finds(*peers, wall=2) if finding.kind == "starvation"]
    assert (starved.threads[0], starved.title) == ("b", "b once waited 300 ms for its turn")


@pytest.mark.parametrize("free", [0.0, 0.47])
def test_waiting_for_a_core_is_not_starvation(free: float) -> None:
    counts_ = {"acquisitions": 100, "contended": 100, "waited_seconds": 0.5, "max_held_seconds": 0.006}
    threads_ = [thread(1, "unlucky", 0.1, **counts_, max_wait_seconds=0.4)]
    threads_.append(thread(2, "peer", 0.1, **counts_, max_wait_seconds=0.012))
    blame = (
        Blame(gil=0, waiter=1, holder=2, seconds=0.5 - free),
        Blame(gil=0, waiter=1, holder=0, seconds=free, coreless_seconds=free),
    )
    kinds = {finding.kind: finding for finding in finds(*threads_, wall=2, blame=blame)}
    assert ("starvation" in kinds) == (free == 0)
    assert ("no-core" in kinds) == (free > 0)


def test_holder_without_a_core_is_no_long_hold() -> None:
    blame = Blame(
        gil=0, waiter=2, holder=1, seconds=1.8, asked_seconds=0.1, late_seconds=1.7, coreless_seconds=1.6
    )
    holder, other = thread(1, "holder", 1.9), thread(2, "other", 0.05, waited_seconds=1.8, contended=9)
    first, *_ = finds(
        holder, other, wall=2, blame=(blame,), overruns=(overrun(1, 0.1, OWN, max_seconds=0.01),)
    )
    assert (first.kind, first.threads[0]) == ("no-core", "holder")


@pytest.mark.parametrize("kind", ["convoy", "lock-square"])
@pytest.mark.parametrize("policy", ["stock", "interactive"])
def test_advice_of_a_scheduled_program_is_not_to_schedule_it(kind: str, policy: str) -> None:
    found = again(observed(kind, 1), policy=policy)
    advice = next(finding.advice for finding in found if finding.kind == kind)
    assert ("fairlead run" in advice) == (policy == "stock")


def test_a_convoy_is_named_before_the_saturation_beside_it() -> None:
    busy = {"acquisitions": 100, "contended": 95, "forced_drops": 95}
    threads_ = [thread(n, f"report-{n}", 0.49, **busy, waited_seconds=0.5) for n in (1, 2)]
    threads_.append(thread(3, "answer", 0.01, acquisitions=90, contended=90, waited_seconds=0.4))
    blame = tuple(
        Blame(gil=0, waiter=w, holder=h, seconds=s, asked_seconds=s)
        for w, h, s in ((1, 2, 0.5), (2, 1, 0.5), (3, 1, 0.2), (3, 2, 0.2))
    )
    assert [finding.kind for finding in finds(*threads_, blame=blame)] == ["convoy", "saturation"]


def test_nothing_observed_says_nothing() -> None:
    assert finds() == ()


def test_destruction_and_a_call_at_the_same_line_are_two_findings() -> None:
    destroys = (places.DESTROYS, "", 0)
    found = finds(
        thread(1, "a", 0.9),
        overruns=(overrun(1, 0.3, destroys, OWN, ROOT), overrun(1, 0.2, OWN, ROOT)),
    )
    assert [finding.kind for finding in found] == ["destruction", "long-hold"]
    assert "destroying objects in export (views.py:31)" in found[0].title


def test_of_collections_those_are_named_for_which_others_waited() -> None:
    """Both threads collect; only one of them keeps another waiting."""
    blame = Blame(
        gil=0, waiter=3, holder=2, seconds=0.3, asked_seconds=0.02, late_seconds=0.28, collecting_seconds=0.25
    )
    runs = (
        Collection(thread=1, generation=2, frames=(OTHER, ROOT), runs=4, seconds=0.6, max_seconds=0.2),
        Collection(thread=2, generation=2, frames=(OWN, ROOT), runs=4, seconds=0.3, max_seconds=0.1),
    )
    threads_ = (
        thread(1, "a", 0.6),
        thread(2, "b", 0.3),
        thread(3, "c", 0.01, waited_seconds=0.3, contended=4),
    )
    first, *_ = finds(*threads_, blame=(blame,), collections=runs)
    assert (first.kind, "in b in export" in first.title) == ("collection", True)


def computing_and_waiting(
    turns: int, asked: float, **figures: Any
) -> tuple[list[GilThread], tuple[Blame, ...]]:
    computes = thread(1, "report", 1.9, acquisitions=turns, **figures)
    waits = thread(2, "io", 0.001, acquisitions=turns, contended=turns, waited_seconds=asked)
    return [computes, waits], (Blame(gil=0, waiter=2, holder=1, seconds=asked, asked_seconds=asked),)


@pytest.mark.parametrize(("asked", "kind"), [(0.09, "not-the-gil"), (0.11, "convoy")])
def test_a_single_wait_is_a_convoy_from_a_tenth_of_a_second_on(asked: float, kind: str) -> None:
    threads_, blame = computing_and_waiting(1, asked)
    first, *_ = finds(*threads_, wall=2, blame=blame)
    assert first.kind == kind


@pytest.mark.parametrize(("without", "kind"), [(0.94, "convoy"), (1.2, "no-core")])
def test_what_computes_without_a_core_for_most_of_its_holds_is_held_up_by_the_machine(
    without: float, kind: str
) -> None:
    threads_, blame = computing_and_waiting(100, 0.5, held_off_cpu_seconds=without)
    first, *_ = finds(*threads_, wall=2, blame=blame)
    assert (first.kind, first.threads[0]) == (kind, "report")


def test_long_waits_that_no_cause_explains_are_not_called_harmless() -> None:
    threads_, _ = computing_and_waiting(1, 0.5)
    (finding,) = finds(*threads_, wall=2, blame=(Blame(gil=0, waiter=2, holder=1, seconds=0.5),))
    assert finding.kind == "unexplained"
    assert "io behind report" in finding.title


def test_threads_of_our_own_are_no_victims() -> None:
    threads_, blame = computing_and_waiting(100, 0.5)
    ours = dataclasses.replace(threads_[1], name="fairlead-loop-watch")
    (finding,) = finds(threads_[0], ours, wall=2, blame=blame)
    assert finding.kind == "not-the-gil"


def test_workers_that_share_out_short_tasks_compute() -> None:
    """One of them has come off worse, and its mean hold is under half a switch interval."""
    held = (0.6, 0.5, 0.5, 0.35)
    workers = [
        thread(n, f"worker-{n}", each, acquisitions=round(each * 700), contended=90, waited_seconds=1.5)
        for n, each in enumerate(held, start=1)
    ]
    blame = tuple(
        Blame(gil=0, waiter=one.serial, holder=other.serial, seconds=0.5, asked_seconds=0.45)
        for one in workers
        for other in workers
        if one is not other
    )
    assert [finding.kind for finding in finds(*workers, wall=2, blame=blame)] == ["saturation"]
