"""From a recording to what it says: totals, blame, findings, and how far all that can be trusted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from fairlead.errors import MissingExtraError
from fairlead.gil.analysis.blame import BlameLedger
from fairlead.gil.analysis.rates import (
    parse_blame,
    parse_collections,
    parse_looks,
    parse_loops,
    parse_threads,
)
from fairlead.gil.analysis.tally import Tally
from fairlead.judge.evidence import Evidence
from fairlead.judge.verdict import excluded, judge
from fairlead.judge.words import command_of, percent
from fairlead.record.gil_intervals import IntervalChunk, Intervals
from fairlead.record.gil_summary import GilSummary, GilThread, GilTotals, Trust
from fairlead.record.policies import policy_name
from fairlead.record.recording import BlockType, Frames, Recording

_INTERVAL = re.compile(rb'"interval_ns":(\d+)')
ROUNDING_SECONDS = 1e-3
"""How much a thread's waits and holds may exceed the wall time before that counts as a contradiction."""


class _GilAnalysis:
    """Everything that is added up about one GIL."""

    def __init__(self, index: int) -> None:
        self.tally = Tally(index)
        self.blame = BlameLedger(index)
        self.unsure_ns = 0

    def add(self, chunk: IntervalChunk, lost: list[tuple[int, int, int]]) -> None:
        import numpy as np

        self.tally.add(chunk)
        self.blame.add(chunk)
        for t0, t1, _ in lost:
            within = np.minimum(chunk.waits["end"], t1) - np.maximum(chunk.waits["start"], t0)
            self.unsure_ns += int(np.maximum(within, 0).sum())


def analyse(recording: Recording, *, watch: Callable[[IntervalChunk], None] | None = None) -> GilSummary:
    """Read a recording to its end and say what it says.

    Memory is bounded by the longest wait, not by the length of the recording. ``watch`` is shown each chunk.
    A recording without events (of ``fairlead top``) is judged by its last snapshot of the counters.

    Raises:
        RecordError: the file can no longer be read.
        MissingExtraError: numpy is not installed.
    """
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("reading recordings needs numpy: pip install 'fairlead[lab]'") from error
    intervals = Intervals(recording)
    gils: dict[int, _GilAnalysis] = {}
    for chunk in intervals.chunks():
        gils.setdefault(chunk.gil, _GilAnalysis(chunk.gil)).add(chunk, intervals.lost)
        if watch is not None:
            watch(chunk)
    if not intervals.events:
        return _from_counters(recording)
    known, frames = recording.threads(), recording.stacks()
    wall = intervals.end_ns / 1e9
    threads = sorted(
        (thread for gil in gils.values() for thread in gil.tally.threads(known)),
        key=lambda thread: -(thread.held_seconds + thread.waited_seconds),
    )
    blame = [cell for gil in gils.values() for cell in gil.blame.blame()]
    stacks = sorted(
        (loss for gil in gils.values() for loss in gil.blame.stacks(frames)), key=lambda loss: -loss.seconds
    )
    around = _surroundings(recording)
    evidence = Evidence(
        threads=tuple(threads),
        wall_seconds=wall,
        blame=tuple(blame),
        stacks=tuple(stacks),
        overruns=tuple(loss for gil in gils.values() for loss in gil.blame.overruns(frames)),
        threads_at_once=max((gil.tally.at_once() for gil in gils.values()), default=0),
        **_counted(recording, frames, around),
    )
    findings = judge(evidence)
    problems = (*recording.problems, *intervals.problems, *_contradictions(threads, wall))
    return GilSummary(
        process=_process(recording),
        wall_seconds=wall,
        events=intervals.events,
        gils=tuple(_totals(gil.tally, threads, wall) for gil in gils.values()),
        threads=evidence.threads,
        blame=evidence.blame,
        stacks=evidence.stacks,
        overruns=evidence.overruns,
        collections=evidence.collections,
        looks=evidence.looks,
        findings=findings,
        excluded=excluded(evidence, findings),
        trust=_trust(recording, intervals, threads, sum(gil.unsure_ns for gil in gils.values()), problems),
        **around,
        problems=problems,
    )


def _surroundings(recording: Recording) -> dict[str, Any]:
    """The policies and the load on the machine, as the snapshots of the counters have them."""
    policies: list[str] = []
    last: dict[str, Any] = {}
    for block in recording.blocks(BlockType.COUNTERS):
        # what we are after comes last, and what stands before it may be long
        at = block.payload.rfind(b'"scheduler":')
        if at >= 0:
            last = json.loads(b"{" + block.payload[at:])
            policy = policy_name(last["scheduler"]["mode"])
            if policies[-1:] != [policy]:
                policies.append(policy)
    found: dict[str, Any] = {"policies": tuple(policies)}
    found["watchdog_tripped"] = bool(last and last["scheduler"]["tripped"])
    found["loops"], found["callbacks"] = parse_loops(last)
    if load := last.get("load"):
        passed = (recording.counters() or {})["t_ns"] - recording.meta.start_ns
        others = max(0, load["machine_ns"] - load["own_ns"]) / (max(1, passed) * load["cores"])
        found |= {"other_load": min(1.0, others), "cores": load["cores"]}
    return found


def _counted(recording: Recording, frames: dict[int, Frames], around: dict[str, Any]) -> dict[str, Any]:
    """What the snapshots of the counters have of the evidence."""
    last = recording.counters() or {}

    def known(stack: int) -> Frames:
        return frames.get(stack, ())

    return {
        "switch_interval": _switch_interval(recording),
        "collections": tuple(parse_collections(last.get("collections", ()), known)),
        "looks": tuple(parse_looks(last.get("looks", ()), known)),
        "loops": around["loops"],
        "callbacks": around["callbacks"],
        "policy": _policy(around),
        "command": command_of(recording.meta.argv),
    }


def _switch_interval(recording: Recording) -> float:
    """The median of the snapshots': a program may have set another one after its recording began, or for a
    moment."""
    seen = sorted(
        int(found[1])
        for block in recording.blocks(BlockType.COUNTERS)
        if (found := _INTERVAL.search(block.payload)) and int(found[1])
    )
    return seen[len(seen) // 2] / 1e9 if seen else recording.meta.switch_interval_s


def _policy(around: dict[str, Any]) -> str:
    """The one that was in force at the end."""
    return next(reversed(around["policies"]), "stock")


def _from_counters(recording: Recording) -> GilSummary:
    last, around = recording.counters() or {}, _surroundings(recording)
    threads, blame = parse_threads(last), parse_blame(last.get("blame", ()))
    threads.sort(key=lambda thread: -(thread.held_seconds + thread.waited_seconds))
    wall = max(0, last.get("t_ns", recording.meta.start_ns) - recording.meta.start_ns) / 1e9
    intervals = Intervals(recording)
    evidence = Evidence(
        threads=tuple(threads),
        wall_seconds=wall,
        blame=tuple(blame),
        **_counted(recording, recording.stacks(), around),
    )
    findings = judge(evidence)
    return GilSummary(
        process=_process(recording),
        wall_seconds=wall,
        events=0,
        gils=tuple(
            _totals(Tally(index), threads, wall) for index in sorted({thread.gil for thread in threads})
        ),
        threads=evidence.threads,
        blame=evidence.blame,
        stacks=(),
        collections=evidence.collections,
        looks=evidence.looks,
        findings=findings,
        excluded=excluded(evidence, findings),
        trust=_trust(recording, intervals, threads, 0, recording.problems),
        **around,
        problems=recording.problems,
    )


def _process(recording: Recording) -> dict[str, Any]:
    return {"source": str(recording.path), **asdict(recording.meta)}


def _totals(tally: Tally, threads: Iterable[GilThread], wall: float) -> GilTotals:
    mine = [thread for thread in threads if thread.gil == tally.gil]
    return GilTotals(
        gil=tally.gil,
        wall_seconds=wall,
        held_seconds=sum(thread.held_seconds for thread in mine),
        waited_seconds=sum(thread.waited_seconds for thread in mine),
        acquisitions=sum(thread.acquisitions for thread in mine),
        switches=tally.switches,
        forced_drops=sum(thread.forced_drops for thread in mine),
    )


def _contradictions(threads: list[GilThread], wall: float) -> list[str]:
    busy: dict[int, float] = {}
    for thread in threads:
        busy[thread.serial] = busy.get(thread.serial, 0.0) + thread.held_seconds + thread.waited_seconds
    return [
        f"thread {serial}: waits and holds add up to {seconds:.6f} s of {wall:.6f} s: it contradicts itself"
        for serial, seconds in busy.items()
        if seconds > wall + ROUNDING_SECONDS
    ]


def _trust(
    recording: Recording,
    intervals: Intervals,
    threads: list[GilThread],
    unsure_ns: int,
    problems: tuple[str, ...],
) -> Trust:
    waited = sum(thread.waited_seconds for thread in threads)
    held = sum(thread.held_seconds for thread in threads)
    off_cpu = [
        t.held_off_cpu_seconds - (t.held_asleep_seconds or 0.0)
        for t in threads
        if t.held_off_cpu_seconds is not None
    ]
    lost = sum(count for _, _, count in intervals.lost)
    lost_seconds = sum(t1 - t0 for t0, t1, _ in intervals.lost) / 1e9
    coverage = 1.0 if waited == 0 else max(0.0, 1 - unsure_ns / 1e9 / waited)
    share = sum(off_cpu) / held if off_cpu and held else None
    complete = not lost and not problems
    resolution = recording.meta.clock_resolution_ns / 1e9
    if not intervals.events and not threads:
        said = ["There is nothing here but what was recorded of the process: no events, no counters."]
    elif not intervals.events:
        said = ["Counted, not recorded: the totals are exact, but there is no order of events."]
    elif complete:
        said = [f"All {intervals.events:,} events are here; the clock counts in {resolution * 1e9:.0f} ns."]
    elif lost:
        said = [
            f"{lost:,} events were lost within {lost_seconds:.3f} s, and {intervals.events:,} are here: the"
            f" totals are lower bounds, and the holder is known for {percent(coverage, 1)} of the waiting."
        ]
    else:
        said = [f"{intervals.events:,} events are here, but not all is well: see the problems."]
    if intervals.full_ns:
        said.insert(
            0,
            f"The events end after {intervals.full_ns / 1e9:.1f} s: the file was as large as it may be then"
            " (fairlead record --max-size). This is about that time.",
        )
    if share is not None:
        said.append(
            f"The kernel had taken the core away for {percent(share, 1)} of the time that the GIL was held:"
            " machine, not program."
        )
    elif intervals.events:
        said.append("Whether holders were on the CPU was not measured: a hold may hide a core taken away.")
    return Trust(
        complete=complete,
        lost_events=lost,
        lost_seconds=lost_seconds,
        clock_resolution_seconds=resolution,
        held_off_cpu_share=share,
        blame_coverage=coverage,
        statement=" ".join(said),
    )
