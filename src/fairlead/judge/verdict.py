"""The verdict on a process: its causes, dearest first, and what it was not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fairlead.judge.asleep import instead, locks
from fairlead.judge.crowds import crowd, saturation, starvation
from fairlead.judge.evidence import WORTH_A_WORD, Evidence, Gil, sane
from fairlead.judge.holders import COLLECTING, collections, convoy, long_holds, no_core
from fairlead.judge.words import duration, percent
from fairlead.record.gil_summary import Finding, LoopDelays

CONVOY_FIRST = 3.0
"""A convoy is named before a saturation that costs up to so many times as much: threads that compute share
what there is, and its victims have next to nothing of it."""
OFTEN, OFTEN_SHARE = 3, 0.05
"""So many turns of a loop that were late for its own callbacks, and so great a part of those that were
looked at, are worth a word however short."""
OF_A_GIL = (long_holds, collections, convoy, saturation, crowd, starvation, no_core)
CONVOYS = ("convoy", "thread-start", "import", "switch-interval")
OWN_FIRST = 2.0
"""What is in the program is named before a machine that costs up to so many times as much: it can be mended
there, and a machine is busy now and then."""
BUSY = 0.8
LEAST_SECONDS = 1e-6
"""Nothing can be said of a shorter observation, and no GIL has a shorter switch interval."""
OURS = "fairlead-"
"""Threads of these names watch the program: what they wait for is no trouble of its."""
UNEXPLAINED = 0.2
"""Waiting for so much of the time is not called harmless."""


def judge(evidence: Evidence) -> tuple[Finding, ...]:
    """Say what the threads of a process waited for.

    Returns:
        What was found, dearest first: at least one finding if any thread took a GIL or waited for one, else
        none. Never raises for numbers that cannot be.
    """
    used = tuple(
        replace(thread, name=" ".join(thread.name.split()))  # a title is one line, whatever that is called
        for thread in evidence.threads  # one that has waited, or held, all the time has had no turn
        if (thread.acquisitions > 0 or thread.waited_seconds > 0 or thread.held_seconds > 0)
        and sane(thread.held_seconds)
        and sane(thread.waited_seconds)
        and not thread.name.startswith(OURS)
    )
    wall, interval = evidence.wall_seconds, evidence.switch_interval
    if not used or not sane(wall) or not sane(interval) or min(wall, interval) < LEAST_SECONDS:
        return ()
    ours = {thread.serial for thread in evidence.threads if thread.name.startswith(OURS)}
    evidence = replace(
        evidence,
        threads=used,
        blame=tuple(cell for cell in evidence.blame if cell.waiter not in ours),
        stacks=tuple(loss for loss in evidence.stacks if loss.waiter not in ours),
    )
    found = [*_own_callbacks(evidence), *locks(evidence)]
    for index in sorted({thread.gil for thread in used}):
        gil = Gil(evidence, index)
        found += [finding for cause in OF_A_GIL for finding in cause(gil)]
    return by_cost(found) or (_unexplained(evidence) or _not_the_gil(evidence),)


def by_cost(found: Sequence[Finding]) -> tuple[Finding, ...]:
    """The dearest first, with the exceptions of CONVOY_FIRST and OWN_FIRST."""
    convoys = max((finding.cost_seconds for finding in found if finding.kind in CONVOYS), default=0.0)
    own = max((finding.cost_seconds for finding in found if finding.kind != "no-core"), default=0.0)

    def weight(finding: Finding) -> float:
        cost = finding.cost_seconds
        behind = finding.kind == "saturation" and cost <= CONVOY_FIRST * convoys
        return min(cost, convoys * 0.999) if behind else cost

    first = max((weight(finding) for finding in found if finding.kind != "no-core"), default=0.0)

    def place(finding: Finding) -> float:
        if finding.kind == "no-core" and finding.cost_seconds <= OWN_FIRST * own:
            return -min(finding.cost_seconds, first * 0.999)
        return -weight(finding)

    return tuple(sorted(found, key=place))


def _own_callbacks(evidence: Evidence) -> Iterator[Finding]:
    """A callback of an event loop computes, or blocks, and all others of the loop wait for it."""
    collected: defaultdict[str, float] = defaultdict(float)
    names = {thread.serial: thread.name for thread in evidence.threads}
    for one in evidence.collections:
        collected[names.get(one.thread, "")] += one.seconds
    for loop in evidence.loops:
        own = loop.own_seconds - collected[loop.name]
        late = loop.late * own / (loop.own_seconds + loop.gil_seconds + loop.core_seconds or 1.0)
        often = late >= OFTEN and late >= OFTEN_SHARE * loop.beats
        if own < loop.gil_seconds or (own < WORTH_A_WORD * evidence.wall_seconds and not often):
            continue
        callback, seconds = next(iter(evidence.callbacks), ("", 0.0))
        where = f" in {callback}" if callback else ""
        yield Finding(
            kind="callback",
            title=f"The event loop answers late because it runs its own code{where}: {duration(own)} in all",
            threads=(loop.name,),
            summary=(
                f"{loop.late} of {loop.beats} turns of the event loop in {loop.name} were late, by"
                f" {duration(own)} because of its own callbacks"
                + (f", {duration(seconds)} of it{where}." if callback else ".")
            ),
            evidence=_numbers(loop, own, callback),
            advice=(
                f"Take the work{where or ' of the callback'} out of the loop: await asyncio.to_thread() where"
                " it blocks, a process pool where it computes, or smaller pieces with an await in between."
            ),
            cost_seconds=max(own, evidence.wall_seconds * late / max(1, loop.beats)),
        )


def _numbers(loop: LoopDelays, own: float, callback: str) -> dict[str, float | int | str]:
    return {
        "late": loop.late,
        "own_callbacks_seconds": own,
        "waited_for_the_gil_seconds": loop.gil_seconds,
        "no_core_seconds": loop.core_seconds,
    } | ({"callback": callback} if callback else {})


def excluded(evidence: Evidence, found: tuple[Finding, ...]) -> tuple[str, ...]:
    """What it was not, each with its number."""
    kinds = {finding.kind for finding in found}
    collected = sum(one.seconds for one in evidence.collections)
    said = []
    if "not-the-gil" not in kinds and not kinds & {"collection"}:
        runs = sum(one.runs for one in evidence.collections)
        if collected < COLLECTING * evidence.wall_seconds:
            said.append(f"the garbage collector ({runs} runs, {duration(collected)} in all)")
    coreless = sum(cell.coreless_seconds for cell in evidence.blame)
    if evidence.blame and "no-core" not in kinds:
        said.append(f"a full machine ({duration(coreless)} of waiting for a core)")
    return tuple(said)


def _unexplained(evidence: Evidence) -> Finding | None:
    wall = evidence.wall_seconds
    waited = sum(thread.waited_seconds for thread in evidence.threads)
    if waited < UNEXPLAINED * wall:
        return None
    worst = max(evidence.threads, key=lambda thread: thread.waited_seconds)
    behind = max(
        (cell for cell in evidence.blame if cell.waiter == worst.serial and cell.holder),
        key=lambda cell: cell.seconds,
        default=None,
    )
    holder = next((one.name for one in evidence.threads if behind and one.serial == behind.holder), "")
    return Finding(
        kind="unexplained",
        title=(
            f"Threads waited {duration(waited)} for the GIL in {duration(wall)}, most of them {worst.name}"
            f"{f' behind {holder}' if holder else ''}; the cause is not clear"
        ),
        threads=(worst.name,),
        summary=(
            f"All threads together waited {duration(waited)} for the GIL in {duration(wall)}, {worst.name}"
            f" {duration(worst.waited_seconds)} of it, and no cause explains that."
        ),
        evidence={"waited_seconds": waited, "waited_share": waited / wall},
        advice="Record a longer stretch of it; the tables of this report say who waited behind whom.",
        cost_seconds=waited,
    )


def _not_the_gil(evidence: Evidence) -> Finding:
    wall = evidence.wall_seconds
    waited = sum(thread.waited_seconds for thread in evidence.threads)
    held = sum(thread.held_seconds for thread in evidence.threads)
    busiest = max(evidence.threads, key=lambda thread: thread.held_seconds)
    if busiest.held_seconds >= BUSY * wall:
        advice = (
            f"{busiest.name} computes for most of the time by itself: profile what it does. Only splitting"
            " its work over processes or interpreters could use more cores."
        )
    elif did := instead(evidence):
        advice = f"Look there: {did}."
    else:
        advice = (
            "Look elsewhere: at I/O, at the program's own locks, at C code that runs without the GIL. Of"
            " fairlead.sync's locks and queues print(waits()) says which thread waits for what, and which"
            " one holds it."
        )
    return Finding(
        kind="not-the-gil",
        title=f"The GIL is not what costs the time: threads waited {duration(waited)} in {duration(wall)}",
        threads=(),
        summary=(
            "Waiting for the GIL is not what costs the time: all threads together waited"
            f" {duration(waited)} in {duration(wall)},"
            f" and it was held for {percent(held / wall)} of that."
        ),
        evidence={"waited_seconds": waited, "waited_share": waited / wall, "held_share": held / wall},
        advice=advice,
        cost_seconds=waited,
    )
