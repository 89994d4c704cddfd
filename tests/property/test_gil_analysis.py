"""The analysis of a recording against the books that the simulation keeps in its own, plain way."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from gilsim import MS, US, Block, Call, Doze, Run, Simulation, Step, Stolen
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.gil.analysis.analyse import analyse
from fairlead.record import gil_intervals
from fairlead.record.gil_summary import GilSummary
from fairlead.record.recording import Recording

pytestmark = pytest.mark.once

steps = st.lists(
    st.one_of(
        st.integers(1, 30 * MS).map(Run),
        st.integers(1, 200 * US).map(Run),
        st.integers(1, 40 * MS).map(Call),
        st.integers(1, 10 * MS).map(Block),
        st.integers(1, 5 * MS).map(Stolen),
        st.integers(1, 5 * MS).map(Doze),
    ),
    max_size=12,
)


def analysed(simulation: Simulation, **writing: int) -> GilSummary:
    with tempfile.TemporaryDirectory() as directory:
        path = simulation.writer(**writing).save(Path(directory) / "simulated.flrec")
        return analyse(Recording(path))


@settings(max_examples=60, deadline=None)
@given(
    programs=st.lists(steps, min_size=1, max_size=7),
    seed=st.integers(0, 2**31),
    until_ms=st.integers(1, 120),
    per_block=st.sampled_from([1, 3, 1000]),
    per_chunk=st.sampled_from([1, 7, 250_000]),
    wholes=st.booleans(),
)
def test_analysis_any_program_agrees_with_the_books(
    programs: list[list[Step]], seed: int, until_ms: int, per_block: int, per_chunk: int, wholes: bool
) -> None:
    simulation = Simulation(
        {f"t{i}": steps for i, steps in enumerate(programs)}, until_ns=until_ms * MS, seed=seed
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gil_intervals, "CHUNK_EVENTS", per_chunk)
        summary = analysed(simulation, events_per_block=per_block, wholes=wholes)
    truth = simulation.truth
    assert summary.problems == ()
    assert summary.trust.complete
    assert summary.wall_seconds == until_ms * MS / 1e9
    for thread in summary.threads:
        assert thread.held_seconds == truth.held[thread.serial] / 1e9
        assert thread.waited_seconds == truth.waited[thread.serial] / 1e9
        assert thread.acquisitions == truth.acquisitions[thread.serial]
        assert thread.contended == truth.contended[thread.serial] == sum(thread.wait_histogram)
        assert thread.forced_drops == truth.forced[thread.serial]
        assert thread.forced_drops + thread.voluntary_drops == sum(thread.held_histogram)
        assert (thread.held_off_cpu_seconds or 0) == truth.off_cpu[thread.serial] / 1e9
        assert (thread.held_asleep_seconds or 0) == truth.asleep[thread.serial] / 1e9
        assert (thread.overrun_seconds or 0) == truth.overrun[thread.serial] / 1e9
        assert (thread.overrun_off_cpu_seconds or 0) == truth.overrun_off_cpu[thread.serial] / 1e9
    blame = {(cell.waiter, cell.holder): cell.seconds for cell in summary.blame}
    assert blame == {cell: ns / 1e9 for cell, ns in truth.blame.items() if ns}
    assert sum(loss.seconds for loss in summary.stacks) == pytest.approx(sum(blame.values()), abs=1e-6)


def test_analysis_two_spinners_each_holds_half_and_waits_half() -> None:
    summary = analysed(Simulation({"a": [Run(10_000 * MS)], "b": [Run(10_000 * MS)]}, until_ns=1000 * MS))
    for thread in summary.threads:
        assert thread.held_seconds == pytest.approx(0.5, abs=0.02)
        assert thread.waited_seconds == pytest.approx(0.5, abs=0.02)
    assert summary.gils[0].switches == pytest.approx(200, abs=10)
    assert [finding.kind for finding in summary.findings] == ["saturation"]


def test_analysis_wait_behind_a_known_call_blames_it_to_the_nanosecond() -> None:
    summary = analysed(
        Simulation({"c": [Block(MS), Call(40 * MS)], "io": [Block(11 * MS), Run(MS)]}, until_ns=60 * MS)
    )
    c, io = ({t.name: t.serial for t in summary.threads}[name] for name in ("c", "io"))
    blame = {(cell.waiter, cell.holder): cell.seconds for cell in summary.blame}
    assert blame[io, c] == pytest.approx(0.030, abs=1e-6)
    waited = next(t.waited_seconds for t in summary.threads if t.name == "io")
    assert sum(blame.values()) == pytest.approx(waited, abs=1e-12)
    worst = summary.stacks[0]
    assert (worst.holder, worst.waiter, worst.waits) == (c, io, 1)
    assert worst.holder_frames[0] == ("work", "c.py", 10)
    assert worst.waiter_frames[0] == ("work", "io.py", 10)
    overrun = next(t.max_overrun_seconds for t in summary.threads if t.name == "c")
    assert overrun == pytest.approx(0.025, abs=1e-5)


def test_analysis_core_lost_before_a_request_is_not_set_against_the_c_call_after_it() -> None:
    """Such a call has been taken for Python code that lets go when asked, behind which a convoy forms."""
    turns = 20
    summary = analysed(
        Simulation(
            {
                "c": [Block(MS), Stolen(5 * MS - 100 * US), Call(9 * MS), Run(10 * US)] * turns,
                "io": [Block(MS), Run(10 * US)] * (2 * turns),
            },
            until_ns=turns * 30 * MS,
        )
    )
    c = next(thread for thread in summary.threads if thread.name == "c")
    assert c.held_off_cpu_seconds == pytest.approx(turns * 4.9e-3, rel=0.1)
    assert c.overrun_seconds is not None
    assert c.overrun_off_cpu_seconds == 0
    assert c.overrun_seconds > turns * 5e-3
    assert [finding.kind for finding in summary.findings] == ["long-hold"]
