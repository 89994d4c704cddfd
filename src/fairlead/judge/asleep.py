"""What threads do that have nothing to do with the GIL: a lock that several wait for, and what else keeps the
program, where the GIL does not.

Threads are looked at ten times a second (``fairlead.record.gil_summary.IdleLook``). A thread that waits for
another thread's word, as a worker does that has nothing to do, sleeps in the same system call as one that
waits for a lock. What tells them apart is the line of Python that it is at."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from fairlead.judge.evidence import Evidence, by_name
from fairlead.judge.words import duration, listed, names_of, percent, verb
from fairlead.record import places
from fairlead.record.gil_summary import Finding, IdleLook
from fairlead.record.recording import Frame

LOCKED = 0.1
"""A lock for which threads waited so much of the time is worth a word."""
PLACES = 3
"""So many are said."""
_TAKES = re.compile(r"^(async )?with\b|\bacquire\w*\(|__enter__\(")
_WAITS_FOR_A_WORD = ("Condition.wait", "Thread._wait_for_tstate_lock", "Barrier._wait", "Barrier._enter")
_DOES = {
    "run": "runs in C code that has let go of it",
    "lock": "waits for another thread",
    "poll": "waits for descriptors",
    "read": "reads or receives",
    "write": "writes, sends or waits for the disk",
    "sleep": "sleeps",
    "child": "waits for a process",
    "else": "is in a system call",
}


def takes_a_lock(look: IdleLook) -> bool:
    """Whether it waits for a lock or a semaphore: its line takes one, and waits to be told nothing."""
    if look.doing != "lock" or not look.frames:
        return False
    if places.within(look.frames[:3], "Semaphore.acquire"):
        return True
    return look.frames[0][0] not in _WAITS_FOR_A_WORD and bool(_TAKES.search(places.code(look.frames[0])))


def locks(evidence: Evidence) -> Iterator[Finding]:
    """Threads that wait for a lock of the program's, by the line that takes it."""
    by_place: defaultdict[Frame | None, list[IdleLook]] = defaultdict(list)
    for look in filter(takes_a_lock, evidence.looks):
        by_place[places.own(look.frames)].append(look)
    names = {thread.serial: thread.name for thread in evidence.threads}
    for at, looks in by_place.items():
        cost = sum(look.seconds for look in looks)
        if cost < LOCKED * evidence.wall_seconds or at is None:
            continue
        threads = [thread for thread in evidence.threads if thread.serial in {look.thread for look in looks}]
        waiting = list(names_of(threads)) or [names.get(looks[0].thread, "a thread")]
        who = f"{listed(waiting)} {verb('wait', waiting)}"
        if len(threads) > len(waiting) == 1:
            who = f"{len(threads)} threads of the name {waiting[0]} wait"
        where = places.said(max(looks, key=lambda look: look.seconds).frames)
        function, file, line = at
        yield Finding(
            kind="lock",
            title=f"{who} for a lock{where}: {duration(cost)} in all",
            threads=tuple(waiting),
            waiters=by_name(
                (names.get(look.thread, f"thread {look.thread}"), look.seconds) for look in looks
            ),
            summary=(
                f"{who} for a lock of the program's{where}, and not for the GIL: {duration(cost)} in"
                f" {duration(evidence.wall_seconds)}."
            ),
            evidence={
                "waited_seconds": cost,
                "share_of_their_time": cost / (len(waiting) * evidence.wall_seconds),
                "function": places.short(function),
                "file": file,
                "line": line,
            },
            advice=(
                "Look at what runs while that lock is held: hold it for less, and not while something is"
                " written, sent or computed; or use one lock for each thing that it guards."
            ),
            cost_seconds=cost,
        )


def instead(evidence: Evidence) -> str:
    """What the program's threads did where the GIL did not keep them: the dearest places in words, "" if none
    was seen."""
    names = {thread.serial: thread.name for thread in evidence.threads}
    found: defaultdict[tuple[str, Frame | None], list[IdleLook]] = defaultdict(list)
    for look in evidence.looks:
        if (
            look.frames
            and look.thread in names
            and (look.doing not in ("lock", "poll") or takes_a_lock(look))
        ):
            found[look.doing, places.own(look.frames)].append(look)
    said = []
    for (doing, _), looks in sorted(found.items(), key=lambda item: -sum(look.seconds for look in item[1])):
        who = list(dict.fromkeys(names[look.thread] for look in looks))
        threads = len({look.thread for look in looks})
        share = sum(look.seconds for look in looks) / (threads * evidence.wall_seconds)
        if share >= LOCKED:
            does = "waits for a lock" if doing == "lock" else _DOES[doing]
            said.append(f"{listed(who)} {does}{places.said(looks[0].frames)} {percent(share)} of the time")
    return "; ".join(said[:PLACES])
