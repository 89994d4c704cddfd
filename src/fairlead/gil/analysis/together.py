"""Recordings of several processes as one: the files of ``fairlead record --children`` on one time axis.

Each recording is analysed by itself, since processes do not share a GIL. Then GILs and threads are numbered
anew, so that no two processes have a number in common, times are counted from the first start, and findings
and problems name their process.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

from fairlead.errors import RecordError
from fairlead.gil.analysis.analyse import analyse
from fairlead.judge.verdict import by_cost
from fairlead.record.gil_intervals import IntervalChunk
from fairlead.record.gil_summary import (
    SERIALS_OF_A_PROCESS,
    Blame,
    Finding,
    GilProcess,
    GilSummary,
    StackLoss,
    Trust,
)
from fairlead.record.recording import Recording

_Cell = TypeVar("_Cell", Blame, StackLoss)

NOT_A_THREAD = 0xFFFFFFFE
"""From here on, serials stand for threads that are not known; they are the same in all processes."""


def with_children(recordings: Sequence[Recording]) -> list[Recording]:
    """And the recordings of their child processes, which lie beside them: PATH.PID. One of an earlier
    recording of that name, and one that cannot be read, is left alone."""
    found = {recording.path.resolve(): recording for recording in recordings}
    for recording in recordings:
        mine = recording.meta
        for path in sorted(recording.path.parent.glob(f"{glob.escape(recording.path.name)}.[0-9]*")):
            try:
                child = Recording(path)
            except RecordError:
                continue
            if child.meta.boot == mine.boot and child.meta.start_ns >= mine.start_ns:
                found.setdefault(path.resolve(), child)
    return list(found.values())


def in_order(recordings: Sequence[Recording]) -> list[Recording]:
    """By their starts.

    Raises:
        RecordError: they have no clock in common, or two are of the same recording.
    """
    first = recordings[0]
    seen: dict[tuple[int, int], Recording] = {}
    for recording in recordings:
        meta = recording.meta
        if len(recordings) > 1 and meta.boot is None:
            raise RecordError(
                f"{recording.path} does not name the boot that its clock belongs to: report on it alone, or"
                " record again"
            )
        if (meta.clock, meta.boot) != (first.meta.clock, first.meta.boot):
            raise RecordError(
                f"{first.path} and {recording.path} have no clock in common (another machine, or a restart"
                " between them): report on each alone"
            )
        if (same := seen.setdefault((meta.pid, meta.start_ns), recording)) is not recording:
            raise RecordError(f"{same.path} and {recording.path} are the same recording: name it once")
    return sorted(recordings, key=lambda recording: (recording.meta.start_ns, recording.meta.pid))


@dataclass(slots=True)
class _Renumbered:
    """One process among the others."""

    gils: int
    """How many the processes before it have."""
    serials: int
    shift_ns: int

    def serial(self, serial: int) -> int:
        return serial + self.serials if 0 < serial < NOT_A_THREAD else serial

    def chunk(self, chunk: IntervalChunk) -> IntervalChunk:
        holds, waits = chunk.holds.copy(), chunk.waits.copy()
        for found in (holds, waits):
            for edge in ("start", "end"):
                found[edge] += self.shift_ns
            found["thread"] += self.serials
        return replace(chunk, gil=chunk.gil + self.gils, holds=holds, waits=waits)

    def watching(self, watch: Callable[[IntervalChunk], None]) -> Callable[[IntervalChunk], None]:
        return lambda chunk: watch(self.chunk(chunk))

    def cell(self, cell: _Cell) -> _Cell:
        return replace(
            cell, gil=cell.gil + self.gils, waiter=self.serial(cell.waiter), holder=self.serial(cell.holder)
        )


def analyse_together(
    recordings: Sequence[Recording], *, watch: Callable[[IntervalChunk], None] | None = None
) -> GilSummary:
    """What ``analyse`` says of one recording, of several processes; ``in_order``.

    Raises:
        RecordError: one can no longer be read.
        MissingExtraError: numpy is not installed.
    """
    if len(recordings) == 1:
        return analyse(recordings[0], watch=watch)
    start_ns = recordings[0].meta.start_ns
    parts: list[GilSummary] = []
    processes: list[GilProcess] = []
    gils = 0
    for number, recording in enumerate(recordings):
        place = _Renumbered(gils, number * SERIALS_OF_A_PROCESS, recording.meta.start_ns - start_ns)
        alone = analyse(recording, watch=watch and place.watching(watch))
        part = _renumber(alone, place)
        parts.append(part)
        processes.append(
            GilProcess(
                meta=alone.process,
                gils=tuple(gil.gil for gil in part.gils),
                start_seconds=place.shift_ns / 1e9,
                wall_seconds=alone.wall_seconds,
                held_seconds=sum(gil.held_seconds for gil in alone.gils),
                waited_seconds=sum(gil.waited_seconds for gil in alone.gils),
            )
        )
        gils += max((gil.gil + 1 for gil in alone.gils), default=0)
    return _joined(parts, processes)


def _renumber(summary: GilSummary, place: _Renumbered) -> GilSummary:
    return replace(
        summary,
        gils=tuple(replace(gil, gil=gil.gil + place.gils) for gil in summary.gils),
        threads=tuple(
            replace(thread, gil=thread.gil + place.gils, serial=place.serial(thread.serial))
            for thread in summary.threads
        ),
        blame=tuple(map(place.cell, summary.blame)),
        stacks=tuple(map(place.cell, summary.stacks)),
        overruns=tuple(
            replace(one, gil=one.gil + place.gils, holder=place.serial(one.holder))
            for one in summary.overruns
        ),
        collections=tuple(replace(one, thread=place.serial(one.thread)) for one in summary.collections),
        looks=tuple(replace(look, thread=place.serial(look.thread)) for look in summary.looks),
    )


def _joined(parts: list[GilSummary], processes: list[GilProcess]) -> GilSummary:
    named = list(zip(processes, parts, strict=True))
    threads = chain.from_iterable(part.threads for part in parts)
    policies = dict.fromkeys(policy for part in parts for policy in part.policies)
    return GilSummary(
        process=parts[0].process,
        wall_seconds=max(process.start_seconds + process.wall_seconds for process in processes),
        events=sum(part.events for part in parts),
        gils=tuple(chain.from_iterable(part.gils for part in parts)),
        threads=tuple(sorted(threads, key=lambda thread: -(thread.held_seconds + thread.waited_seconds))),
        blame=tuple(sorted((c for part in parts for c in part.blame), key=lambda cell: -cell.seconds)),
        stacks=tuple(sorted((s for part in parts for s in part.stacks), key=lambda loss: -loss.seconds)),
        overruns=tuple(sorted((o for part in parts for o in part.overruns), key=lambda one: -one.seconds)),
        collections=tuple(chain.from_iterable(part.collections for part in parts)),
        looks=tuple(sorted((one for part in parts for one in part.looks), key=lambda look: -look.seconds)),
        findings=_findings(named),
        excluded=tuple(f"{process.name}: {said}" for process, part in named for said in part.excluded),
        trust=_trust(named),
        policies=tuple(policies),
        watchdog_tripped=any(part.watchdog_tripped for part in parts),
        loops=tuple(
            replace(loop, name=f"{loop.name} ({process.name})")
            for process, part in named
            for loop in part.loops
        ),
        callbacks=_callbacks(parts),
        problems=tuple(f"{process.name}: {problem}" for process, part in named for problem in part.problems),
        processes=tuple(processes),
    )


def _callbacks(parts: list[GilSummary]) -> tuple[tuple[str, float], ...]:
    sums: dict[str, float] = {}
    for name, seconds in chain.from_iterable(part.callbacks for part in parts):
        sums[name] = sums.get(name, 0.0) + seconds
    return tuple(sorted(sums.items(), key=lambda callback: -callback[1]))


def _findings(named: list[tuple[GilProcess, GilSummary]]) -> tuple[Finding, ...]:
    """Each names its process, and what several do at one line is told once. That the GIL costs one nothing is
    worth a line only if it costs none."""
    same: dict[object, list[Finding]] = {}
    for process, part in named:
        for finding in part.findings:
            at = finding.evidence.get("file"), finding.evidence.get("line")
            key = (finding.kind, *at) if at[0] else (finding.kind, process.name, finding.title)
            same.setdefault(key, []).append(
                replace(
                    finding,
                    title=f"{process.name}: {finding.title}",
                    threads=tuple(f"{name} ({process.name})" for name in finding.threads),
                    summary=f"{process.name}: {finding.summary}",
                    waiters=tuple((f"{name} ({process.name})", each) for name, each in finding.waiters),
                )
            )
    found = list(map(_once, same.values()))
    return by_cost([finding for finding in found if finding.kind != "not-the-gil"] or found)


def _once(alike: list[Finding]) -> Finding:
    worst = max(alike, key=lambda finding: finding.cost_seconds)
    others = {1: "", 2: " (and in another process)"}.get(
        len(alike), f" (and in {len(alike) - 1} more processes)"
    )
    return replace(
        worst,
        title=worst.title + others,
        threads=tuple(chain.from_iterable(finding.threads for finding in alike)),
        waiters=tuple(sorted(chain.from_iterable(f.waiters for f in alike), key=lambda one: -one[1])),
        cost_seconds=sum(finding.cost_seconds for finding in alike),
    )


def _trust(named: list[tuple[GilProcess, GilSummary]]) -> Trust:
    trusts = [part.trust for _, part in named]
    waited = sum(process.waited_seconds for process, _ in named)
    known = sum(part.trust.blame_coverage * process.waited_seconds for process, part in named)
    # the share of each, by what it held
    measured = [
        (share, process.held_seconds)
        for process, part in named
        if (share := part.trust.held_off_cpu_share) is not None
    ]
    held = sum(seconds for _, seconds in measured)
    return Trust(
        complete=all(trust.complete for trust in trusts),
        lost_events=sum(trust.lost_events for trust in trusts),
        lost_seconds=sum(trust.lost_seconds for trust in trusts),
        clock_resolution_seconds=max(trust.clock_resolution_seconds for trust in trusts),
        held_off_cpu_share=sum(share * seconds for share, seconds in measured) / held if held else None,
        blame_coverage=known / waited if waited else 1.0,
        statement=" ".join(f"{process.name}: {part.trust.statement}" for process, part in named),
    )
