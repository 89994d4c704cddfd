"""Causes that one thread is to blame for: each function looks at one GIL for one of them, and yields what it
finds.

A cause is blamed by what was waited for, cell by cell of the blame: behind which thread, and whether that
thread was within its switch interval, went on after it was asked to let go (in C code, asleep, collecting
garbage, or without a core), or let go by itself. Averages over a crowd decide nothing. Each finding costs the
seconds of waiting that it explains. A fiftieth of the time is worth a word, and so is a single hold of four
switch intervals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from fairlead.judge.evidence import WORTH_A_WORD, Gil, convoyed, used_seconds, waits_of
from fairlead.judge.words import Numerals, duration, line_of, listed, names_of, times, verb
from fairlead.record import places
from fairlead.record.gil_summary import Collection, Finding, FindingKind, GilThread, Overrun
from fairlead.record.recording import Frame, Frames

LONG = 4.0
"""A hold of so many switch intervals is worth a word by itself."""
CULPRIT = 0.1
"""Those behind whom a smaller part of it was waited are not named."""
CONVOY_TURNS = 5
CONVOY_ONCE = 0.1
"""A single wait of so many seconds is worth a word, however few there were."""
LONG_INTERVAL = 0.02
"""A program that sets one from here on wants it for something else than throughput: it is 5 ms by default."""
COLLECTING = 0.1
NO_CORE, NO_CORE_OF_THE_TIME = 0.1, 0.05
"""Of the waiting, and of the time: a machine that is busy now and then is worth no word."""
ALL_THE_TIME, STOPPED = 0.8, 0.5
"""A thread that computes so much of the time, and has no core for so much of it: the machine holds it up."""


def long_holds(gil: Gil) -> Iterator[Finding]:
    """A thread went on for long after it was asked to let go, computing or asleep in one call: Python code
    answers within microseconds. Collections of garbage and cores that were taken away do not count."""
    for overruns in _by_place(gil.overruns):
        cost = sum(overrun.seconds for overrun in overruns)
        longest = max(overrun.max_seconds for overrun in overruns)
        if cost < WORTH_A_WORD * gil.wall and longest < LONG * gil.interval:
            continue
        holders = list(dict.fromkeys(gil.named(overrun.holder) for overrun in overruns))
        frames = max(overruns, key=lambda overrun: overrun.seconds).frames
        asleep = sum(overrun.asleep_seconds for overrun in overruns)
        destroys = places.destroys(frames)
        where = f"{', destroying objects' if destroys else ''}{places.said(frames)}"
        evidence: Numerals = {
            "waited_behind_it_seconds": cost,
            "longest_after_request_ms": longest * 1e3,
            "times": sum(overrun.holds for overrun in overruns),
            "switch_interval_ms": gil.interval * 1e3,
        }
        if asleep:
            evidence["asleep_seconds"] = asleep
        yield Finding(
            kind="destruction" if destroys else "long-hold",
            title=(
                f"{listed(holders)} {verb('keep', holders)} the GIL for up to {duration(longest)}{where},"
                f" {times(sum(overrun.holds for overrun in overruns))}"
            ),
            threads=tuple(holders),
            summary=(
                f"{listed(holders)} went on for up to {duration(longest)} after a request for the GIL{where}:"
                + (
                    " a large structure is destroyed at once, and that does not let go."
                    if destroys
                    else f" a call that {'sleeps and ' if asleep >= cost / 2 else ''}does not let go of it."
                )
            ),
            evidence=evidence | line_of(places.own(frames)),
            advice=(
                "Take it apart in pieces, with a pause after each (pop a thousand items at a time); keep it"
                " in fewer and larger objects (an array, bytes, a database); or build and drop it in another"
                " process."
                if destroys
                else f"Look at that call{where or ' (record it to have it named)'}: work on smaller pieces,"
                " use a function that frees the GIL, or call it in another process."
            ),
            cost_seconds=cost,
            waiters=_behind(gil, {overrun.holder for overrun in overruns}),
        )


def _behind(gil: Gil, holders: set[int]) -> tuple[tuple[str, float], ...]:
    """Who waited for calls of these."""
    return gil.waiters(
        lambda cell: (
            cell.late_seconds - cell.collecting_seconds - cell.coreless_seconds
            if cell.holder in holders
            else 0.0
        )
    )


def _by_place(overruns: Sequence[Overrun]) -> list[list[Overrun]]:
    """One cause is told once, whichever threads come to it."""
    found: defaultdict[tuple[Frame | None, int, bool], list[Overrun]] = defaultdict(list)
    for overrun in overruns:
        at = places.own(overrun.frames)
        found[at, 0 if at else overrun.holder, places.destroys(overrun.frames)].append(overrun)
    return list(found.values())


def collections(gil: Gil) -> Iterator[Finding]:
    """The garbage collector ran, and no other thread could; or it took much of a thread's own time."""
    runs = [one for one in gil.evidence.collections if one.thread in gil.by_serial]
    waited = sum(cell.collecting_seconds for cell in gil.cells)
    took = sum(one.seconds for one in runs)
    longest = max((one.max_seconds for one in runs), default=0.0)
    if not runs or (
        waited < WORTH_A_WORD * gil.wall
        and took < COLLECTING * gil.wall
        and not (waited and longest >= LONG * gil.interval)
    ):
        return
    behind = gil.behind(gil.threads, lambda cell: cell.collecting_seconds)
    by_thread: defaultdict[int, float] = defaultdict(float)
    for one in runs:
        by_thread[one.thread] += one.seconds

    def kept_waiting(one: Collection) -> float:
        its = by_thread[one.thread]
        return one.seconds * (behind.get(one.thread, 0.0) / its if waited and its else 1.0)

    frames = places.dearest((one.frames, kept_waiting(one)) for one in runs)
    where = places.said(frames)
    worst = max(runs, key=kept_waiting)
    name = gil.named(worst.thread)
    explicit = bool(frames) and "collect" in places.code(frames[0])
    yield Finding(
        kind="collection",
        title=(
            f"Garbage collection stops all threads for up to {duration(longest)}, {duration(took)} in all:"
            f" in {name}{where}"
        ),
        threads=names_of(gil.by_serial[one.thread] for one in runs),
        summary=(
            f"The garbage collector ran {sum(one.runs for one in runs)} times, {duration(took)} in all and"
            f" {duration(longest)} at the longest, mostly in {name}{where}; other threads waited"
            f" {duration(waited)} for that."
        ),
        evidence={
            "runs": sum(one.runs for one in runs),
            "generation": worst.generation,
            "collecting_seconds": took,
            "longest_ms": longest * 1e3,
            "waited_meanwhile_seconds": waited,
            **line_of(places.own(frames)),
        },
        advice=(
            "The program asks for it: call gc.collect() less often, or while nothing is served."
            if explicit
            else "Call gc.freeze() once everything that stays is built, raise gc.set_threshold(), and make"
            " fewer objects that refer to each other in a circle."
        ),
        cost_seconds=max(waited, took if took >= COLLECTING * gil.wall else 0.0),
        waiters=gil.waiters(lambda cell: cell.collecting_seconds),
    )


def convoy(gil: Gil) -> Iterator[Finding]:
    """Threads that need the GIL for a moment wait a switch interval for it: until they may ask the thread
    that computes."""
    victims = [
        thread
        for thread in gil.threads
        if gil.asked(thread) >= (0 if thread.contended >= CONVOY_TURNS else CONVOY_ONCE)
        and gil.asked(thread) > 0
        and not gil.computes(thread)
    ]
    cost = sum(map(gil.asked, victims))
    if cost < WORTH_A_WORD * gil.wall:
        return
    victims.sort(key=lambda thread: -gil.asked(thread))
    behind = gil.behind(victims, convoyed)
    names = list(names_of(victims))
    culprits = _culprits(gil, behind)
    waits = max(1, sum(thread.contended for thread in victims))
    mean_wait = sum(thread.waited_seconds for thread in victims) / waits
    mean_hold = sum(map(used_seconds, victims)) / max(1, sum(thread.acquisitions for thread in victims))
    computing = gil.done_meanwhile(victims)
    evidence: Numerals = {
        "waits": waits,
        "mean_wait_ms": mean_wait * 1e3,
        "mean_hold_us": mean_hold * 1e6,
        "switch_interval_ms": gil.interval * 1e3,
        "waited_seconds": cost,
        "share_of_their_time_waiting": cost / (len(victims) * gil.wall),
    }
    kind: FindingKind = "convoy"
    what = f"{listed(names)} {verb('wait', names)} {duration(mean_wait)} a turn, {times(waits)}"
    if gil.interval >= LONG_INTERVAL and not gil.evidence.scheduled:
        kind = "switch-interval"
    elif activity := _activity(gil, victims):
        kind, word, frames = activity
        what = f"{word}{places.said(frames)} takes {duration(mean_wait)} a turn, {times(waits)}"
    where = places.said(computing)
    yield Finding(
        kind=kind,
        title=f"{what}: {listed(culprits)} {verb('compute', culprits)}{where}",
        threads=(*culprits, *(name for name in names if name not in culprits)),
        summary=(
            f"{listed(names)} {verb('need', names)} the GIL for {duration(mean_hold)} at a time, and"
            f" {verb('wait', names)} {duration(mean_wait)} for it because {listed(culprits)}"
            f" {verb('compute', culprits)}{where}: a thread that blocks pays a switch interval"
            f" ({duration(gil.interval)}) to get back."
        ),
        evidence=evidence | line_of(places.own(computing)),
        advice=_convoy_advice(gil, kind, culprits),
        cost_seconds=cost,
        waiters=waits_of(victims, gil.asked),
    )


def _activity(gil: Gil, victims: Sequence[GilThread]) -> tuple[FindingKind, str, Frames] | None:
    """What the victims mostly do for which they need the GIL, where that is a cause of its own."""
    seen = gil.seen(victims, lambda loss: loss.waiter_frames)
    whole = sum(seconds for _, seconds in seen)
    for kind, word, is_it in _ACTIVITIES:
        mine = [(frames, seconds) for frames, seconds in seen if is_it(frames)]
        if sum(seconds for _, seconds in mine) > whole / 2:
            return kind, word, places.dearest(mine)
    return None


_ACTIVITIES: tuple[tuple[FindingKind, str, Callable[[Frames], bool]], ...] = (
    ("thread-start", "Starting threads", lambda frames: places.within(frames, "Thread.start")),
    ("import", "Importing", lambda frames: any(at[1].startswith("<frozen importlib") for at in frames)),
)


def _convoy_advice(gil: Gil, kind: FindingKind, culprits: Sequence[str]) -> str:
    elsewhere = (
        f"where the computing is what counts, move that of {listed(culprits)} out of it (a process pool, an"
        " interpreter of its own), or into C code that frees it."
    )
    if kind == "switch-interval":
        return (
            f"The program, or a library of it, has set the switch interval to {duration(gil.interval)}: find"
            " the call of sys.setswitchinterval, and take it out."
        )
    if gil.evidence.scheduled:
        return (
            f"The GIL is scheduled already ({gil.evidence.policy}), and computing threads have their share;"
            f" {elsewhere}"
        )
    first = {
        "import": f"Import it before the computing begins. {gil.schedule}",
        "thread-start": f"Start the threads once, and give them work by a queue. {gil.schedule}",
    }.get(kind, gil.schedule)
    return (
        f"{first}, which lets threads that come back from a wait go first. That leaves one GIL for all:"
        f" {elsewhere}"
    )


def no_core(gil: Gil) -> Iterator[Finding]:
    """Threads could not take a free GIL, or those that held it could not go on, for want of a core."""
    waiters = [thread for thread in gil.threads if gil.free_seconds.get(thread.serial)]
    free = sum(gil.free_seconds[thread.serial] for thread in waiters)
    held_up = sum(cell.coreless_seconds for cell in gil.cells if cell.holder)
    if gil.waited >= WORTH_A_WORD * gil.wall:
        held_up = max(held_up, max((_stood_still(gil, thread) for thread in gil.threads), default=0.0))
    cost = free + held_up
    if cost < NO_CORE_OF_THE_TIME * gil.wall or cost < NO_CORE * gil.waited:
        return
    behind = gil.behind(gil.threads, lambda cell: cell.coreless_seconds)
    holders = _culprits(gil, behind)
    waiters.sort(key=lambda thread: -gil.free_seconds[thread.serial])
    names = list(names_of(waiters))
    if free >= held_up:
        what = f"{listed(names)} waited {duration(free)} for a core, with the GIL free"
        why = "it was free, and they could not run to take it."
    else:
        what = f"{listed(holders)} held the GIL without a core to run on for {duration(held_up)}"
        why = "its holder had no core to run on, or was stopped, and no thread got on."
    yield Finding(
        kind="no-core",
        title=what,
        threads=tuple(dict.fromkeys([*holders, *names] if held_up > free else [*names, *holders])),
        summary=f"The GIL stood still for {duration(cost)}: {why}",
        evidence={
            "waited_for_a_core_seconds": free,
            "held_without_a_core_seconds": held_up,
            "waited_seconds": gil.waited,
            "longest_wait_ms": max((thread.max_wait_seconds for thread in gil.threads), default=0.0) * 1e3,
        },
        advice=(
            "This is the machine, not the GIL: give the process more of it (cores, a CPU quota, a nice"
            " value), or let less run beside it."
        ),
        cost_seconds=cost,
        waiters=gil.waiters(lambda cell: cell.coreless_seconds),
    )


def _stood_still(gil: Gil, thread: GilThread) -> float:
    """For how long one that computes all the time had no core, where that is most of the time; else 0."""
    without = (thread.held_off_cpu_seconds or 0.0) - (thread.held_asleep_seconds or 0.0)
    held = thread.held_seconds
    return without if without >= STOPPED * held and held >= ALL_THE_TIME * gil.wall else 0.0


def _culprits(gil: Gil, behind: dict[int, float]) -> list[str]:
    total = sum(behind.values())
    dearest = sorted(behind, key=lambda serial: -behind[serial])
    named = [gil.named(serial) for serial in dearest if behind[serial] >= CULPRIT * total]
    return list(dict.fromkeys(named or [gil.named(serial) for serial in dearest[:1]]))
